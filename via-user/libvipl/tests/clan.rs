//! Programs in C against `clan.h`: bad arguments of every function, peers that are killed and stopped,
//! and the example in C and in Rust, each with each. Each test has nodes of its own.

#[expect(dead_code, reason = "these programs wrap no functions")]
#[path = "../../../cosim/cli/src/c_program.rs"]
mod c_program;

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What `c_program` fails with.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A program takes seconds, more on a busy machine; after this it hangs.
const HANGS: Duration = Duration::from_secs(120);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// A folder in which nodes meet. It goes with its handle.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("clan-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }

    /// Starts a program whose nodes are in the folder.
    fn start(&self, program: &Path, arguments: &[&str]) -> Process {
        let mut command = Command::new(program);
        command.args(arguments).env("XDG_RUNTIME_DIR", &self.0).env_remove("VIADUCT_DEVICE");
        let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Process(Some(process.unwrap_or_else(|error| panic!("{}: {error}", program.display()))))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that is killed with its handle.
struct Process(Option<Child>);

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(process) = &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Process {
    /// Whether it ends well, and what it writes.
    fn end(mut self, what: &str) -> (bool, String) {
        let end = Instant::now() + HANGS;
        while self.0.as_mut().unwrap().try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "{what} hangs");
            std::thread::sleep(LOOK);
        }
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// What it writes; it must end well.
    fn output(self, what: &str) -> String {
        let (is_good, text) = self.end(what);
        assert!(is_good, "{what}: {text}");
        text
    }
}

fn compile(name: &str, source: &str) -> PathBuf {
    let source = c_program::root().join(source);
    let library = c_program::library("libvipl").unwrap();
    c_program::compile(&format!("clan-{name}"), &library, &[source], &[]).unwrap()
}

fn run(test: &str) {
    let program = compile(test, &format!("via-user/libvipl/tests/clan/{test}.c"));
    let folder = Folder::new(test);
    assert_eq!(folder.start(&program, &[]).output(test), "done\n");
}

#[test]
fn bad_arguments_of_every_function_are_errors_that_name_them() {
    run("arguments");
}

#[test]
fn peers_that_are_killed_and_stopped_end_waits_in_bounded_time() {
    run("killed");
}

#[test]
fn calls_of_threads_end_whatever_others_destroy() {
    run("races");
}

#[test]
fn children_forked_at_any_time_open_ports_of_their_own() {
    run("forks");
}

/// The example in both languages, built once.
fn examples() -> &'static [(&'static str, PathBuf); 2] {
    static EXAMPLES: OnceLock<[(&str, PathBuf); 2]> = OnceLock::new();
    EXAMPLES.get_or_init(|| {
        let deps = c_program::folder().unwrap();
        let profile = deps.parent().unwrap();
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(c_program::root()).args(["build", "-q", "-p", "vipl-examples"]);
        command.args(["--bin", "clanqueue", "--target-dir"]).arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            command.arg("--release");
        }
        assert!(command.status().unwrap().success(), "the example in Rust does not build");
        let c = compile("example", "via-user/examples/c/clanqueue.c");
        [("C", c), ("Rust", profile.join("clanqueue"))]
    })
}

const SERVER_WRITES: &str =
    "the server received 1000 numbers, sum 500500, and a block, sum 33550336";
const CLIENT_WRITES: [&str; 2] = ["the client reads the answer 500500", "then it is refused: "];

#[test]
fn the_example_runs_in_one_process() {
    for (language, program) in examples() {
        let folder = Folder::new(&format!("one-{language}"));
        let text = folder.start(program, &[]).output(language);
        assert!(text.contains(SERVER_WRITES), "{language}: {text}");
        assert!(CLIENT_WRITES.iter().all(|line| text.contains(line)), "{language}: {text}");
    }
}

#[test]
fn the_example_runs_between_languages_and_whoever_starts_first() {
    for (server_language, server) in examples() {
        for (client_language, client) in examples() {
            for server_first in [true, false] {
                let what = format!("server in {server_language}, client in {client_language}");
                let folder = Folder::new(&format!("{server_language}-{client_language}"));
                let start = |is_server| match is_server {
                    true => folder.start(server, &["shm:?node=server"]),
                    false => folder.start(client, &["shm:", "server"]),
                };
                let first = start(server_first);
                std::thread::sleep(LOOK);
                let second = start(!server_first);
                let (server, client) = if server_first { (first, second) } else { (second, first) };
                let text = client.output(&format!("{what}: the client"));
                assert!(CLIENT_WRITES.iter().all(|line| text.contains(line)), "{what}: {text}");
                let text = server.output(&format!("{what}: the server"));
                assert!(text.contains(SERVER_WRITES), "{what}: {text}");
            }
        }
    }
}

#[test]
fn an_example_whose_peer_is_killed_says_so() {
    for (language, server) in examples() {
        let folder = Folder::new(&format!("lost-{language}"));
        let server = folder.start(server, &["shm:?node=server"]);
        // A client that speaks to it, and dies.
        let client = compile("leaver", "via-user/libvipl/tests/clan/leaver.c");
        folder.start(&client, &["server"]).output("the client that leaves");
        let (is_good, text) = server.end(language);
        assert!(!is_good && text.contains("node leaver is lost"), "{language}: {text}");
    }
}

#[test]
fn arguments_of_the_example_that_make_no_sense_are_refused() {
    for (language, program) in examples() {
        for arguments in [&["shm:", "a", "b"][..], &["sim:model"], &["eth0", "a"]] {
            let folder = Folder::new(&format!("refused-{language}"));
            let (is_good, text) = folder.start(program, arguments).end(language);
            assert!(!is_good && !text.is_empty(), "{language} {arguments:?}: {text}");
        }
    }
}
