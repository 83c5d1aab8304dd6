//! Sockets of the kernel.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use port::stamp::{self, Stage};

use super::{BOUND, Offered, Transport, poll, stamp_of};
use crate::Failure;

/// What a system call gave: None if it would have to wait.
fn attempt<T>(result: std::io::Result<T>) -> Result<Option<T>, Failure> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn buffer(largest: usize) -> Vec<u8> {
    vec![1; largest.max(4)]
}

struct Stream<S> {
    socket: S,
    buffer: Vec<u8>,
}

impl<S: Send> Transport for Stream<S>
where
    for<'a> &'a S: Read + Write,
{
    fn send(&mut self, length: usize, stamp: u32) -> Result<(), Failure> {
        self.buffer[..4].copy_from_slice(&stamp.to_le_bytes());
        stamp::stamp(Stage::Program);
        self.send_buffer(length)
    }

    fn receive(&mut self, length: usize) -> Result<u32, Failure> {
        self.fill_buffer(length)?;
        stamp::stamp(Stage::Poll);
        Ok(stamp_of(&self.buffer))
    }

    fn send_file(&mut self, mut file: &File, length: usize) -> Result<usize, Failure> {
        let count = file.read(&mut self.buffer[..length])?;
        self.send_buffer(count)?;
        Ok(count)
    }

    fn receive_file(&mut self, mut file: &File, length: usize) -> Result<(), Failure> {
        self.fill_buffer(length)?;
        Ok(file.write_all(&self.buffer[..length])?)
    }
}

impl<S: Send> Stream<S>
where
    for<'a> &'a S: Read + Write,
{
    fn send_buffer(&self, length: usize) -> Result<(), Failure> {
        let mut at = 0;
        while at < length {
            at += poll(|| attempt((&self.socket).write(&self.buffer[at..length])))?;
        }
        Ok(())
    }

    fn fill_buffer(&mut self, length: usize) -> Result<(), Failure> {
        let mut at = 0;
        while at < length {
            let count = poll(|| attempt((&self.socket).read(&mut self.buffer[at..length])))?;
            if count == 0 {
                return Err("the other process has closed the connection".into());
            }
            at += count;
        }
        Ok(())
    }
}

fn tcp(socket: TcpStream, blocking: bool, largest: usize) -> Result<Box<dyn Transport>, Failure> {
    socket.set_nodelay(true)?;
    socket.set_nonblocking(!blocking)?;
    socket.set_read_timeout(blocking.then_some(BOUND))?;
    Ok(Box::new(Stream { socket, buffer: buffer(largest) }))
}

pub(super) fn offer_tcp(blocking: bool, largest: usize) -> Result<Offered, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let place = listener.local_addr()?.to_string();
    let accept = move || tcp(listener.accept()?.0, blocking, largest);
    Ok(Offered { place, accept: Box::new(accept) })
}

pub(super) fn join_tcp(
    blocking: bool,
    largest: usize,
    place: &str,
) -> Result<Box<dyn Transport>, Failure> {
    tcp(TcpStream::connect(place)?, blocking, largest)
}

fn unix(socket: UnixStream, blocking: bool, largest: usize) -> Result<Box<dyn Transport>, Failure> {
    socket.set_nonblocking(!blocking)?;
    socket.set_read_timeout(blocking.then_some(BOUND))?;
    Ok(Box::new(Stream { socket, buffer: buffer(largest) }))
}

/// A path that is removed.
pub(super) struct Path(pub(super) PathBuf);

impl Drop for Path {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(super) fn offer_unix(blocking: bool, largest: usize) -> Result<Offered, Failure> {
    let name = format!("viaduct-bench-{}-{blocking}.sock", std::process::id());
    let path = Path(std::env::temp_dir().join(name));
    let _ = std::fs::remove_file(&path.0);
    let listener = UnixListener::bind(&path.0)?;
    let place = path.0.display().to_string();
    let accept = move || {
        let _path = path;
        unix(listener.accept()?.0, blocking, largest)
    };
    Ok(Offered { place, accept: Box::new(accept) })
}

pub(super) fn join_unix(
    blocking: bool,
    largest: usize,
    place: &str,
) -> Result<Box<dyn Transport>, Failure> {
    unix(UnixStream::connect(place)?, blocking, largest)
}

/// Largest datagram.
const DATAGRAM: usize = 65_000;
/// Datagrams. Whoever sends many waits for the other end now and then: UDP loses what finds no room.
struct Datagrams {
    socket: UdpSocket,
    buffer: Vec<u8>,
}

impl Transport for Datagrams {
    fn send(&mut self, length: usize, stamp: u32) -> Result<(), Failure> {
        self.buffer[..4].copy_from_slice(&stamp.to_le_bytes());
        stamp::stamp(Stage::Program);
        let mut at = 0;
        loop {
            let piece = (length - at).min(DATAGRAM);
            poll(|| attempt(self.socket.send(&self.buffer[at..at + piece])))?;
            at += piece;
            if at == length {
                return Ok(());
            }
        }
    }

    fn receive(&mut self, length: usize) -> Result<u32, Failure> {
        let mut at = 0;
        loop {
            let piece = (length - at).min(DATAGRAM);
            at += poll(|| attempt(self.socket.recv(&mut self.buffer[at..at + piece])))?;
            if at == length {
                stamp::stamp(Stage::Poll);
                return Ok(stamp_of(&self.buffer));
            }
        }
    }
}

fn datagrams(socket: UdpSocket, largest: usize) -> Result<Box<dyn Transport>, Failure> {
    socket.set_nonblocking(true)?;
    Ok(Box::new(Datagrams { socket, buffer: buffer(largest) }))
}

pub(super) fn offer_udp(largest: usize) -> Result<Offered, Failure> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let place = socket.local_addr()?.to_string();
    let accept = move || {
        let mut hello = [0; 8];
        socket.set_read_timeout(Some(BOUND))?;
        let (_, from) = socket.recv_from(&mut hello)?;
        socket.connect(from)?;
        datagrams(socket, largest)
    };
    Ok(Offered { place, accept: Box::new(accept) })
}

pub(super) fn join_udp(largest: usize, place: &str) -> Result<Box<dyn Transport>, Failure> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(place)?;
    socket.send(b"hello")?;
    datagrams(socket, largest)
}
