//! Requests between processes under `viaduct run`, as a process of the same user may repeat, change or
//! invent them: a connection that has moved goes on.

mod place;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use place::{Place, TAKE};
use sovia::{Device, Policy, TcpStream};
use vipl::{NetAddress, Nic, Reliability};

/// Two processes and a connection that has moved, of which each sends a megabyte once it is asked to; after
/// [`TAKE`].
const PAIR: &str = "
import os, socket, sys, time
listener = socket.create_server(('127.0.0.1', 0))
is_client = os.fork() == 0
if is_client:
    connection = socket.create_connection(listener.getsockname())
else:
    connection, _ = listener.accept()
for turn in range(60):
    if is_client:
        connection.sendall(b'hello')
    assert take(connection, 5) == b'hello'
    if not is_client:
        connection.sendall(b'hello')
    if turn == 30:
        time.sleep(0.2)
if is_client:
    assert take(connection, 1000000) == b's' * 1000000
    connection.sendall(b'c' * 1000000)
    os._exit(0)
print('ready', flush=True)
sys.stdin.readline()
connection.sendall(b's' * 1000000)
assert take(connection, 1000000) == b'c' * 1000000
assert connection.recv(1) == b''
os.wait()
print('whole', flush=True)
";

/// In the environment of the process that asks: a file of requests, each a line: host, discriminator.
const REQUESTS: &str = "VIADUCT_TEST_REQUESTS";
/// Where processes under `viaduct run` listen, and the kind and revision of a request for a link.
const DISCRIMINATOR: &[u8] = b"viaduct run";
const LINK: u8 = b'L';
const REVISION: u8 = 1;

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("digits");
    (0..text.len()).step_by(2).map(byte).collect()
}

/// An end of a connection as requests have it, from the name of its claim; as the other end asks for it.
fn asked_for(name: &str) -> Vec<u8> {
    let words: Vec<&str> = name.split('-').collect();
    let [network, local, remote] = words[..] else { panic!("{name}") };
    let mut bytes = network.parse::<u64>().expect("a number").to_be_bytes().to_vec();
    for end in [remote, local] {
        let end: SocketAddr = end.parse().expect("an address");
        let IpAddr::V4(address) = end.ip() else { panic!("{name}") };
        bytes.extend(address.to_ipv6_mapped().octets());
        bytes.extend(end.port().to_be_bytes());
    }
    bytes
}

/// The claims of connections that are offered: names, and hosts of their processes.
fn offers(folder: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).expect("claims").flatten();
    let offer = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        let words: Vec<&str> = target.to_str()?.split(' ').collect();
        let [kind, _, host] = words[..] else { return None };
        (kind == "offer").then(|| (entry.file_name().into_string().unwrap(), host.to_owned()))
    };
    entries.filter_map(offer).collect()
}

/// Asks, in a process that the test below starts.
#[test]
fn requests_are_made_by_a_process_that_a_test_starts() {
    let Some(requests) = env::var_os(REQUESTS) else { return };
    let nic = Nic::open(device::open("shm:").expect("a device"));
    let policy = Policy { reliability: Reliability::Reception, ..Policy::DACKS };
    let device = Device::new(nic, policy).expect("a device for streams");
    for line in fs::read_to_string(requests).expect("requests").lines() {
        let (host, discriminator) = line.split_once(' ').expect("two words");
        let local = NetAddress::new(&device.host(), &from_hex(discriminator));
        let peer = NetAddress::new(&from_hex(host), DISCRIMINATOR);
        let stream = TcpStream::connect_to(&device, &local, &peer).expect("somebody listens");
        // Nobody says that it has it.
        let found = (&stream).read(&mut [0]);
        assert!(matches!(found, Ok(0) | Err(_)), "{discriminator}: {found:?}");
    }
}

#[test]
fn requests_that_are_repeated_changed_or_none_leave_a_connection_alone() {
    let place = Place::new("requests");
    let base = &place.0;
    let mut pair = Command::new("timeout")
        .args(["60", env!("CARGO_BIN_EXE_viaduct"), "run", "--verbose", "python3", "-c"])
        .arg([TAKE, PAIR].concat())
        .env("XDG_RUNTIME_DIR", base)
        .env_remove("VIADUCT_DEVICE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut output = BufReader::new(pair.stdout.take().expect("its output"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    let offers = offers(&base.join("viaduct/sovia"));
    assert_eq!(offers.len(), 2, "{offers:?}");
    let mut requests = String::new();
    for (name, host) in &offers {
        let key = asked_for(name);
        let link = [&[LINK], &key[..], &[REVISION]].concat();
        let other = [&[LINK], &key[..], &[REVISION + 1]].concat();
        for discriminator in [&link, &link, &other, &link[..20].to_vec(), &b"forged".to_vec()] {
            requests += &format!("{host} {}\n", to_hex(discriminator));
        }
    }
    let file = base.join("requests");
    fs::write(&file, requests).expect("a file");
    let asked = Command::new(env::current_exe().expect("this test"))
        .args(["--exact", "requests_are_made_by_a_process_that_a_test_starts"])
        .env(REQUESTS, &file)
        .env("XDG_RUNTIME_DIR", base)
        .output()
        .expect("it starts");
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stdout));
    writeln!(pair.stdin.take().expect("its input")).expect("it reads");
    line.clear();
    output.read_line(&mut line).expect("a line");
    let ended = pair.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(line, "whole\n", "{said}");
    assert_eq!(said.matches("goes by VIA").count(), 2, "{said}");
    assert_eq!(said.matches("a request that is none was refused").count(), 4, "{said}");
    assert!(!said.contains("TCP"), "{said}");
}
