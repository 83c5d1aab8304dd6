//! `viaduct lane` in namespaces of its own, with the kernel's ping, TCP and broadcast. Where there are no
//! TUN devices or no namespaces to be had, the test says so and ends.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, ipproto, socket, sockopt};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Bound of what must happen.
const SOON: Duration = Duration::from_secs(20);

/// A lane in a network namespace, and the lines that it prints.
struct Lane {
    child: Child,
    lines: Receiver<String>,
}

impl Lane {
    fn start(runtime: &Path, node: u8, more: &[&str]) -> Self {
        let mut child = Command::new("unshare")
            .args(["--net", env!("CARGO_BIN_EXE_viaduct"), "lane", "--device", "shm:"])
            .args(["--address", &format!("10.7.0.{node}/24")])
            .args(["--address", &format!("fd07::{node}/64")])
            .args(more)
            .env("XDG_RUNTIME_DIR", runtime)
            .env_remove("VIADUCT_DEVICE")
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, lines) = mpsc::channel();
        // It ends with the lane, or when nobody asks any more.
        thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let lane = Self { child, lines };
        lane.line(&format!("carries 10.7.0.{node}/24, fd07::{node}/64 by shm"));
        lane
    }

    /// Waits for a line that contains a text.
    fn line(&self, wanted: &str) -> String {
        self.lines(vec![wanted.into()])
    }

    /// Waits for lines that contain these texts, in any order; gives the last one.
    fn lines(&self, mut wanted: Vec<String>) -> String {
        loop {
            let line = self.lines.recv_timeout(SOON);
            let line = line.unwrap_or_else(|why| panic!("the lane does not say {wanted:?}: {why}"));
            wanted.retain(|text| !line.contains(text));
            if wanted.is_empty() {
                return line;
            }
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Does something in a thread that is in the lane's namespace.
    fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let namespace = format!("/proc/{}/ns/net", self.child.id());
        let namespace = File::open(namespace).expect("its namespace");
        let enter = move || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), network).expect("its namespace");
            act()
        };
        thread::scope(|scope| scope.spawn(enter).join().expect("no panic"))
    }

    /// Ends the lane as Ctrl-C does; gives its last line.
    fn stop(mut self, signal: Signal) -> String {
        kill_process(self.pid(), signal).expect("it runs");
        let line = self.line(": sent ");
        assert_eq!(self.child.wait().expect("its end").code(), Some(0));
        line
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Why there can be no lanes here, if so.
fn obstacle() -> Option<String> {
    if let Err(why) = File::options().read(true).write(true).open("/dev/net/tun") {
        return Some(format!("/dev/net/tun: {why}"));
    }
    let lane =
        [env!("CARGO_BIN_EXE_viaduct"), "lane", "--device", "no-such:", "--address", "10.7.0.1/24"];
    match Command::new("unshare").arg("--net").args(lane).output() {
        Err(why) => Some(format!("unshare: {why}")),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            text.starts_with("unshare:").then_some(text)
        }
    }
}

/// An echo request of the kernel's ICMP, and its answer.
fn ping(to: IpAddr) {
    let (family, protocol, request, answer) = if to.is_ipv4() {
        (AddressFamily::INET, ipproto::ICMP, 8, 0)
    } else {
        (AddressFamily::INET6, ipproto::ICMPV6, 128, 129)
    };
    let socket = socket(family, SocketType::RAW, Some(protocol)).expect("a raw socket");
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(SOON)).expect("a bound");
    let mut packet = [request, 0, 0, 0, 7, 7, 0, 1];
    let sum: u32 = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    // Of ICMPv6 the kernel makes it.
    let check = !u16::try_from(sum).expect("a short packet");
    packet[2..4].copy_from_slice(&check.to_be_bytes());
    let flags = rustix::net::SendFlags::empty();
    rustix::net::sendto(&socket, &packet, flags, &SocketAddr::new(to, 0)).expect("it is sent");
    let mut buffer = [0; 256];
    loop {
        let (length, _) =
            rustix::net::recv(&socket, &mut buffer[..], rustix::net::RecvFlags::empty())
                .expect("an answer");
        // IPv4 gives its header, too.
        let answered = &buffer[if to.is_ipv4() { 20 } else { 0 }..length];
        if answered[0] == answer && answered[4..] == packet[4..] {
            return;
        }
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251).to_le_bytes()[0]).collect()
}

