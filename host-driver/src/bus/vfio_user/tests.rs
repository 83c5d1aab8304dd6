//! The bus against simulators that misbehave; what it does with good ones is tested where they are
//! (`tests/e2e/served.rs`).
#![expect(unsafe_code, reason = "signals")]

use core::ptr::NonNull;
use core::sync::atomic::AtomicU8;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::protocol::{Header, flag};
use super::socket::{Inbox, Received};
use super::*;
use crate::bus::REGISTER_BAR;
use port::mapped;

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
        protocol::message(to.id, to.command, flag::REPLY, &[&own.to_bytes()])
    });
    assert!(wrong.to_string().contains("version"), "{wrong}");
    connect_to("other", |to| protocol::message(to.id + 1, to.command, flag::REPLY, &[]));
    connect_to("short", |to| Header { size: 3, flags: flag::REPLY, ..to }.to_bytes().to_vec());
    // Closes after it agreed.
    connect_to("closes", |to| {
        protocol::message(to.id, to.command, flag::REPLY, &[&Version::OWN.to_bytes()])
    });
}

/// Longer than anything here takes.
fn far() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

/// A simulator of which only the protocol is there: it answers until it is left, and gives the
/// commands that came. What `answers` refuses stays without an answer.
fn hollow(listener: &UnixListener, answers: impl FnMut(Command) -> bool) -> Vec<Command> {
    let (stream, _) = listener.accept().unwrap();
    serve(&stream, answers)
}

/// The same on a connection.
fn serve(stream: &UnixStream, mut answers: impl FnMut(Command) -> bool) -> Vec<Command> {
    serve_with(stream, |command, message| answers(command).then(|| reply(command, message)))
}

/// The same with answers of the caller's own.
fn serve_with(
    stream: &UnixStream,
    mut answer: impl FnMut(Command, &socket::Message) -> Option<Vec<u8>>,
) -> Vec<Command> {
    let mut inbox = Inbox::default();
    let mut seen = Vec::new();
    while let Received::Message(message) = inbox.receive_by(stream.as_fd(), far()).unwrap() {
        let command = Command::from_bits(message.header.command).unwrap();
        seen.push(command);
        let answer = answer(command, &message).filter(|_| message.header.wants_reply());
        if let Some(answer) = answer {
            socket::send(stream.as_fd(), &answer, &[], true).unwrap();
        }
    }
    seen
}

/// A good reply.
fn reply(command: Command, message: &socket::Message) -> Vec<u8> {
    let payload = match command {
        Command::Version => Version::OWN.to_bytes(),
        Command::RegionInfo => {
            let asked = RegionInfo::parse(&message.payload).unwrap();
            RegionInfo { size: 1 << 20, ..asked }.to_bytes()
        }
        Command::IrqInfo => IrqInfo { index: irq::MSIX, ..IrqInfo::default() }.to_bytes(),
        Command::RegionRead => {
            let count = RegionAccess::parse(&message.payload, false).unwrap().count as usize;
            [&message.payload[..], &[0, 1, 0, 0][..count]].concat()
        }
        _ => message.payload.clone(),
    };
    let Header { id, command: number, .. } = message.header;
    protocol::message(id, number, flag::REPLY, &[&payload])
}

/// A bus whose simulator answers reads of registers so.
fn reads(
    name: &str,
    answer: impl Fn(&socket::Message) -> Vec<u8> + Send + 'static,
) -> Arc<VfioUserBus> {
    let path = socket_path(name);
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        serve_with(&stream, |command, message| {
            let access = RegionAccess::parse(&message.payload, false);
            let is_register = access.is_some_and(|access| access.region == region::BAR0);
            let special = command == Command::RegionRead && is_register;
            Some(if special { answer(message) } else { reply(command, message) })
        })
    });
    let bus = VfioUserBus::connect(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    bus
}

/// The error of a read says what the simulator said.
#[test]
fn a_read_that_is_refused_says_why() {
    let bus = reads("refuses", |m| protocol::error_reply(m.header, protocol::errno::INVALID));
    let error = bus.read32(REGISTER_BAR, 8).unwrap_err();
    assert!(matches!(error, Error::Served { errno: protocol::errno::INVALID, .. }), "{error}");
    assert!(!bus.is_dead());
}

/// A reply without the bytes that were asked for is no value.
#[test]
fn a_reply_to_a_read_that_is_too_short_ends_the_device() {
    let bus = reads("short-read", |message| {
        let Header { id, command, .. } = message.header;
        let payload = [&message.payload[..], &[0, 1]].concat();
        protocol::message(id, command, flag::REPLY, &[&payload])
    });
    assert_eq!(bus.read32(REGISTER_BAR, 8).unwrap(), u32::MAX);
    assert!(bus.name().contains("malformed"), "{}", bus.name());
}

