//! Programs of SunRPC, made by rpcgen, on `tirpc_via.c`: a server and its clients, processes of their own on
//! `shm:`. They need gcc, rpcgen and libtirpc (`cargo xtask setup programs`).

#[expect(dead_code, reason = "these programs are compiled here")]
#[path = "../../../cosim/cli/src/c_program.rs"]
mod c_program;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

/// What `c_program` fails with.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A program takes seconds, more on a busy machine; after this it hangs.
const HANGS: Duration = Duration::from_secs(60);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Runs a tool, which must end well.
fn run(folder: &Path, line: &str) {
    let (tool, arguments) = line.split_once(' ').unwrap();
    let status = Command::new(tool).args(arguments.split(' ')).current_dir(folder).status();
    let needs = "needs gcc, libtirpc-dev and rpcsvc-proto: cargo xtask setup programs";
    let status = status.unwrap_or_else(|error| panic!("{tool}: {error}; {needs}"));
    assert!(status.success(), "`{line}` fails; {needs}");
}

/// The folder with `server`, `client`, and `plain`, a client that is linked with libtirpc alone.
fn programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("tirpc-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let root = c_program::root().canonicalize().unwrap().join("via-user");
        let own = root.join("libviarpc");
        symlink(c_program::library("libviarpc").unwrap(), folder.join("libviarpc.so")).unwrap();
        std::fs::copy(own.join("tests/tirpc/echo.x"), folder.join("echo.x")).unwrap();
        for (mode, file) in
            [("-h", "echo.h"), ("-c", "echo_xdr.c"), ("-l", "echo_clnt.c"), ("-m", "echo_svc.c")]
        {
            run(&folder, &format!("rpcgen {mode} -o {file} echo.x"));
        }
        let strict = "-Wall -Wextra -Werror -Wno-cast-function-type -Wno-unused";
        let headers = format!("-I. -I/usr/include/tirpc -I{}/include", root.display());
        let gcc =
            format!("gcc -std=gnu11 -O1 -g {strict} {headers} -Wl,-rpath,{}", folder.display());
        let (glue, tests) = (own.join("tirpc/tirpc_via.c"), own.join("tests/tirpc"));
        let (glue, tests) = (glue.display(), tests.display());
        run(
            &folder,
            &format!("{gcc} -shared -fPIC -o libtirpc_via.so {glue} -L. -lviarpc -ltirpc"),
        );
        let via = "-L. -ltirpc_via -lviarpc -ltirpc -lpthread";
        run(&folder, &format!("{gcc} -o server {tests}/server.c echo_svc.c echo_xdr.c {via}"));
        run(&folder, &format!("{gcc} -o client {tests}/client.c echo_clnt.c echo_xdr.c {via}"));
        run(&folder, &format!("{gcc} -o plain {tests}/client.c echo_clnt.c echo_xdr.c -ltirpc"));
        folder
    })
}

/// A folder in which nodes meet. It goes with its handle.
struct Nodes(PathBuf);

impl Nodes {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tirpc-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }

    fn start(&self, program: &str, arguments: &[&str], preload: &str) -> Process {
        let mut command = Command::new(programs().join(program));
        command.args(arguments).env("XDG_RUNTIME_DIR", &self.0).env_remove("VIADUCT_DEVICE");
        if !preload.is_empty() {
            command.env("LD_PRELOAD", programs().join(preload));
        }
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Process { process, output }
    }

    fn client(&self, arguments: &[&str]) -> Process {
        self.start("client", arguments, "")
    }

    /// A server that serves; the port at which it does so by TCP.
    fn server(&self) -> (Process, String) {
        let mut server = self.start("server", &[], "");
        let port = server.line();
        (server, port)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that is killed with its handle.
struct Process {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// The next line that it writes, if it does not hang.
    fn line(&mut self) -> String {
        if self.output.buffer().is_empty() {
            let mut wanted = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
            assert_ne!(poll(&mut wanted, Some(&HANGS.try_into().unwrap())), Ok(0), "it hangs");
        }
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it has ended");
        line.trim().to_owned()
    }

    /// It ends well.
    fn ends_well(mut self, what: &str) {
        let end = Instant::now() + HANGS;
        let status = loop {
            match self.process.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(Instant::now() < end, "{what} hangs"),
            }
            std::thread::sleep(LOOK);
        };
        assert!(status.success(), "{what}: {status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn programs_of_rpcgen_call_over_via_and_over_tcp() {
    let nodes = Nodes::new("calls");
    let (server, port) = nodes.server();
    // The server is the first node.
    let both = [nodes.client(&["calls", "localhost"]), nodes.client(&["calls", "node0"])];
    nodes.client(&["tcp", &port]).ends_well("a call by TCP");
    both.into_iter().for_each(|client| client.ends_well("calls of two at once"));
    let preloaded = nodes.start("plain", &["calls", "localhost"], "libtirpc_via.so");
    preloaded.ends_well("calls of a program that is linked with libtirpc alone");
    nodes.client(&["stop", "localhost"]).ends_well("the call that ends the server");
    server.ends_well("the server");
}

#[test]
fn errors_of_calls_are_those_of_sunrpc() {
    let nodes = Nodes::new("errors");
    let (_server, _) = nodes.server();
    nodes.client(&["errors", "node0"]).ends_well("the errors");
}

#[test]
fn a_client_of_a_killed_server_has_its_call_fail() {
    let nodes = Nodes::new("killed");
    let (server, _) = nodes.server();
    let mut client = nodes.client(&["killed", "localhost"]);
    assert_eq!(client.line(), "calls");
    // Its call is at the server now, or soon.
    std::thread::sleep(10 * LOOK);
    drop(server);
    client.ends_well("the client");
}