/// Bytes from one lane to another by TCP, compared.
fn transfer(from: &Lane, to: &Lane, address: &str) {
    let bytes = pattern(8 << 20);
    let listener = to.inside(|| TcpListener::bind((address, 0)).expect("a listener"));
    let at = listener.local_addr().expect("it is bound");
    thread::scope(|scope| {
        let received = scope.spawn(move || {
            let mut all = Vec::new();
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.set_read_timeout(Some(SOON)).expect("a bound");
            stream.read_to_end(&mut all).expect("all bytes");
            all
        });
        let mut stream =
            from.inside(|| TcpStream::connect_timeout(&at, SOON).expect("a connection"));
        stream.write_all(&bytes).expect("all bytes");
        drop(stream);
        assert!(received.join().expect("no panic") == bytes, "{address}");
    });
}

/// A datagram to everyone.
fn broadcast(from: &Lane, to: &[&Lane]) {
    let bind = || UdpSocket::bind("0.0.0.0:7707").expect("a port");
    let receivers: Vec<UdpSocket> = to.iter().map(|lane| lane.inside(bind)).collect();
    let sender = from.inside(bind);
    sender.set_broadcast(true).expect("it may");
    sender.send_to(b"everyone", "10.7.0.255:7707").expect("it is sent");
    for receiver in receivers {
        receiver.set_read_timeout(Some(SOON)).expect("a bound");
        let mut buffer = [0; 64];
        let (length, source) = receiver.recv_from(&mut buffer).expect("a datagram");
        assert_eq!(
            (&buffer[..length], source.to_string().as_str()),
            (&b"everyone"[..], "10.7.0.1:7707")
        );
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_kernels_ip_goes_by_via_between_namespaces() {
    if let Some(obstacle) = obstacle() {
        // Past the harness, which shows what a test prints only if it fails.
        let _ = writeln!(std::io::stderr(), "skipped: no lanes can be had here: {obstacle}");
        return;
    }
    let folder = Folder(std::env::temp_dir().join(format!("viaduct-lane-{}", std::process::id())));
    fs::create_dir_all(&folder.0).expect("a folder");
    let one = Lane::start(&folder.0, 1, &[]);
    let mut two = Lane::start(&folder.0, 2, &[]);
    let three = Lane::start(&folder.0, 3, &["--name", "via0"]);
    for (lane, others) in [(&one, [2, 3]), (&two, [1, 3]), (&three, [1, 2])] {
        lane.lines(others.map(|other| format!("10.7.0.{other}, fd07::{other}")).to_vec());
    }
    for address in ["10.7.0.2", "fd07::3"] {
        one.inside(|| ping(address.parse().expect("an address")));
    }
    transfer(&one, &two, "10.7.0.2");
    transfer(&three, &one, "fd07::1");
    broadcast(&one, &[&two, &three]);
    // One that is killed, and comes back.
    two.child.kill().expect("it runs");
    one.line("10.7.0.2, fd07::2 (node1) is down");
    drop(two);
    let two = Lane::start(&folder.0, 2, &[]);
    one.line("10.7.0.2, fd07::2 (node1) is up");
    transfer(&two, &one, "10.7.0.1");
    assert!(one.stop(Signal::INT).contains("; dropped "));
    three.line("10.7.0.1, fd07::1 (node0) is down");
    assert!(three.stop(Signal::TERM).starts_with("via0: sent "));
    two.stop(Signal::TERM);
}

#[test]
fn what_cannot_be_carried_is_refused() {
    let run = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_viaduct")).arg("lane").args(arguments).output();
        let output = output.expect("it starts");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), text)
    };
    for (arguments, code, wanted) in [
        (&[][..], 2, "--address"),
        (&["--address", "10.7.0.0/24"], 2, "is the address of the network itself"),
        (&["--address", "10.7.0.1/24", "--mtu", "1000"], 2, "1280"),
        (&["--address", "10.7.0.1/24", "--device", "no-such:"], 1, "no-such:"),
        (
            &["--address", "10.7.0.1/24", "--device", "sim:model", "--peer", "nobody"],
            1,
            "--peer nobody",
        ),
        (&["--address", "10.7.0.1/24", "--device", "sim:model", "--name", "a/b"], 1, "'a/b'"),
    ] {
        let (was, text) = run(arguments);
        assert_eq!(was, Some(code), "{text}");
        assert!(text.contains(wanted), "{text}");
    }
}
