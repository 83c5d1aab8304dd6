//! Another process, and what it says.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Longest wait for what does come; only a test that fails waits so long.
pub(crate) const BOUND: Duration = Duration::from_secs(60);
/// What a line to the test begins with; the others are libtest's.
const MARK: &str = "@";

/// What a process is started with.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) folder: PathBuf,
    pub(crate) arguments: Vec<String>,
}

impl Setting {
    pub(crate) fn of_this_process() -> Self {
        let folder = std::env::var_os("SHM_FOLDER").unwrap().into();
        let arguments = std::env::var("SHM_ARGUMENTS").unwrap();
        Self { folder, arguments: arguments.split(' ').map(str::to_owned).collect() }
    }

    pub(crate) fn number<T: core::str::FromStr>(&self, index: usize) -> T {
        self.arguments[index].parse().ok().expect("a number")
    }
}

/// Says something to the test.
pub(crate) fn say(text: &str) {
    // Not by `print`, which libtest captures in some threads.
    let line = format!("\n{MARK}{text}\n");
    let _ = rustix::io::write(std::io::stdout(), line.as_bytes());
}

/// Says something to whoever reads the output of a test: with its failure, or with `--nocapture`.
#[expect(clippy::print_stderr, reason = "results of measurements")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

/// The test's next line; None if it ended.
pub(crate) fn next_line() -> Option<String> {
    let mut line = String::new();
    let length = std::io::stdin().lock().read_line(&mut line).unwrap();
    (length > 0).then(|| line.trim_end().to_owned())
}

/// Another process.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

/// This program, in a role.
pub(crate) fn command(role: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["as_a_peer", "--exact", "--nocapture", "--test-threads=1"]);
    command.env("SHM_ROLE", role).env("SHM_FOLDER", folder);
    command.env("SHM_ARGUMENTS", arguments.join(" "));
    command
}

impl Peer {
    pub(crate) fn start(role: &str, folder: &Path, arguments: &[&str]) -> Self {
        Self::of(&mut command(role, folder, arguments))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if let Some(text) = line.strip_prefix(MARK) {
                    let _ = send.send(text.to_owned());
                }
            }
        });
        Self { child, input, lines }
    }

    /// What it says next.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(BOUND).expect("the process says something")
    }

    /// What it has said.
    pub(crate) fn said(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    pub(crate) fn tell(&mut self, text: &str) {
        writeln!(self.input, "{text}").unwrap();
    }

    pub(crate) fn ask(&mut self, text: &str) -> String {
        self.tell(text);
        self.line()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Stops it, and waits until all its threads are.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let stopped = waitpid(Some(Pid::from_child(&self.child)), WaitOptions::UNTRACED);
        assert!(stopped.unwrap().is_some_and(|(_, status)| status.stopped()));
    }

    /// What a server has, which says nothing else meanwhile.
    pub(crate) fn held(&mut self) -> Held {
        let line = self.ask("held");
        let numbers: Vec<usize> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        Held { fds: numbers[0], threads: numbers[1], mappings: numbers[2] }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Asks it to end, and waits until it has, without an error.
    pub(crate) fn end(mut self) {
        self.tell("end");
        let end = Instant::now() + BOUND;
        while self.is_running() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        let status = self.child.try_wait().unwrap();
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Names of this process's threads.
pub(crate) fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // One that has ended meanwhile has none.
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    tasks.filter_map(name).map(|name| name.trim_end().to_owned()).collect()
}

/// Descriptors, threads, and mappings of memory files that this process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) fds: usize,
    pub(crate) threads: usize,
    pub(crate) mappings: usize,
}

impl Held {
    pub(crate) fn now() -> Self {
        let fds = std::fs::read_dir("/proc/self/fd").unwrap().count();
        // Those of nodes: libtest has its own.
        let threads = threads().iter().filter(|name| name.starts_with("shm ")).count();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mappings = maps.lines().filter(|line| line.contains("memfd:viaduct")).count();
        Self { fds, threads, mappings }
    }

    /// Waits until this process has no more than it had at that time: other threads may still close
    /// what they had, then and now.
    pub(crate) fn settle(self) {
        self.settle_by(Self::now);
    }

    /// The same of another process.
    pub(crate) fn settle_by(self, mut now: impl FnMut() -> Self) {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let found = now();
            if found.fds <= self.fds
                && found.threads <= self.threads
                && found.mappings <= self.mappings
            {
                return;
            }
            assert!(Instant::now() < end, "{found:?}, and before {self:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl core::fmt::Display for Held {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} {} {}", self.fds, self.threads, self.mappings)
    }
}