/// As of one that is stopped: it learns that it lost its client when it goes on, although the
/// program keeps the bus.
#[test]
fn a_simulator_that_is_given_up_is_left() {
    let path = socket_path("silent");
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || hollow(&listener, |c| c != Command::DmaMap));
    let bus = VfioUserBus::connect(&path).unwrap();
    lock(&bus.stream).bound = Duration::from_millis(20);
    let memory = crate::dma::DmaMemory::new(4096).unwrap();
    crate::bus::Dma::map(&*bus, &memory).unwrap_err();
    assert!(bus.is_dead());
    assert_eq!(server.join().unwrap().last(), Some(&Command::DmaMap));
    assert_eq!(bus.read32(REGISTER_BAR, 8).unwrap(), u32::MAX);
    std::fs::remove_file(&path).unwrap();
}

// In the C library.
unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn _exit(code: i32) -> !;
}

/// Runs this in a child after fork.
fn forked(child: impl FnOnce() -> bool) -> Pid {
    match Pid::from_raw(fork()) {
        Some(child) => child,
        None => _exit(if child() { 7 } else { 1 }),
    }
}

/// Whether a child ended, and well.
fn was_right(child: Pid) -> bool {
    for _ in 0..20_000 {
        if let Some((_, status)) = waitpid(Some(child), WaitOptions::NOHANG).unwrap() {
            return status.exit_status() == Some(7);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    kill_process(child, Signal::KILL).unwrap();
    waitpid(Some(child), WaitOptions::empty()).unwrap();
    false
}

/// A simulator that answers no more is noticed by the next look at the card, and once for all.
#[test]
fn a_simulator_that_is_stopped_is_noticed_within_the_bound() {
    let path = socket_path("stops");
    let listener = UnixListener::bind(&path).unwrap();
    let (tell, stops) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        hollow(&listener, |command| command != Command::RegionRead || stops.try_recv().is_err());
    });
    let bus = VfioUserBus::connect(&path).unwrap();
    assert_ne!(bus.read32(REGISTER_BAR, csr::ID::OFFSET.into()).unwrap(), u32::MAX);
    let bound = Duration::from_millis(100);
    lock(&bus.stream).bound = bound;
    tell.send(()).unwrap();
    let start = Instant::now();
    for _ in 0..5 {
        assert_eq!(bus.read32(REGISTER_BAR, csr::ID::OFFSET.into()).unwrap(), u32::MAX);
    }
    assert!((bound..4 * bound).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert!(bus.name().contains("timed out"), "{}", bus.name());
    server.join().unwrap();
    std::fs::remove_file(&path).unwrap();
}

/// A simulator that takes the NIC from its program says why, and the program's errors say it on.
#[test]
fn the_reason_for_which_a_nic_is_taken_back_is_in_errors() {
    let path = socket_path("farewell");
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let last = protocol::farewell("it unmapped the memory");
        serve(&stream, |command| {
            let ends = command == Command::DmaMap;
            if ends {
                socket::send(stream.as_fd(), &last, &[], true).unwrap();
            }
            !ends
        });
    });
    let bus = VfioUserBus::connect(&path).unwrap();
    let memory = crate::dma::DmaMemory::new(4096).unwrap();
    crate::bus::Dma::map(&*bus, &memory).unwrap_err();
    assert!(bus.is_dead() && bus.name().contains("it unmapped the memory"));
    server.join().unwrap();
    std::fs::remove_file(&path).unwrap();
}

/// What the simulator is given reaches memory of every kind, as the program has it: a stack, and
/// memory that may only be read, which devices may not write either.
#[test]
fn memory_of_every_kind_is_given() {
    static CONSTANT: [u8; 100] = [7; 100];
    let path = socket_path("kinds");
    let server = hollow_at(&path);
    let bus = VfioUserBus::connect(&path).unwrap();
    let stack = [AtomicU8::new(1), AtomicU8::new(2)];
    let constant = core::ptr::from_ref(&CONSTANT).cast::<u8>().cast_mut();
    // SAFETY: it is valid as long as the bus, and only read.
    let constant = unsafe { crate::dma::DmaMemory::adopt(constant, 100) }.unwrap();
    // SAFETY: it lives until the end of this function, and atomics are changed by anybody.
    let on_stack =
        unsafe { crate::dma::DmaMemory::adopt(NonNull::from(&stack).cast().as_ptr(), 2) }.unwrap();
    assert!(!mapped::access(&constant).writable && mapped::access(&on_stack).writable);
    for memory in [&constant, &on_stack] {
        let address = crate::bus::Dma::map(&*bus, memory).unwrap();
        assert_eq!(address % 4096, memory.address() % 4096);
    }
    use std::os::unix::fs::FileExt;
    // As another thread while this one waits: the descriptor is all that it needs.
    std::thread::scope(|scope| {
        scope.spawn(|| bus.memory.write_all_at(&[3, 4], on_stack.address()).unwrap());
    });
    assert_eq!(stack.map(AtomicU8::into_inner), [3, 4]);
    let mut read = [0; 100];
    bus.memory.read_exact_at(&mut read, constant.address()).unwrap();
    assert_eq!(read, CONSTANT);
    drop(bus);
    server.join().unwrap();
    std::fs::remove_file(&path).unwrap();
}

