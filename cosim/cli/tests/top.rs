//! What `viaduct top` and `viaduct run --stats` say of programs while they run, once they have ended, and
//! when they were killed.

#[expect(dead_code, reason = "its programs send and receive otherwise")]
mod place;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use place::Place;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Bound of what must happen.
const SOON: Duration = Duration::from_secs(30);

/// Answers each connection with what comes by it, a thread for each.
const SERVER: &str = "
import socket, threading
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
def echo(connection):
    try:
        while data := connection.recv(65536):
            connection.sendall(data)
    except ConnectionError:
        pass
while True:
    threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()
";

/// A connection, whose orders come line by line: bytes to send and to take back, or words.
const CLIENT: &str = "
import os, signal, socket, sys, time
def exchange(connection, count):
    connection.sendall(bytes(count))
    while count:
        count -= len(connection.recv(count))
def warm(port):
    connection = socket.create_connection(('127.0.0.1', port))
    for turn in range(60):
        exchange(connection, 5)
        if turn == 30:
            time.sleep(0.2)
    return connection
";

/// Goes on after [`CLIENT`].
const ORDERS: &str = "
connection = warm(int(sys.argv[1]))
print('ready', flush=True)
for line in sys.stdin:
    exchange(connection, int(line))
    print('done', flush=True)
";

/// Goes on after [`CLIENT`]: a connection that moves, one whose other end is not run so, one that is over
/// soon, and a child's, which is killed.
const MANY: &str = "
moving, staying = int(sys.argv[1]), int(sys.argv[2])
if sys.argv[3] == 'parent':
    import subprocess
    child = [sys.executable, '-c', sys.argv[4], sys.argv[1], sys.argv[2], 'child', '']
    assert subprocess.run(child).returncode == -signal.SIGKILL
    warm(moving).close()
    warm(staying).close()
    socket.create_connection(('127.0.0.1', moving)).sendall(b'x')
    sys.exit(7)
connection = warm(moving)
exchange(connection, 1000000)
os.kill(os.getpid(), signal.SIGKILL)
";

impl Place {
    fn viaduct(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_viaduct"));
        command.args(arguments).env("XDG_RUNTIME_DIR", &self.0).env_remove("VIADUCT_DEVICE");
        command
    }

    /// Starts a program in Python under `viaduct run`.
    fn run(&self, options: &[&str], text: &str, arguments: &[&str]) -> Program {
        let program = ["python3", "-c", text];
        let mut command = self.viaduct(&[&["run"], options, &program, arguments].concat());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Program::start(piped)
    }

    fn files(&self) -> usize {
        fs::read_dir(self.0.join("viaduct/sovia/status")).map_or(0, Iterator::count)
    }

    /// Processes of `viaduct top`.
    fn processes(&self) -> Vec<Value> {
        let output = self.viaduct(&["top", "--once", "--json"]).output().expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let object: Value = serde_json::from_slice(&output.stdout).expect("an object");
        object["processes"].as_array().expect("processes").clone()
    }

    /// Looks until all is as wanted.
    fn until<T>(&self, what: &str, wanted: impl Fn(&[Value]) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            let processes = self.processes();
            if let Some(found) = wanted(&processes) {
                return found;
            }
            assert!(start.elapsed() < SOON, "{what}: {processes:#?}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A program that is killed at the end of the test.
struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("it starts");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, input, output }
    }

