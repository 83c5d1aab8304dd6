//! Streams, in the manner of `std::net::TcpStream`.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use vipl::{NetAddress, VipReturn};

use crate::connection::{Connection, Patience, Ready};
use crate::device::Device;
use crate::error::{Error, Result};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How long nobody must have listened for a connection to be refused: a listener that has just taken one
/// is not there for a moment.
const REFUSAL: Duration = Duration::from_millis(100);
/// Time between two attempts.
const AGAIN: Duration = Duration::from_micros(200);
/// How long a thread of the library sleeps at most.
const HANDLER_LOOK: Duration = Duration::from_millis(100);

/// A stream of bytes each way. Clones are the same stream; the last one closes it.
#[derive(Clone, Debug)]
pub struct Stream {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    connection: Arc<Connection>,
    peer: NetAddress,
    nonblocking: AtomicBool,
    /// Nanoseconds; 0: no bound.
    read_bound: AtomicU64,
    write_bound: AtomicU64,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.connection.close();
    }
}

impl Stream {
    /// Connects to a port of a host of VIA (the local address of its NIC).
    ///
    /// # Errors
    /// [`Error::Refused`]; [`Error::TimedOut`]; [`Error::Incompatible`].
    pub fn connect(device: &Device, host: &[u8], port: u16) -> Result<Self> {
        let local = NetAddress::new(&device.host(), b"");
        Self::connect_to(device, &local, &Device::address(host, port))
    }

    /// Connects to an address of VIA, from one that the other side sees ([`Stream::peer`]).
    ///
    /// # Errors
    /// As [`Stream::connect`].
    pub fn connect_to(device: &Device, local: &NetAddress, peer: &NetAddress) -> Result<Self> {
        let connection = Connection::new(device)?;
        let (end, refused) = (Instant::now() + CONNECT, Instant::now() + REFUSAL);
        loop {
            match connection.vi().connect_request(local, peer, CONNECT) {
                Ok(_) => break,
                Err(error) if error.code == VipReturn::NoMatch && Instant::now() < refused => {
                    std::thread::sleep(AGAIN);
                }
                Err(error) => {
                    return Err(match error.code {
                        VipReturn::NoMatch | VipReturn::Reject => Error::Refused,
                        VipReturn::Timeout => Error::TimedOut,
                        _ => error.into(),
                    });
                }
            }
        }
        connection.greet()?;
        let stream = Self::of(connection, peer.clone())?;
        stream.inner.connection.wait_for_greeting(Patience::Until(end)).map_err(|error| {
            if matches!(error, Error::WouldBlock) { Error::TimedOut } else { error }
        })?;
        Ok(stream)
    }

    /// A connection whose other side is still to greet.
    pub(crate) fn of(connection: Arc<Connection>, peer: NetAddress) -> Result<Self> {
        if connection.has_handler() {
            let own = Arc::clone(&connection);
            let run = move || while own.handle_one(HANDLER_LOOK) {};
            let thread = std::thread::Builder::new().name("sovia handler".to_owned());
            thread.spawn(run).map_err(|error| Error::NoThread(Arc::new(error)))?;
        }
        let inner = Inner {
            connection,
            peer,
            nonblocking: AtomicBool::new(false),
            read_bound: AtomicU64::new(0),
            write_bound: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The other side's address of VIA.
    #[must_use]
    pub fn peer(&self) -> &NetAddress {
        &self.inner.peer
    }

    /// The device that it is on.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.inner.connection.device()
    }

    /// Sends small messages at once, or lets them wait for each other if the policy combines.
    pub fn set_nodelay(&self, no_delay: bool) {
        self.inner.connection.set_no_delay(no_delay);
    }

    /// Calls that would wait fail with `WouldBlock`.
    pub fn set_nonblocking(&self, nonblocking: bool) {
        self.inner.nonblocking.store(nonblocking, Ordering::Relaxed);
    }

    /// The longest wait of a read; None for no bound.
    pub fn set_read_timeout(&self, bound: Option<Duration>) {
        store(&self.inner.read_bound, bound);
    }

    /// The longest wait of a write; None for no bound.
    pub fn set_write_timeout(&self, bound: Option<Duration>) {
        store(&self.inner.write_bound, bound);
    }

    /// What a call would find now. Takes packets that are there.
    #[must_use]
    pub fn ready(&self) -> Ready {
        self.inner.connection.ready()
    }

    /// Copies bytes that [`Read::read`] gives next, and leaves them. How many: 0 if there are none yet.
    #[must_use]
    pub fn peek(&self, out: &mut [u8]) -> usize {
        self.inner.connection.peek(out)
    }

    /// Whether all that was written has reached the other side's memory, as far as VIA says so.
    #[must_use]
    pub fn has_sent_all(&self) -> bool {
        self.inner.connection.has_sent_all()
    }

    fn patience(&self, bound: &AtomicU64) -> Patience {
        if self.inner.nonblocking.load(Ordering::Relaxed) {
            return Patience::None;
        }
        match bound.load(Ordering::Relaxed) {
            0 => Patience::Endless,
            ns => Patience::Within(Duration::from_nanos(ns)),
        }
    }

    /// Ends one direction, or both: what was sent still arrives.
    ///
    /// # Errors
    /// None so far; as in `std`.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if how != Shutdown::Write {
            self.inner.connection.shut_down_reads();
        }
        if how != Shutdown::Read {
            self.inner.connection.shut_down_writes();
        }
        Ok(())
    }
}

fn store(bound: &AtomicU64, value: Option<Duration>) {
    let ns = value.map_or(0, |bound| u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX).max(1));
    bound.store(ns, Ordering::Relaxed);
}

impl Read for &Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let patience = self.patience(&self.inner.read_bound);
        Ok(self.inner.connection.read(out, patience)?)
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let patience = self.patience(&self.inner.write_bound);
        Ok(self.inner.connection.write(bytes, patience)?)
    }

    /// Small messages do not wait for others.
    fn flush(&mut self) -> io::Result<()> {
        self.inner.connection.flush();
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        (&*self).read(out)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self).flush()
    }
}
