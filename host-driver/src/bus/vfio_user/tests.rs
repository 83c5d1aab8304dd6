//! The bus against simulators that misbehave; what it does with good ones is tested where they are
//! (`tests/e2e/served.rs`).

use std::os::unix::net::UnixListener;

use super::protocol::Header;
use super::socket::{Inbox, Received};
use super::*;

fn socket_path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("viaduct-{}-{name}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// What connecting gives if the simulator answers the first message so.
fn connect_to(name: &str, answer: impl Fn(Header) -> Vec<u8> + Send + 'static) -> Error {
    let path = socket_path(name);
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let Ok(Received::Message(first)) = Inbox::default().receive(stream.as_fd(), true) else {
            panic!("no message")
        };
        assert_eq!(first.header.command, Command::Version as u16);
        socket::send(stream.as_fd(), &answer(first.header), &[], true).unwrap();
    });
    let error = VfioUserBus::connect(&path).unwrap_err();
    server.join().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    error
}

#[test]
fn a_socket_without_a_simulator_is_named() {
    let path = socket_path("none");
    let text = VfioUserBus::connect(&path).unwrap_err().to_string();
    assert!(text.contains(path.to_str().unwrap()) && text.contains("cosim serve"), "{text}");
}

/// As of a simulator that was stopped: nobody accepts, and those that wait already fill its queue.
#[test]
fn a_simulator_that_accepts_nobody_is_not_waited_for_without_end() {
    let path = socket_path("stopped");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let first = socket::dial(&path, ANSWER_BOUND).unwrap();
    let error = socket::dial(&path, Duration::from_millis(20)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    assert!(error.to_string().contains("no connection"), "{error}");
    drop((first, listener));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_simulator_that_refuses_or_talks_nonsense_is_an_error() {
    let busy = connect_to("busy", |to| protocol::error_reply(to, protocol::errno::BUSY));
    assert!(busy.to_string().contains("another program"), "{busy}");
    let wrong = connect_to("wrong", |to| {
        let own = Version { version: (7, 0), ..Version::OWN };
        protocol::message(to.id, to.command, flag::REPLY, &[&own.to_bytes(false)])
    });
    assert!(wrong.to_string().contains("version"), "{wrong}");
    connect_to("other", |to| protocol::message(to.id + 1, to.command, flag::REPLY, &[]));
    connect_to("short", |to| Header { size: 3, flags: flag::REPLY, ..to }.to_bytes().to_vec());
    // Closes after it agreed.
    connect_to("closes", |to| {
        protocol::message(to.id, to.command, flag::REPLY, &[&Version::OWN.to_bytes(false)])
    });
}

/// A simulator of which only the protocol is there: it answers until it is left, and gives the
/// commands that came.
fn hollow(listener: &UnixListener) -> Vec<Command> {
    let (stream, _) = listener.accept().unwrap();
    let mut inbox = Inbox::default();
    let mut seen = Vec::new();
    while let Ok(Received::Message(message)) = inbox.receive(stream.as_fd(), true) {
        let command = Command::from_bits(message.header.command).unwrap();
        let payload = match command {
            Command::Version => Version::OWN.to_bytes(false),
            Command::RegionInfo => {
                let asked = RegionInfo::parse(&message.payload).unwrap();
                RegionInfo { size: 1 << 20, ..asked }.to_bytes()
            }
            Command::IrqInfo => IrqInfo { index: irq::MSIX, ..IrqInfo::default() }.to_bytes(),
            Command::RegionRead => [&message.payload[..], &[0, 1]].concat(),
            _ => message.payload,
        };
        let Header { id, command: number, .. } = message.header;
        let reply = protocol::message(id, number, flag::REPLY, &[&payload]);
        socket::send(stream.as_fd(), &reply, &[], true).unwrap();
        seen.push(command);
    }
    seen
}

/// A bus that goes waits until the simulator let go of its memory: only then it is the program's
/// alone again.
#[test]
fn memory_is_given_back_after_the_simulator_let_go_of_it() {
    for mapped in [false, true] {
        let path = socket_path("leaves");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || hollow(&listener));
        let bus = VfioUserBus::connect(&path).unwrap();
        assert_eq!((bus.node(), bus.nodes()), (0, 2));
        if mapped {
            let memory = crate::dma::DmaMemory::new(4096).unwrap();
            crate::bus::Dma::map(&*bus, &memory).unwrap();
        }
        drop(bus);
        let seen = server.join().unwrap();
        let last = seen.last().copied().unwrap();
        assert_eq!(last == Command::DmaUnmap, mapped, "{seen:?}");
        std::fs::remove_file(&path).unwrap();
    }
}
