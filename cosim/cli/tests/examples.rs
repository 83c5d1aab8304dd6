//! The examples, in C and in Rust, as programs: both sides in a process of their own, each language
//! with each, over NICs that `viaduct cosim serve` serves, and with no set-up at all; and both sides in
//! one process.

#[expect(dead_code, reason = "the examples wrap no functions")]
#[path = "../src/c_program.rs"]
mod c_program;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What `c_program` fails with.
type Failure = Box<dyn std::error::Error + Send + Sync>;

const EXAMPLES: [&str; 4] = ["vpingpong", "vbandwidth", "vserver", "vrdma"];
/// An example takes seconds, more on a busy machine; this only says that it hangs.
const HANGS: Duration = Duration::from_secs(120);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// A process that is killed with its handle.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn start(program: &Path, arguments: &[&str]) -> Self {
        Self::start_in(&env::temp_dir(), program, arguments)
    }

    /// With this run-time folder.
    fn start_in(folder: &Path, program: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("XDG_RUNTIME_DIR", folder).env_remove("VIADUCT_DEVICE");
        Self(command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display())))
    }

    /// Waits until a server has become a node of shared memory: a client may take the name otherwise, or
    /// not find it. A number is a node of the simulator.
    fn wait_for_node(&self, folder: &Path, name: &str) {
        let end = Instant::now() + HANGS;
        let path = folder.join(format!("viaduct/shm/{name}.sock"));
        while name != "1" && !path.exists() {
            assert!(Instant::now() < end, "the server does not become {name}");
            std::thread::sleep(LOOK);
        }
    }

    /// What it writes, until it ends; it must end well.
    fn output(mut self, what: &str) -> String {
        let end = Instant::now() + HANGS;
        let status = loop {
            match self.0.try_wait().expect("its state") {
                Some(status) => break status,
                None if Instant::now() > end => panic!("{what} hangs"),
                None => std::thread::sleep(LOOK),
            }
        };
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(status.success(), "{what}: {status}: {text}");
        text
    }
}

/// Two models that other processes use.
struct Simulator {
    process: Process,
    folder: PathBuf,
}

impl Simulator {
    fn start(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("viaduct-{name}-{}", std::process::id()));
        let arguments = ["cosim", "serve", "--nodes", "2", "--dir", folder.to_str().unwrap()];
        let mut process = Process::start(Path::new(env!("CARGO_BIN_EXE_viaduct")), &arguments);
        let output = BufReader::new(process.0.stdout.take().unwrap());
        assert!(
            output.lines().map_while(Result::ok).any(|line| line == "ready"),
            "the simulator does not start"
        );
        Self { process, folder }
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn device(&self, node: u8) -> String {
        format!("vfio-user:{}/nic{node}.sock", self.folder.display())
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.process.0.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The folder of the examples in Rust, which are built once.
fn rust_examples() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let deps = c_program::folder().unwrap();
        let profile = deps.parent().unwrap();
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(c_program::root()).args(["build", "-q", "-p", "vipl-examples"]);
        command.arg("--bins").arg("--target-dir").arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            command.arg("--release");
        }
        assert!(command.status().unwrap().success(), "the examples in Rust do not build");
        profile.to_owned()
    })
}

/// The examples in C, by name, which are compiled once.
fn c_example(name: &str) -> &'static Path {
    static PROGRAMS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let programs = PROGRAMS.get_or_init(|| {
        let compile = |name: &&str| {
            let source = c_program::root().join(format!("via-user/examples/c/{name}.c"));
            let library = c_program::library("libvipl").unwrap();
            c_program::compile(&format!("example-{name}"), &library, &[source], &[]).unwrap()
        };
        EXAMPLES.iter().map(compile).collect()
    });
    &programs[EXAMPLES.iter().position(|example| *example == name).unwrap()]
}

/// An example in both languages.
fn programs(name: &str) -> [(&'static str, PathBuf); 2] {
    [("C", c_example(name).to_owned()), ("Rust", rust_examples().join(name))]
}

/// Runs an example in every way. `says` is in what the server and the client write.
fn every_way(name: &str, server_says: &str, client_says: &str) {
    let programs = programs(name);
    for (language, program) in &programs {
        let what = format!("{name} in {language}, in one process");
        let text = Process::start(program, &[]).output(&what);
        assert!(text.contains(server_says) && text.contains(client_says), "{what}: {text}");
    }
    let simulator = Simulator::start(name);
    let [server_device, client_device] = [1, 0].map(|node| simulator.device(node));
    let on_simulator = [(server_device.as_str(), client_device.as_str(), "1", simulator.folder())];
    // Programs that name no device meet in shared memory where no simulator runs. The server's node is
    // named where more than one program is there.
    let folder = env::temp_dir().join(format!("viaduct-{name}-default-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let without_set_up =
        [("", "", "node0", &*folder), ("shm:?node=a", "/dev/clanvi0", "a", &*folder)];
    for (server_device, client_device, host, folder) in
        on_simulator.into_iter().chain(without_set_up)
    {
        for (server_language, server) in &programs {
            for (client_language, client) in &programs {
                let what = format!(
                    "{name} on `{server_device}`, server in {server_language}, client in {client_language}"
                );
                let server = Process::start_in(folder, server, &[server_device]);
                server.wait_for_node(folder, host);
                let client = Process::start_in(folder, client, &[client_device, host]);
                let text = client.output(&format!("{what}: the client"));
                assert!(text.contains(client_says), "{what}: {text}");
                let text = server.output(&format!("{what}: the server"));
                assert!(text.contains(server_says), "{what}: {text}");
            }
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn vpingpong() {
    every_way("vpingpong", "", "1000 rounds of 8 bytes");
}

#[test]
fn vbandwidth() {
    every_way("vbandwidth", "", "2000 messages of 16384 bytes");
}

#[test]
fn vserver() {
    every_way("vserver", "answered 400 requests of 8 clients", "");
}

#[test]
fn vrdma() {
    every_way(
        "vrdma",
        "the client wrote: this went straight into the server's memory (immediate data 1998)",
        "the client read: and this is what the client read",
    );
}

/// In Rust alone, so both sides are.
#[test]
fn vrpc() {
    let (program, says) = (rust_examples().join("vrpc"), "4 clients made 400 calls");
    let text = Process::start(&program, &[]).output("vrpc in one process");
    assert!(text.contains(says), "{text}");
    let folder = env::temp_dir().join(format!("viaduct-vrpc-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let server = Process::start_in(&folder, &program, &["shm:?node=rpc"]);
    server.wait_for_node(&folder, "rpc");
    let text = Process::start_in(&folder, &program, &["shm:", "rpc"]).output("the client");
    assert!(text.contains("sum and sort are right"), "{text}");
    let text = server.output("the server");
    assert!(text.contains(says), "{text}");
    fs::remove_dir_all(&folder).unwrap();
    let help = Process::start(&program, &["--help"]).output("help");
    assert!(help.starts_with("Usage: EXAMPLE [DEVICE [NODE]]"), "{help}");
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for (language, program) in programs("vrdma") {
        for arguments in [&["sim:model", "1", "2"][..], &["eth0"], &["vfio-user:no/such.sock", "1"]]
        {
            let process = Process::start(&program, arguments);
            let output = process_output(process);
            assert!(!output.0 && !output.1.is_empty(), "{language} {arguments:?}: {output:?}");
        }
    }
}

/// Whether a program ended well, and what it wrote to standard error.
fn process_output(mut process: Process) -> (bool, String) {
    let status = process.0.wait().unwrap();
    let mut text = String::new();
    process.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (status.success(), text)
}
