//! Programs of several processes on a shared simulator.
//!
//! A test starts the simulator and other programs as processes: copies of the test binary that run
//! one test, [`ROLE_TEST`], which does what the environment says. They tell what happens by lines on
//! standard output that begin with `@`; the end of their standard input asks them to stop.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use cosim::serve::{Config, Server};
use host_driver::Error;
use host_driver::bus::vfio_user::VfioUserBus;
use host_driver::nic::NicConfig;
use nic_model::Model;
use nic_model::link::Faults;

use crate::Node;

/// The test that every started process runs.
pub const ROLE_TEST: &str = "served::role";
/// What a started process is.
const ROLE: &str = "VIADUCT_TEST_ROLE";
/// The folder of the sockets.
const FOLDER: &str = "VIADUCT_TEST_FOLDER";
/// Bound of everything that another process is to do.
pub const SOON: Duration = Duration::from_secs(30);

/// A started process; it is killed with its handle.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Process {
    fn start(folder: &Path, role: &str, more: &[(&str, &str)]) -> Self {
        let own = env::current_exe().expect("the path of this test");
        let mut child = Command::new(own)
            .args([ROLE_TEST, "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(FOLDER, folder)
            .envs(more.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The harness may have begun the line.
                if let Some(at) = line.find('@')
                    && sender.send(line[at + 1..].to_owned()).is_err()
                {
                    return;
                }
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// Starts a program of this test binary.
    #[must_use]
    pub fn program(folder: &Path, role: &str) -> Self {
        Self::start(folder, role, &[])
    }

    /// The same with variables in its environment.
    #[must_use]
    pub fn program_with(folder: &Path, role: &str, variables: &[(&str, &str)]) -> Self {
        Self::start(folder, role, variables)
    }

    /// The number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it says a line that begins so; gives the rest of the line.
    ///
    /// # Panics
    /// If it does not, [`SOON`].
    pub fn expect(&mut self, start: &str) -> String {
        loop {
            match self.lines.recv_timeout(SOON) {
                Ok(line) => match line.strip_prefix(start) {
                    Some(rest) => return rest.trim().to_owned(),
                    None => self.seen.push(line),
                },
                Err(error) => panic!("no {start:?} ({error}), but {:?}", self.seen),
            }
        }
    }

    /// Kills it, as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop and waits until it did.
    ///
    /// # Panics
    /// If it fails.
    pub fn stop(mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status}");
    }

    /// Processor time that it has used.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        cpu_time(&format!("/proc/{}/stat", self.id()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Processor time of a process or a thread, of its `stat` file.
///
/// # Panics
/// If it has ended.
#[must_use]
pub fn cpu_time(stat: &str) -> Duration {
    let text = fs::read_to_string(stat).expect("a process that runs");
    // The name, in parentheses, may have spaces; user and system time are words 14 and 15.
    let words = text.rsplit(')').next().expect("words").split_whitespace();
    let ticks: u64 = words.skip(11).take(2).map(|word| word.parse::<u64>().expect("ticks")).sum();
    Duration::from_millis(ticks * 10)
}

/// A simulator in a process of its own, and the folder of its sockets.
#[derive(Debug)]
pub struct Simulator {
    process: Process,
    folder: PathBuf,
}

impl Simulator {
    /// Starts one; `name` is the test's, so that each has a folder of its own.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(name: &str, nodes: u8, loss: f64) -> Self {
        let folder = env::temp_dir().join(format!("viaduct-{name}-{}", std::process::id()));
        Self::start_at(folder, nodes, loss)
    }

    /// Starts another one in the folder of one that was killed.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start_at(folder: PathBuf, nodes: u8, loss: f64) -> Self {
        let settings =
            [("VIADUCT_TEST_NODES", nodes.to_string()), ("VIADUCT_TEST_LOSS", loss.to_string())];
        let settings: Vec<_> = settings.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let mut process = Process::start(&folder, "simulator", &settings);
        process.expect("ready");
        Self { process, folder }
    }

    /// Its process.
    pub const fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The folder of its sockets.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The socket of a node.
    #[must_use]
    pub fn socket(&self, node: u8) -> PathBuf {
        socket(&self.folder, node)
    }

    /// A node of it, for a program in this process.
    #[must_use]
    pub fn open(&self, node: u8) -> Node {
        open(&self.folder, node)
    }

    /// Stops it; it must leave nothing behind.
    ///
    /// # Panics
    /// If it does.
    pub fn stop(self) {
        self.process.stop();
        fs::remove_dir(&self.folder).expect("a folder without sockets");
    }
}

fn socket(folder: &Path, node: u8) -> PathBuf {
    folder.join(format!("nic{node}.sock"))
}

/// Tries until nobody else has what was let go here. A program that another test starts holds copies
/// of all descriptors for a moment, and with them a connection that was closed here.
///
/// # Panics
/// If `what` is still in use after ten seconds.
pub fn when_free<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(free) = attempt() {
            return free;
        }
        assert!(Instant::now() < end, "still in use: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Connects to a node of the simulator, and gives how a driver is configured for it.
///
/// # Panics
/// If it is not there.
#[must_use]
pub fn connect(folder: &Path, node: u8) -> (Arc<VfioUserBus>, NicConfig) {
    let bus = when_free("the NIC", || match VfioUserBus::connect(&socket(folder, node)) {
        Err(Error::InUse { .. }) => None,
        bus => Some(bus.expect("a simulator")),
    });
    assert_eq!(bus.node(), node);
    let config = NicConfig::simulated(node, bus.nodes());
    (bus, config)
}

/// Brings up a node for a program.
///
/// # Panics
/// If the simulator is not there.
#[must_use]
pub fn open(folder: &Path, node: u8) -> Node {
    let (bus, config) = connect(folder, node);
    Node::open(bus, &config)
}

/// Says a line to the test that started this process.
#[expect(clippy::print_stdout, reason = "that is how they talk")]
pub fn say(line: &str) {
    println!("@{line}");
    let _ = io::stdout().flush();
}

/// Waits until the test wants this process to stop.
pub fn wait_for_stop() {
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
}

/// What this process is to do, and the folder of the sockets; None in the test itself. A simulator
/// is run here.
///
/// # Panics
/// If it cannot.
#[must_use]
pub fn role() -> Option<(String, PathBuf)> {
    let role = env::var(ROLE).ok()?;
    let folder = PathBuf::from(env::var_os(FOLDER).expect("a folder"));
    if role != "simulator" {
        return Some((role, folder));
    }
    let setting = |name: &str| env::var(AsRef::<OsStr>::as_ref(name)).expect("a setting");
    let loss = setting("VIADUCT_TEST_LOSS").parse().expect("a chance");
    let config = Config {
        nodes: setting("VIADUCT_TEST_NODES").parse().expect("a number"),
        latency: 20,
        faults: Faults { seed: 1, loss, corrupt: loss, ..Faults::default() },
        folder,
        device: Box::new(|_| Box::new(Model::default())),
    };
    let mut server = Server::start(config).expect("sockets");
    server.on_unreachable(|access| say(&format!("unreachable {access}")));
    say("ready");
    server.run(io::stdin().as_fd()).expect("it serves");
    None
}
