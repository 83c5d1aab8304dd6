//! Connections instead of messages. The end that asks sends by creating a socket or a VI and connecting
//! it, and receives by ending the connection; the other end accepts, and waits for the end. So a round
//! of a transport is a connection: created, connected, disconnected, destroyed.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};

use vipl::{Vi, ViState, Waiting};

use super::socket::Path;
use super::vipl::{Station, hex, unhex};
use super::{Offered, Transport, poll};
use crate::Failure;

/// Discriminator of the addresses.
const SERVICE: &[u8] = b"bench connect";
/// Bytes of a message, of which there are none.
const LARGEST: usize = 64;

/// How an end makes a connection, and how it ends it.
struct Ends<C, M, E> {
    open: Option<C>,
    make: M,
    end: E,
}

impl<C, M, E> Ends<C, M, E>
where
    M: FnMut() -> Result<C, Failure>,
    E: FnMut(C) -> Result<(), Failure>,
{
    fn make(&mut self) -> Result<(), Failure> {
        self.open = Some((self.make)()?);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        (self.end)(self.open.take().ok_or("no connection is open")?)
    }
}

/// The end that connects: a message is sent before one is received.
struct Asks<C, M, E>(Ends<C, M, E>);

impl<C, M, E> Transport for Asks<C, M, E>
where
    C: Send,
    M: FnMut() -> Result<C, Failure> + Send,
    E: FnMut(C) -> Result<(), Failure> + Send,
{
    fn send(&mut self, _length: usize, _stamp: u32) -> Result<(), Failure> {
        self.0.make()
    }

    fn receive(&mut self, _length: usize) -> Result<u32, Failure> {
        self.0.end().map(|()| 0)
    }
}

/// The end that accepts.
struct Answers<C, M, E>(Ends<C, M, E>);

impl<C, M, E> Transport for Answers<C, M, E>
where
    C: Send,
    M: FnMut() -> Result<C, Failure> + Send,
    E: FnMut(C) -> Result<(), Failure> + Send,
{
    fn send(&mut self, _length: usize, _stamp: u32) -> Result<(), Failure> {
        self.0.end()
    }

    fn receive(&mut self, _length: usize) -> Result<u32, Failure> {
        self.0.make().map(|()| 0)
    }
}

fn asks<C: Send + 'static>(
    make: impl FnMut() -> Result<C, Failure> + Send + 'static,
    end: impl FnMut(C) -> Result<(), Failure> + Send + 'static,
) -> Box<dyn Transport> {
    Box::new(Asks(Ends { open: None, make, end }))
}

fn answers<C: Send + 'static>(
    make: impl FnMut() -> Result<C, Failure> + Send + 'static,
    end: impl FnMut(C) -> Result<(), Failure> + Send + 'static,
) -> Box<dyn Transport> {
    Box::new(Answers(Ends { open: None, make, end }))
}

/// Reads until the other end has closed.
fn at_end(mut socket: impl Read) -> Result<(), Failure> {
    Ok(std::io::copy(&mut socket, &mut std::io::sink()).map(drop)?)
}

/// The end that asks. Where the other one listens is known only when it has joined, so the first place
/// is a file in which it leaves it.
pub(super) fn offer(target: &str) -> Result<Offered, Failure> {
    let name = format!("viaduct-bench-{}-connect", std::process::id());
    let path = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&path);
    let place = path.display().to_string();
    let target = target.to_owned();
    let accept = move || -> Result<Box<dyn Transport>, Failure> {
        let found =
            poll(|| Ok(std::fs::read_to_string(&path).ok().filter(|text| !text.is_empty())));
        let _ = std::fs::remove_file(&path);
        let found = found?;
        match &*target {
            "tcp" => Ok(asks(move || Ok(TcpStream::connect(&found)?), close)),
            "unix" => Ok(asks(move || Ok(UnixStream::connect(&found)?), close)),
            device => {
                let station = Station::open(device, Waiting::Poll, LARGEST, |_| 1)?;
                let host = unhex(&found)?;
                let nic = station.nic.clone();
                let make = move || {
                    let vi = station.nic.create_vi(station.attributes, None, None)?;
                    station.connect(&vi, &host, SERVICE)?;
                    Ok(vi)
                };
                Ok(Box::new(Device { ends: asks(make, end_vi), nic }))
            }
        }
    };
    Ok(Offered { place, accept: Box::new(accept) })
}

#[expect(clippy::unnecessary_wraps, reason = "other ends fail")]
fn close<S>(socket: S) -> Result<(), Failure> {
    drop(socket);
    Ok(())
}

fn end_vi(vi: Vi) -> Result<(), Failure> {
    vi.disconnect()?;
    Ok(vi.destroy()?)
}

/// Waits until the other end has disconnected. The query handles what the NIC has notified of.
fn wait_for_end(vi: Vi) -> Result<(), Failure> {
    poll(|| Ok((vi.query().state != ViState::Connected).then_some(())))?;
    end_vi(vi)
}

/// An end with a NIC, which it closes.
struct Device {
    ends: Box<dyn Transport>,
    nic: vipl::Nic,
}

impl Transport for Device {
    fn send(&mut self, length: usize, stamp: u32) -> Result<(), Failure> {
        self.ends.send(length, stamp)
    }

    fn receive(&mut self, length: usize) -> Result<u32, Failure> {
        self.ends.receive(length)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.nic.clone().close();
    }
}

/// The end that accepts, which leaves where it is in a file.
pub(super) fn join(target: &str, place: &str) -> Result<Box<dyn Transport>, Failure> {
    let leave = |text: String| -> Result<(), Failure> {
        let half = format!("{place}.new");
        std::fs::write(&half, text)?;
        Ok(std::fs::rename(half, place)?)
    };
    match target {
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            leave(listener.local_addr()?.to_string())?;
            Ok(answers(move || Ok(listener.accept()?.0), at_end))
        }
        "unix" => {
            let path = Path(format!("{place}.sock").into());
            let _ = std::fs::remove_file(&path.0);
            let listener = UnixListener::bind(&path.0)?;
            leave(path.0.display().to_string())?;
            let make = move || {
                // The path stays as long as the listener.
                let _kept = &path;
                Ok(listener.accept()?.0)
            };
            Ok(answers(make, at_end))
        }
        device => {
            let station = Station::open(device, Waiting::Poll, LARGEST, |_| 1)?;
            leave(hex(&station.host()))?;
            let nic = station.nic.clone();
            let make = move || {
                let vi = station.nic.create_vi(station.attributes, None, None)?;
                station.accept(&vi, SERVICE)?;
                Ok(vi)
            };
            Ok(Box::new(Device { ends: answers(make, wait_for_end), nic }))
        }
    }
}