extern "C" fn on_signal(_: i32) {}

unsafe extern "C" {
    safe fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    safe fn pthread_self() -> usize;
    fn pthread_kill(thread: usize, number: i32) -> i32;
}

/// Does this while the thread gets signals all the time; whether it ended before they did.
fn ends_under_signals(work: impl FnOnce()) -> bool {
    const SIGUSR2: i32 = 12;
    signal(SIGUSR2, on_signal);
    let (thread, done) = (pthread_self(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let signals = scope.spawn(|| {
            for _ in 0..2_000 {
                if done.load(Ordering::Acquire) {
                    return true;
                }
                // SAFETY: the thread lives until the end of the scope.
                unsafe { pthread_kill(thread, SIGUSR2) };
                std::thread::sleep(Duration::from_millis(1));
            }
            false
        });
        work();
        done.store(true, Ordering::Release);
        signals.join().unwrap()
    })
}

#[test]
fn signals_do_not_make_a_bound_longer() {
    let bound = Duration::from_millis(50);
    let (own, _other) = UnixStream::pair().unwrap();
    let mut stream = Stream::new(own, bound);
    assert!(ends_under_signals(|| {
        let error = stream.ask(Command::Reset, &[], &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }));
    // Until there is no room.
    assert!(ends_under_signals(|| { while stream.post(Command::Reset, &[&[0; 4096]]).is_ok() {} }));
    let path = socket_path("full");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _first = socket::dial(&path, ANSWER_BOUND).unwrap();
    assert!(ends_under_signals(|| {
        let error = socket::dial(&path, bound).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }));
    std::fs::remove_file(&path).unwrap();
}

/// A simulator that answers everything, for one program, and the commands that it saw.
fn hollow_at(path: &Path) -> JoinHandle<Vec<Command>> {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || hollow(&listener, |_| true))
}

/// A bus that goes waits until the simulator let go of its memory: only then it is the program's
/// alone again.
#[test]
fn memory_is_given_back_after_the_simulator_let_go_of_it() {
    for mapped in [false, true] {
        let path = socket_path("leaves");
        let server = hollow_at(&path);
        let bus = VfioUserBus::connect(&path).unwrap();
        assert_eq!((bus.node(), bus.nodes()), (0, 1));
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

/// Threads of the parent may hold the bus's locks at the fork; they are not in the child.
#[test]
fn a_child_does_not_wait_for_locks_of_its_parent() {
    let path = socket_path("locks");
    let server = hollow_at(&path);
    let bus = VfioUserBus::connect(&path).unwrap();
    let memory = crate::dma::DmaMemory::new(4096).unwrap();
    let address = crate::bus::Dma::map(&*bus, &memory).unwrap();
    let held = (lock(&bus.mappings), lock(&bus.stream));
    let child = forked(|| {
        crate::bus::Dma::unmap(&*bus, address);
        bus.read32(REGISTER_BAR, 0).is_ok_and(|value| value == u32::MAX)
    });
    drop(held);
    assert!(was_right(child));
    crate::bus::Dma::unmap(&*bus, address);
    drop(bus);
    server.join().unwrap();
    std::fs::remove_file(&path).unwrap();
}

/// The simulator sees the socket closed when a program dies, although its child lives.
#[test]
fn a_child_does_not_hold_the_sockets_of_a_program_that_died() {
    let path = socket_path("orphan");
    let server = hollow_at(&path);
    let (own, childs) = UnixStream::pair().unwrap();
    let program = forked(|| {
        let bus = VfioUserBus::connect(&path);
        forked(|| rustix::io::read(&childs, &mut [0_u8; 1]).is_ok());
        let connected = bus.is_ok();
        // It dies without taking leave.
        core::mem::forget(bus);
        connected
    });
    assert!(was_right(program));
    let left = server.join();
    rustix::io::write(&own, b"x").unwrap();
    left.unwrap();
    std::fs::remove_file(&path).unwrap();
}
