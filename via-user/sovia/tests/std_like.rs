//! Programs as they are written for `std::net`: only the device is new.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use sovia::{Address, Device, Policy, TcpListener, TcpStream};
use vipl::Nic;

/// Bound of what must happen.
const SOON: Duration = Duration::from_secs(20);

fn open(url: &str) -> Device {
    Device::new(Nic::open(device::open(url).unwrap()), Policy::DACKS).unwrap()
}

/// Answers lines, as the server of any book.
fn serve(listener: &TcpListener, connections: usize) -> io::Result<()> {
    thread::scope(|scope| {
        for stream in listener.incoming().take(connections) {
            let stream = stream?;
            scope.spawn(move || -> io::Result<()> {
                stream.set_read_timeout(Some(SOON))?;
                let mut writer = stream.try_clone()?;
                for line in BufReader::new(stream).lines() {
                    writeln!(writer, "you said {}", line?)?;
                }
                Ok(())
            });
        }
        Ok(())
    })
}

fn ask(device: &Device, server: &Address, line: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(device, server)?;
    stream.set_read_timeout(Some(SOON))?;
    writeln!(stream, "{line}")?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_server_of_std_needs_only_a_device() {
    let [a, b] = [open("shm:"), open("shm:")];
    let listener = TcpListener::bind(&b, 0).unwrap();
    let server = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| serve(&listener, 4).unwrap());
        for client in 0..4 {
            let (a, server) = (&a, &server);
            scope.spawn(move || {
                let line = format!("client {client}");
                assert_eq!(ask(a, server, &line).unwrap(), format!("you said {line}\n"));
            });
        }
    });
}

#[test]
fn both_ends_agree_on_their_addresses_and_no_two_clients_have_the_same() {
    let [a, b] = [open("shm:"), open("shm:")];
    let listener = TcpListener::bind(&b, 0).unwrap();
    let server = listener.local_addr().unwrap();
    let mut seen = BTreeSet::new();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let client = TcpStream::connect(&a, &server).unwrap();
        let (accepted, from) = listener.accept_within(SOON).unwrap();
        assert_eq!(client.peer_addr().unwrap(), server);
        assert_eq!(accepted.local_addr().unwrap(), server);
        assert_eq!(accepted.peer_addr().unwrap(), from);
        assert_eq!(client.local_addr().unwrap(), from);
        assert_eq!(from.host, a.host());
        assert!(seen.insert(from));
        streams.push((client, accepted));
    }
}

#[test]
fn a_port_is_one_listeners_until_that_is_dropped() {
    let [a, b] = [0, 1].map(|node| open(&format!("shm:?node=ports-{}-{node}", std::process::id())));
    let listener = TcpListener::bind(&a, 4000).unwrap();
    let error = TcpListener::bind(&a, 4000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
    // A node has each port once, whoever opens it, and another node has its own.
    let again = open(&format!("shm:?node=ports-{}-0", std::process::id()));
    assert!(TcpListener::bind(&again, 4000).is_err());
    drop(TcpListener::bind(&b, 4000).unwrap());
    let error = TcpListener::bind(&b, listener.local_addr().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable, "{error}");
    let clone = listener.try_clone().unwrap();
    drop(listener);
    assert!(TcpListener::bind(&a, 4000).is_err());
    drop(clone);
    TcpListener::bind(&a, 4000).unwrap();
}

#[test]
fn a_listener_is_found_by_its_name_its_bytes_or_its_port() {
    let name = format!("sovia-name-{}", std::process::id());
    let [a, b] = [open("shm:"), open(&format!("shm:?node={name}"))];
    let listener = TcpListener::bind(&b, 0).unwrap();
    let server = listener.local_addr().unwrap();
    let text = server.to_string();
    TcpStream::connect(&a, text.as_str()).unwrap();
    TcpStream::connect(&a, format!("{name}:{}", server.port)).unwrap();
    TcpStream::connect(&a, (name.as_str(), server.port)).unwrap();
    TcpStream::connect(&b, server.port).unwrap();
    for (wrong, kind) in
        [("nobody-at-all:80", ErrorKind::NotFound), ("80", ErrorKind::InvalidInput)]
    {
        let error = TcpStream::connect(&a, wrong).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(wrong.trim_end_matches(":80")), "{error}");
    }
}

/// What was set is what is read, of all clones; what would wait says so.
#[test]
fn options_are_the_streams() {
    let [a, b] = [open("shm:"), open("shm:")];
    let listener = TcpListener::bind(&b, 0).unwrap();
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    listener.set_nonblocking(false).unwrap();
    let client = TcpStream::connect(&a, listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let clone = client.try_clone().unwrap();
    assert_eq!(clone.read_timeout().unwrap(), None);
    client.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    client.set_write_timeout(Some(SOON)).unwrap();
    client.set_nodelay(true).unwrap();
    assert_eq!(clone.read_timeout().unwrap(), Some(Duration::from_millis(5)));
    assert_eq!(clone.write_timeout().unwrap(), Some(SOON));
    assert!(clone.nodelay().unwrap() && !server.nodelay().unwrap());
    let zero = client.set_read_timeout(Some(Duration::ZERO)).unwrap_err();
    assert_eq!(zero.kind(), ErrorKind::InvalidInput);
    let mut buffer = [0; 8];
    assert_eq!(clone.peek(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    client.set_read_timeout(Some(SOON)).unwrap();
    server.write_all(b"look").unwrap();
    assert_eq!(client.peek(&mut buffer).unwrap(), 4);
    assert_eq!((&client).read(&mut buffer).unwrap(), 4);
    assert_eq!(&buffer[..4], b"look");
    drop(server);
    assert_eq!(client.peek(&mut buffer).unwrap(), 0);
    assert!(client.take_error().unwrap().is_none());
    assert!(TcpStream::connect_timeout(&a, 1, Duration::ZERO).is_err());
}
