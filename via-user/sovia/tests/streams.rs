//! Streams over every kind of device that needs no set-up, with every policy.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sovia::{Device, Error, Policy, TcpListener, TcpStream};
use vipl::{NetAddress, Nic, Waiting};

/// Bound of what must happen.
const SOON: Duration = Duration::from_secs(20);

fn open(url: &str, policy: Policy) -> Device {
    let port = device::open(url).unwrap();
    Device::new(Nic::open_with(port, Waiting::default()), policy).unwrap()
}

fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Two devices that reach each other.
fn devices(kind: &str, policy: Policy) -> [Device; 2] {
    [0, 1].map(|node| match kind {
        "shm" => open(&format!("shm:?node=sovia-{}-{node}", port()), policy),
        _ => open(&format!("sim:model?node={node}"), policy),
    })
}

fn pair(kind: &str, policy: Policy) -> (TcpStream, TcpStream) {
    let [a, b] = devices(kind, policy);
    connect(&a, &b)
}

fn connect(a: &Device, b: &Device) -> (TcpStream, TcpStream) {
    let number = port();
    let listener = TcpListener::bind(b, number).unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept_within(SOON).unwrap().0);
        let client = TcpStream::connect(a, (&b.host(), number)).unwrap();
        (client, accepted.join().unwrap())
    })
}

fn bytes(from: usize, count: usize) -> Vec<u8> {
    (from..from + count).map(|at| (at * 7 + at / 251).to_le_bytes()[0]).collect()
}

/// Sends messages of many lengths and reads them back in other pieces.
fn echo(kind: &str, policy: Policy, lengths: &[usize]) {
    let (client, server) = pair(kind, policy);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = vec![0; 10_000];
            loop {
                let count = (&server).read(&mut buffer).unwrap();
                if count == 0 {
                    return server.shutdown(Shutdown::Write).unwrap();
                }
                (&server).write_all(&buffer[..count]).unwrap();
            }
        });
        let total: usize = lengths.iter().sum();
        let sender = scope.spawn(|| {
            let mut at = 0;
            for length in lengths {
                (&client).write_all(&bytes(at, *length)).unwrap();
                at += length;
            }
            client.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        (&client).read_to_end(&mut back).unwrap();
        sender.join().unwrap();
        assert!(back == bytes(0, total), "{} of {total} bytes", back.len());
    });
}

#[test]
fn every_policy_carries_messages_of_every_length() {
    for (name, policy) in Policy::ALL {
        let start = Instant::now();
        echo(
            "shm",
            policy,
            &[1, 2, 4, 100, 2047, 2048, 2049, 8192, 32_767, 32_768, 32_769, 200_000],
        );
        assert!(start.elapsed() < SOON, "{name}");
    }
}

#[test]
fn streams_run_on_a_simulated_nic() {
    for policy in [Policy::DACKS, Policy::COMBINE, Policy::STREAM_SOCKETS] {
        echo("sim", policy, &[1, 100, 3000, 70_000]);
    }
}

/// A program that takes requests by VIPL needs no listener.
#[test]
fn a_request_that_the_program_took_becomes_a_stream() {
    let [a, b] = devices("shm", Policy::DACKS);
    let here = NetAddress::new(&b.host(), b"by hand");
    let mine = NetAddress::new(&a.host(), b"asks");
    let (client, server) = thread::scope(|scope| {
        let served = scope.spawn(|| {
            let request = b.nic().connect_wait(&here, SOON).unwrap();
            TcpStream::accept_request(&b, &here, &request).unwrap()
        });
        let client = TcpStream::connect_to(&a, &mine, &here).unwrap();
        (client, served.join().unwrap())
    });
    assert_eq!((client.peer(), server.peer()), (&here, &mine));
    (&client).write_all(b"question").unwrap();
    let mut question = [0; 8];
    (&server).read_exact(&mut question).unwrap();
    assert_eq!(&question, b"question");
}

