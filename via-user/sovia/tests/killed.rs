//! Programs that are killed in mid-stream: the other end gets what had come, and then an error, never an
//! end that looks like one. Those that are stopped only take longer.

use std::env;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sovia::{Address, Device, Policy, TcpListener, TcpStream};
use vipl::Nic;

/// What a child is given: where its parent listens.
const SERVER: &str = "VIADUCT_TEST_SERVER";
/// Bound of what must happen.
const SOON: Duration = Duration::from_secs(20);
const ROUNDS: u64 = 20;

fn open() -> Device {
    open_for(Policy::DACKS)
}

fn open_for(policy: Policy) -> Device {
    Device::new(Nic::open(device::open("shm:").unwrap()), policy).unwrap()
}

/// The bytes of the stream.
fn byte(at: usize) -> u8 {
    (at * 7 + at / 251).to_le_bytes()[0]
}

/// Runs in a child: writes until it is killed.
#[expect(clippy::print_stdout, reason = "that is how they talk")]
#[test]
fn child() {
    let Ok(server) = env::var(SERVER) else { return };
    let stream = TcpStream::connect(&open(), server).unwrap();
    println!("@connected");
    let mut at = 0;
    for length in (1..5000).cycle() {
        let data: Vec<u8> = (at..at + length).map(byte).collect();
        (&stream).write_all(&data).unwrap();
        at += length;
    }
}

fn start(role: &str, server: &Address) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([role, "--exact", "--nocapture"]).env(SERVER, server.to_string());
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// Runs in a child: reads until the end, and says how much that was.
#[expect(clippy::print_stdout, reason = "that is how they talk")]
#[test]
fn reader() {
    let Ok(server) = env::var(SERVER) else { return };
    let mut stream = TcpStream::connect(&open(), server).unwrap();
    println!("@connected");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert!(all.iter().enumerate().all(|(at, found)| byte(at) == *found));
    println!("@{}", all.len());
}

/// Runs in a child: leaves in the middle, when what it has written waits for more.
#[expect(clippy::exit, reason = "a program that ends so")]
#[test]
fn leaver() {
    let Ok(server) = env::var(SERVER) else { return };
    let stream = TcpStream::connect(&open_for(Policy::COMBINE), server).unwrap();
    (&stream).write_all(b"last words").unwrap();
    std::process::exit(0);
}

#[test]
fn what_a_program_has_written_leaves_when_it_ends() {
    let device = open_for(Policy::COMBINE);
    let listener = TcpListener::bind(&device, 0).unwrap();
    let mut child = start("leaver", &listener.local_addr().unwrap());
    let mut stream = listener.accept_within(SOON).unwrap().0;
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut words = [0; 10];
    stream.read_exact(&mut words).unwrap();
    assert_eq!(&words, b"last words");
    // It did not say that this was the end.
    assert_eq!(stream.read(&mut words).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(child.wait().unwrap().success());
}

/// Longer than a node waits for the answer of another one.
const STOPPED: Duration = Duration::from_secs(3);

#[test]
fn a_stream_whose_other_end_is_stopped_goes_on() {
    let device = open();
    let listener = TcpListener::bind(&device, 0).unwrap();
    let mut child = start("reader", &listener.local_addr().unwrap());
    let stream = listener.accept_within(SOON).unwrap().0;
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(output.any(|line| line.contains("@connected")));
    let signal = |signal| {
        let process = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(process.unwrap(), signal).unwrap();
    };
    signal(rustix::process::Signal::STOP);
    let data: Vec<u8> = (0..5_000_000).map(byte).collect();
    thread::scope(|scope| {
        let writer = scope.spawn(|| (&stream).write_all(&data));
        thread::sleep(STOPPED);
        assert!(!writer.is_finished(), "{:?}", writer.join());
        signal(rustix::process::Signal::CONT);
        writer.join().unwrap().unwrap();
    });
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(output.any(|line| line.contains(&format!("@{}", data.len()))));
    assert!(child.wait().unwrap().success());
    assert!(device.finish(SOON));
}

#[test]
fn a_stream_whose_other_end_is_killed_is_reset() {
    let device = open();
    let listener = TcpListener::bind(&device, 0).unwrap();
    let server = listener.local_addr().unwrap();
    let mut all = 0;
    for round in 0..ROUNDS {
        let mut child = start("child", &server);
        let stream = listener.accept_within(SOON).unwrap().0;
        stream.set_read_timeout(Some(SOON)).unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        assert!(output.lines().map_while(Result::ok).any(|line| line.contains("@connected")));
        let killer = thread::spawn(move || {
            thread::sleep(Duration::from_micros(round * 977 % 10_000));
            child.kill().unwrap();
            child.wait().unwrap();
            Instant::now()
        });
        let (mut buffer, mut at) = (vec![0; 3000], 0);
        let error = loop {
            match (&stream).read(&mut buffer) {
                Ok(0) => panic!("round {round}: an end after {at} bytes"),
                Ok(count) => {
                    assert!((at..).zip(&buffer[..count]).all(|(at, found)| byte(at) == *found));
                    at += count;
                }
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        let took = killer.join().unwrap().elapsed();
        assert!(took < SOON, "{took:?}");
        assert!((&stream).write(b"x").is_err());
        all += at;
    }
    assert!(all > 0);
    assert!(device.finish(SOON));
}

/// Tasks that wait for the same, none of which runs meanwhile.
#[cfg(feature = "tokio")]
#[test]
fn a_task_whose_other_end_is_killed_is_woken() {
    use tokio::io::AsyncReadExt;

    let device = open();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let listener = sovia::tokio::TcpListener::bind(&device, 0).await.unwrap();
        let mut child = start("child", &listener.local_addr().unwrap());
        let (mut stream, _) =
            tokio::time::timeout(SOON, listener.accept()).await.expect("it connects").unwrap();
        let mut some = vec![0; 100_000];
        stream.read_exact(&mut some).await.unwrap();
        assert!(some.iter().enumerate().all(|(at, found)| byte(at) == *found));
        child.kill().unwrap();
        let mut rest = Vec::new();
        let read = tokio::time::timeout(SOON, stream.read_to_end(&mut rest)).await;
        assert_eq!(read.expect("it hangs").unwrap_err().kind(), ErrorKind::ConnectionReset);
        child.wait().unwrap();
    });
}