    /// The next line that it writes, soon.
    fn line(&mut self) -> String {
        if self.output.buffer().is_empty() {
            let mut wanted = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
            let soon = SOON.try_into().expect("a time");
            assert_ne!(poll(&mut wanted, Some(&soon)), Ok(0), "it writes nothing");
        }
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    fn order(&mut self, bytes: usize) {
        writeln!(self.input, "{bytes}").expect("it reads");
        assert_eq!(self.line(), "done");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Not by SIGKILL, which its own child would not see.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

/// The connections of all processes that have a port at one end.
fn connections(processes: &[Value], end: &str, port: u16) -> Vec<Value> {
    let of = |process: &Value| process["connections"].as_array().expect("connections").clone();
    let address = format!("127.0.0.1:{port}");
    processes.iter().flat_map(of).filter(|it| it[end] == address).collect()
}

fn only<'a>(found: &'a [Value], state: &str) -> Option<&'a Value> {
    found.iter().find(|it| it["state"] == state)
}

/// A thread that answers connections and is not run under anything; its port.
fn plain_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut bytes) {
                    if stream.write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn connections_are_seen_while_they_run_and_not_once_their_process_was_killed() {
    let place = Place::new("top");
    let nothing = place.viaduct(&["top", "--once"]).output().expect("it starts");
    assert_eq!(nothing.status.code(), Some(0));
    assert!(text(&nothing).contains("nothing is accelerated"), "{}", text(&nothing));
    let mut server = place.run(&[], SERVER, &[]);
    let port: u16 = server.line().parse().expect("a port");
    let client = [CLIENT, ORDERS].concat();
    let mut client = place.run(&["--device", "shm:"], &client, &[&port.to_string()]);
    assert_eq!(client.line(), "ready");
    client.order(100);
    let count = |it: &Value, what: &str| it[what].as_u64().expect("a count");
    // Bytes are there before who sent them has counted them.
    let ends = |processes: &[Value]| {
        let [near, far] = ["local", "peer"].map(|end| connections(processes, end, port));
        let [near, far] = [only(&near, "VIA")?.clone(), only(&far, "VIA")?.clone()];
        let are_counted = [(&near, &far), (&far, &near)]
            .iter()
            .all(|(from, to)| count(from, "sent") == count(to, "received"));
        are_counted.then_some([near, far])
    };
    let [of_server, of_client] = place.until("both ends are on VIA and count the same", ends);
    client.order(100_000);
    let [server_after, client_after] = place.until("both ends count the same", ends);
    for (before, after) in [(&of_server, &server_after), (&of_client, &client_after)] {
        for way in ["sent", "received"] {
            assert_eq!(count(after, way) - count(before, way), 100_000, "{after}");
        }
        assert!(after["reason"].is_null() && count(after, "window") == 32, "{after}");
        assert!((1..=32).contains(&count(after, "credits")), "{after}");
    }
    assert_eq!(server_after["local"], client_after["peer"]);
    let processes = place.processes();
    let its = |process: &&Value| process["connections"][0]["peer"] == of_client["peer"];
    let of_client = processes.iter().find(its).expect("the client");
    assert_eq!(of_client["device"], "shm:");
    assert!(of_client["program"].as_str().expect("a name").starts_with("python3"));
    assert!(of_client["nic"].as_str().expect("a name").starts_with("shm"));

    // One whose other end is not run so.
    let mut plain = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    for _ in 0..10 {
        plain.write_all(b"x").expect("it reads");
        plain.read_exact(&mut [0]).expect("it answers");
    }
    let plain_port = plain.local_addr().expect("it is bound").port();
    place.until("one that stays has its reason", |processes| {
        let found = connections(processes, "peer", plain_port);
        let stays = only(&found, "TCP")?;
        (stays["reason"] == "nobody has offered its other end").then_some(())
    });
    let table = place.viaduct(&["top", "--once"]).output().expect("it starts");
    let table = text(&table);
    for wanted in ["2 processes, 3 connections, 2 by VIA", "nobody has offered", "/32"] {
        assert!(table.contains(wanted), "no {wanted:?} in\n{table}");
    }

    let pid = of_client["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    kill_process(pid.and_then(Pid::from_raw).expect("a process"), Signal::KILL).expect("it runs");
    client.child.wait().expect("its end");
    assert_eq!(place.files(), 2, "nobody has looked since");
    place.until("the killed one is not shown", |processes| (processes.len() == 1).then_some(()));
    assert_eq!(place.files(), 1);
    drop(server);
}

#[test]
fn rates_come_with_the_second_reading_and_ctrl_c_is_a_good_end() {
    let place = Place::new("top-rates");
    let mut server = place.run(&[], SERVER, &[]);
    let port = server.line();
    let mut client = place.run(&[], &[CLIENT, ORDERS].concat(), &[&port]);
    assert_eq!(client.line(), "ready");
    client.order(100);
    let mut command = place.viaduct(&["top", "--json", "--interval", "0.2"]);
    let mut top = Program::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut rate = |top: &mut Program| {
        client.order(10_000);
        let reading: Value = serde_json::from_str(&top.line()).expect("an object");
        reading["processes"][0]["connections"][0]["sent_per_second"].as_u64()
    };
    assert_eq!(rate(&mut top), None);
    let start = Instant::now();
    while rate(&mut top).is_none_or(|rate| rate == 0) {
        assert!(start.elapsed() < SOON, "no rate");
    }
    kill_process(Pid::from_child(&top.child), Signal::INT).expect("it runs");
    assert_eq!(top.child.wait().expect("its end").code(), Some(0));
}

#[test]
fn a_run_ends_with_sums_over_its_processes_also_the_killed_ones() {
    let place = Place::new("run-stats");
    let mut server = place.run(&[], SERVER, &[]);
    let (moving, staying) = (server.line(), plain_server().to_string());
    let program = [CLIENT, MANY].concat();
    let arguments = ["python3", "-c", &program, &moving, &staying, "parent", &program];
    let mut command = place.viaduct(&[&["run", "--stats"], &arguments[..]].concat());
    let output = command.output().expect("it starts");
    let text = text(&output);
    assert_eq!(output.status.code(), Some(7), "{text}");
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).trim().to_owned()
    };
    assert!(text.contains("4 ends of TCP connections in 2 processes"), "{text}");
    assert_eq!(value("moved to VIA"), "2");
    assert_eq!(value("stayed TCP"), "2");
    assert_eq!(value("1 nobody has offered its other end"), "");
    assert_eq!(value("1 it was over before its fourth call"), "");
    for way in ["sent by VIA", "received by VIA"] {
        // Of the killed child, and a little of the warm-ups.
        let bytes = value(way);
        let bytes = bytes.split(['(', ' ']).find_map(|word| word.parse().ok().filter(|it| *it > 9));
        let bytes: u64 = bytes.unwrap_or_else(|| panic!("{text}"));
        assert!((1_000_001..1_001_000).contains(&bytes), "{way}: {text}");
    }
    assert_eq!(place.files(), 1, "the server's");
}

#[test]
fn a_program_goes_on_where_nothing_can_be_shown() {
    let place = Place::new("top-nowhere");
    let folder = place.0.join("viaduct/sovia");
    for path in [&place.0.join("viaduct"), &folder] {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new().mode(0o700).create(path).expect("a folder");
    }
    fs::write(folder.join("status"), "in the way").expect("a file");
    let mut server = place.run(&[], SERVER, &[]);
    let port = server.line();
    let program = [CLIENT, "warm(int(sys.argv[1])); warm(int(sys.argv[1]))"].concat();
    let arguments = ["run", "--verbose", "--stats", "python3", "-c", &program, &port];
    let output = place.viaduct(&arguments).output().expect("it starts");
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(text.matches("goes by VIA").count(), 2, "{text}");
    assert_eq!(text.matches("`viaduct top` does not show this process").count(), 1, "{text}");
    assert!(text.contains("no statistics"), "{text}");
    let top = place.viaduct(&["top", "--once"]).output().expect("it starts");
    assert_eq!(top.status.code(), Some(1));
}