/// Reads and writes that would wait, and bounds.
#[test]
fn what_would_wait_says_so() {
    let (client, server) = pair("shm", Policy::DACKS);
    let mut buffer = [0; 100];
    client.set_nonblocking(true).unwrap();
    assert_eq!((&client).read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    let mut sent = 0;
    let block = vec![7; 50_000];
    let error = loop {
        match (&client).write(&block) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    // The window: 32 packets of at most 32 KiB.
    assert!((32 << 10..=32 * (32 << 10)).contains(&sent), "{sent}");
    client.set_nonblocking(false).unwrap();
    client.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
    let start = Instant::now();
    assert_eq!((&client).write(&block).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(start.elapsed() >= Duration::from_millis(20));
    let mut all = vec![0; sent];
    (&server).read_exact(&mut all).unwrap();
    assert!(all.iter().all(|byte| *byte == 7));
    (&client).write_all(&block).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    (&server).read_exact(&mut all[..block.len()]).unwrap();
    assert_eq!((&server).read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// Each direction ends by itself; what was sent before arrives.
#[test]
fn a_side_that_has_ended_still_reads() {
    let (client, server) = pair("shm", Policy::COMBINE);
    (&client).write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!((&client).write(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
    let mut question = String::new();
    (&server).read_to_string(&mut question).unwrap();
    assert_eq!(question, "question");
    (&server).write_all(b"answer").unwrap();
    drop(server);
    let mut answer = String::new();
    (&client).read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
}

/// As TCP: who closes without having read resets the other side.
#[test]
fn a_side_that_is_closed_unread_resets_the_other() {
    let (client, server) = pair("shm", Policy::DACKS);
    (&client).write_all(&[1; 100]).unwrap();
    (&server).read_exact(&mut [0; 50]).unwrap();
    drop(server);
    // Never an end.
    let error = (&client).read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let end = Instant::now() + SOON;
    let error = loop {
        if let Err(error) = (&client).write(&[1; 100]) {
            break error;
        }
        assert!(Instant::now() < end, "no error");
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// Small messages wait for each other, and arrive although the program makes no other call.
#[test]
fn combined_messages_arrive_when_their_time_is_over() {
    let (client, server) = pair("shm", Policy::COMBINE);
    let start = Instant::now();
    for part in [b"one", b"two"] {
        (&client).write_all(part).unwrap();
    }
    let mut all = [0; 6];
    (&server).read_exact(&mut all).unwrap();
    assert_eq!(&all, b"onetwo");
    assert!(start.elapsed() >= Duration::from_millis(99), "{:?}", start.elapsed());
}

#[test]
fn combined_messages_do_not_wait_where_the_program_says_so() {
    let minute = Duration::from_secs(60);
    let (client, server) = pair("shm", Policy { combine: Some(minute), ..Policy::COMBINE });
    server.set_read_timeout(Some(SOON)).unwrap();
    (&client).write_all(b"x").unwrap();
    (&client).flush().unwrap();
    (&server).read_exact(&mut [0]).unwrap();
    // Who waits for an answer says so, too.
    (&client).write_all(b"x").unwrap();
    thread::scope(|scope| {
        scope.spawn(|| (&client).read_exact(&mut [0]).unwrap());
        (&server).read_exact(&mut [0]).unwrap();
        (&server).write_all(b"y").unwrap();
        (&server).flush().unwrap();
    });
    client.set_nodelay(true).unwrap();
    (&client).write_all(b"x").unwrap();
    (&server).read_exact(&mut [0]).unwrap();
}

#[test]
fn nobody_who_listens_and_other_settings_are_errors() {
    let [a, b] = devices("shm", Policy::DACKS);
    // A program that waits for something answers for all its ports.
    let _elsewhere = TcpListener::bind(&b, port()).unwrap();
    let refused = TcpStream::connect(&a, (&b.host(), port())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{refused}");
    let other = open(&format!("shm:?node=sovia-{}", port()), Policy::STREAM_SOCKETS);
    let number = port();
    let listener = TcpListener::bind(&other, number).unwrap();
    let different = TcpStream::connect(&a, (&other.host(), number)).unwrap_err();
    assert_eq!(different.kind(), ErrorKind::InvalidInput, "{different}");
    let accepted = listener.accept_within(SOON).unwrap().0;
    let error = (&accepted).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    // The listener goes on.
    let same = open(&format!("shm:?node=sovia-{}", port()), Policy::STREAM_SOCKETS);
    thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept_within(SOON).unwrap().0);
        let client = TcpStream::connect(&same, (&other.host(), number)).unwrap();
        (&client).write_all(b"x").unwrap();
        (&accepted.join().unwrap()).read_exact(&mut [0]).unwrap();
    });
    let wrong = Policy { window: 0, ..Policy::DACKS };
    let port = device::open("shm:").unwrap();
    assert!(matches!(Device::new(Nic::open(port), wrong), Err(Error::Policy(_))));
}

/// Many connections of one device at once, each with a thread on each side; then all have ended.
#[test]
fn connections_do_not_disturb_each_other() {
    let [a, b] = devices("shm", Policy::DACKS);
    let number = port();
    let listener = TcpListener::bind(&b, number).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..16 {
                let stream = listener.accept_within(SOON).unwrap().0;
                scope.spawn(move || {
                    let mut all = Vec::new();
                    (&stream).read_to_end(&mut all).unwrap();
                    (&stream).write_all(&all).unwrap();
                });
            }
        });
        for client in 0..16 {
            let (a, host) = (&a, b.host());
            scope.spawn(move || {
                let stream = TcpStream::connect(a, (&host, number)).unwrap();
                let data = bytes(client * 1000, 1 + client * 9973);
                (&stream).write_all(&data).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                let mut back = Vec::new();
                (&stream).read_to_end(&mut back).unwrap();
                assert!(back == data, "client {client}");
            });
        }
    });
    assert!(a.finish(SOON) && b.finish(SOON));
}

/// A thread that reads learns of a shutdown by another one.
#[test]
fn a_shutdown_wakes_who_reads() {
    for policy in [Policy::DACKS, Policy::HANDLER] {
        let (client, _server) = pair("shm", policy);
        thread::scope(|scope| {
            let reader = scope.spawn(|| (&client).read(&mut [0; 10]).unwrap());
            thread::sleep(Duration::from_millis(20));
            client.shutdown(Shutdown::Read).unwrap();
            assert_eq!(reader.join().unwrap(), 0);
        });
    }
}
