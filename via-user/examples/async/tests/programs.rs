//! The examples as programs: a server, and clients of several processes at once, over shared memory.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::{env, fs, thread};

const HTTP: &str = env!("CARGO_BIN_EXE_http");
const GRPC: &str = env!("CARGO_BIN_EXE_grpc");
/// Bodies: none, small ones, packets and more, and more than any window.
const SIZES: [usize; 7] = [0, 1, 1000, 32 << 10, 100_001, 1 << 20, 5_000_000];

/// A server in a run-time folder of its own.
struct Server {
    program: &'static str,
    process: Child,
    folder: PathBuf,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn command(program: &str, folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words).env("XDG_RUNTIME_DIR", folder).env_remove("VIADUCT_DEVICE");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Server {
    fn start(program: &'static str) -> Self {
        let name = Path::new(program).file_name().unwrap().to_string_lossy();
        let folder = env::temp_dir().join(format!("viaduct-async-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut process =
            command(program, &folder, &["serve", "shm:?node=server", "0"]).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening at ").expect("its address").to_owned();
        Self { program, process, folder, address }
    }

    /// Runs a client to its end.
    fn client(&self, what: &str, rest: &[&str], input: &[u8]) -> Output {
        let words: Vec<&str> =
            [what, "shm:", &self.address].into_iter().chain(rest.iter().copied()).collect();
        let mut client = command(self.program, &self.folder, &words).spawn().unwrap();
        let mut standard_input = client.stdin.take().unwrap();
        thread::scope(|scope| {
            // A client that fails does not read it.
            scope.spawn(move || _ = standard_input.write_all(input));
            client.wait_with_output().unwrap()
        })
    }

    /// What a client writes; it must end well.
    fn output(&self, what: &str, rest: &[&str], input: &[u8]) -> Vec<u8> {
        let Output { status, stdout, stderr } = self.client(what, rest, input);
        assert!(status.success(), "{what} {rest:?}: {}", String::from_utf8_lossy(&stderr));
        stdout
    }

    /// What a client says that ends badly.
    fn complaint(&self, what: &str, rest: &[&str]) -> String {
        let Output { status, stderr, .. } = self.client(what, rest, b"");
        assert!(!status.success(), "{what} {rest:?}");
        String::from_utf8_lossy(&stderr).into_owned()
    }
}

fn bytes(seed: usize, count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7 + at / 251 + seed).to_le_bytes()[0]).collect()
}

/// Runs for each size at once, each in a process of its own.
fn each_size(test: impl Fn(usize, &[u8]) + Sync) {
    thread::scope(|scope| {
        for (seed, size) in SIZES.into_iter().enumerate() {
            let test = &test;
            scope.spawn(move || test(seed, &bytes(seed, size)));
        }
    });
}

#[test]
fn hyper_serves_bodies_of_every_size_to_several_clients_at_once() {
    let server = Server::start(HTTP);
    each_size(|_, body| {
        let back = server.output("post", &["/echo"], body);
        assert!(back == body, "{} of {} bytes", back.len(), body.len());
        let got = server.output("get", &[&format!("/bytes/{}", body.len())], b"");
        assert!(got.iter().enumerate().all(|(at, byte)| *byte == at.to_le_bytes()[0]));
        assert_eq!(got.len(), body.len());
    });
    let text = server.output("load", &["/bytes/5000", "16", "400"], b"");
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("400 requests on 16 connections, 2000000 bytes, "), "{text}");
    let complaint = server.complaint("get", &["/nothing"]);
    assert!(complaint.contains("404 Not Found"), "{complaint}");
}

#[test]
fn tonic_keeps_values_of_every_size_of_several_clients_at_once() {
    let server = Server::start(GRPC);
    each_size(|seed, value| {
        let key = format!("key {seed}");
        assert_eq!(server.output("put", &[&key], value), b"");
        let kept = server.output("get", &[&key], b"");
        assert!(kept == value, "{} of {} bytes", kept.len(), value.len());
    });
    let listed = server.output("list", &["key "], b"");
    let lines = SIZES.iter().enumerate().map(|(seed, size)| format!("key {seed} {size}\n"));
    assert_eq!(String::from_utf8(listed).unwrap(), lines.collect::<String>());
    let complaint = server.complaint("get", &["nothing"]);
    assert!(complaint.contains("nothing is kept as `nothing`"), "{complaint}");
}

#[test]
fn command_lines_that_make_no_sense_are_refused() {
    for program in [HTTP, GRPC] {
        let run = |words: &[&str]| Command::new(program).args(words).output().unwrap();
        let help = run(&["--help"]);
        assert!(help.status.success() && help.stdout.len() > 100);
        for words in [&[][..], &["serve"], &["get", "no:device", "[01]:1", "/"], &["fly", "shm:"]] {
            let output = run(words);
            let mut said = output.stderr;
            said.extend(output.stdout);
            assert!(!output.status.success() && !said.is_empty(), "{program} {words:?}");
        }
    }
}
