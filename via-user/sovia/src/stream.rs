//! Streams, in the manner of `std::net::TcpStream`.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use vipl::{ConnectionRequest, NetAddress, VipReturn};

use crate::address::Address;
use crate::connection::{Connection, Credits, Patience, Ready};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ports::Port;
use crate::to_address::ToAddress;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How long nobody must have listened for a connection to be refused: where many come at once, a listener
/// is not there for some of them for a moment.
const REFUSAL: Duration = Duration::from_millis(100);
/// Time between two attempts.
const AGAIN: Duration = Duration::from_micros(200);
/// How long a thread of the library sleeps at most.
const HANDLER_LOOK: Duration = Duration::from_millis(100);

/// A stream of bytes each way. Clones are the same stream; the last one closes it.
#[derive(Clone, Debug)]
pub struct TcpStream {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    connection: Arc<Connection>,
    local: NetAddress,
    peer: NetAddress,
    /// What makes the address of who connects another one for each stream.
    _port: Option<Port>,
    no_delay: AtomicBool,
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

impl TcpStream {
    /// Connects to a port of a host of VIA (the local address of its NIC).
    ///
    /// # Errors
    /// [`Error::Refused`]; [`Error::TimedOut`]; [`Error::Incompatible`]; those of [`ToAddress`].
    pub fn connect(device: &Device, peer: impl ToAddress) -> io::Result<Self> {
        Self::connect_timeout(device, peer, CONNECT)
    }

    /// The same with another bound of the time that it takes.
    ///
    /// # Errors
    /// As [`TcpStream::connect`]; a bound of 0 is no bound.
    pub fn connect_timeout(
        device: &Device,
        peer: impl ToAddress,
        bound: Duration,
    ) -> io::Result<Self> {
        if bound.is_zero() {
            return Err(no_bound());
        }
        let peer = peer.to_address(device)?.to_net();
        let port = Port::take(Address { host: device.host(), port: 0 })?;
        let local = port.address().to_net();
        Ok(Self::open(device, local, peer, Some(port), bound)?)
    }

    /// Connects to an address of VIA, from one that the other side sees ([`TcpStream::peer`]).
    ///
    /// # Errors
    /// As [`TcpStream::connect`].
    pub fn connect_to(device: &Device, local: &NetAddress, peer: &NetAddress) -> io::Result<Self> {
        Ok(Self::open(device, local.clone(), peer.clone(), None, CONNECT)?)
    }

    /// A stream of a request that the program has taken itself (`vipl::Nic::connect_wait`) at `local`:
    /// for one that may have no thread of [`crate::TcpListener`]. That the other side is set differently
    /// is an error of the first call.
    ///
    /// # Errors
    /// The NIC has no room for it; who asked no longer exists.
    pub fn accept_request(
        device: &Device,
        local: &NetAddress,
        request: &ConnectionRequest,
    ) -> io::Result<Self> {
        let connection = Connection::accept(device, request)?;
        Ok(Self::of(connection, local.clone(), request.remote_address().clone(), None)?)
    }

    fn open(
        device: &Device,
        local: NetAddress,
        peer: NetAddress,
        port: Option<Port>,
        bound: Duration,
    ) -> Result<Self> {
        let connection = Connection::new(device)?;
        let start = Instant::now();
        ask(&connection, &local, &peer, bound)?;
        connection.greet()?;
        let stream = Self::of(connection, local, peer, port)?;
        // No clock reaches some bounds.
        let end = start.checked_add(bound).unwrap_or(start + CONNECT);
        let greeted = stream.inner.connection.wait_for_greeting(Patience::Until(end));
        greeted.map_err(|error| match error {
            Error::WouldBlock => Error::TimedOut,
            error => error,
        })?;
        Ok(stream)
    }

    /// A connection whose other side may be still to greet.
    pub(crate) fn of(
        connection: Arc<Connection>,
        local: NetAddress,
        peer: NetAddress,
        port: Option<Port>,
    ) -> Result<Self> {
        if connection.has_handler() {
            let own = Arc::clone(&connection);
            let run = move || while own.handle_one(HANDLER_LOOK) {};
            let thread = std::thread::Builder::new().name("sovia handler".to_owned());
            thread.spawn(run).map_err(|error| Error::NoThread(Arc::new(error)))?;
        }
        let inner = Inner {
            connection,
            local,
            peer,
            _port: port,
            no_delay: AtomicBool::new(false),
            nonblocking: AtomicBool::new(false),
            read_bound: AtomicU64::new(0),
            write_bound: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.inner.connection
    }

    /// Whether there are clones.
    #[cfg(feature = "tokio")]
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// The other side's address of VIA.
    #[must_use]
    pub fn peer(&self) -> &NetAddress {
        &self.inner.peer
    }

    /// The other side's address.
    ///
    /// # Errors
    /// None; as in `std`, as for the others here that have none.
    pub fn peer_addr(&self) -> io::Result<Address> {
        Ok(Address::from_net(&self.inner.peer))
    }

    /// The own address.
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> io::Result<Address> {
        Ok(Address::from_net(&self.inner.local))
    }

    /// The device that it is on.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.inner.connection.device()
    }

    /// The same stream once more.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// Sends small messages at once, or lets them wait for each other if the policy combines.
    ///
    /// # Errors
    /// None.
    pub fn set_nodelay(&self, no_delay: bool) -> io::Result<()> {
        self.inner.no_delay.store(no_delay, Ordering::Relaxed);
        self.inner.connection.set_no_delay(no_delay);
        Ok(())
    }

    /// What [`TcpStream::set_nodelay`] has set.
    ///
    /// # Errors
    /// None.
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.inner.no_delay.load(Ordering::Relaxed))
    }

    /// Calls that would wait fail with `WouldBlock`.
    ///
    /// # Errors
    /// None.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.inner.nonblocking.store(nonblocking, Ordering::Relaxed);
        Ok(())
    }

    /// The longest wait of a read; None for no bound.
    ///
    /// # Errors
    /// A bound of 0.
    pub fn set_read_timeout(&self, bound: Option<Duration>) -> io::Result<()> {
        store(&self.inner.read_bound, bound)
    }

    /// The longest wait of a write; None for no bound.
    ///
    /// # Errors
    /// A bound of 0.
    pub fn set_write_timeout(&self, bound: Option<Duration>) -> io::Result<()> {
        store(&self.inner.write_bound, bound)
    }

    /// What [`TcpStream::set_read_timeout`] has set.
    ///
    /// # Errors
    /// None.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(load(&self.inner.read_bound))
    }

    /// What [`TcpStream::set_write_timeout`] has set.
    ///
    /// # Errors
    /// None.
    pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(load(&self.inner.write_bound))
    }

    /// The error that has broken the connection, if one has. Unlike `std`'s it stays.
    ///
    /// # Errors
    /// None.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.inner.connection.error().map(io::Error::from))
    }

    /// What a call would find now. Takes packets that are there.
    #[must_use]
    pub fn ready(&self) -> Ready {
        self.inner.connection.ready()
    }

    /// Whether a short look shows that a read would wait. False: [`TcpStream::ready`] has the answer. Without
    /// calls of that, or reads, in between it does not stay true.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.inner.connection.is_quiet()
    }

    /// Credits of what is sent, as of the last packet that went or came by a call.
    #[must_use]
    pub fn credits(&self) -> Credits {
        self.inner.connection.credits()
    }

    /// Copies bytes that [`Read::read`] gives next, and leaves them. It waits as a read does.
    ///
    /// # Errors
    /// Those of a read.
    pub fn peek(&self, out: &mut [u8]) -> io::Result<usize> {
        Ok(self.inner.connection.peek(out, self.patience(&self.inner.read_bound))?)
    }

    /// Whether all that was written has been sent; with [`vipl::Reliability::Reception`], whether it has
    /// reached the other side's memory.
    #[must_use]
    pub fn has_sent_all(&self) -> bool {
        self.inner.connection.has_sent_all()
    }

    /// Whether all that was written so far has reached the other side during the calls, as `shm:` has it:
    /// what a process has written that is killed later arrives.
    #[must_use]
    pub fn sends_at_once(&self) -> bool {
        self.inner.connection.sends_at_once()
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
    /// None.
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

/// Connects a VI with who listens at an address.
fn ask(
    connection: &Connection,
    local: &NetAddress,
    peer: &NetAddress,
    bound: Duration,
) -> Result<()> {
    let refused = Instant::now() + REFUSAL.min(bound);
    loop {
        let Err(error) = connection.vi().connect_request(local, peer, bound) else { return Ok(()) };
        match error.code {
            VipReturn::NoMatch if Instant::now() < refused => std::thread::sleep(AGAIN),
            VipReturn::NoMatch | VipReturn::Reject => return Err(Error::Refused),
            VipReturn::Timeout => return Err(Error::TimedOut),
            _ => return Err(error.into()),
        }
    }
}

fn no_bound() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a bound of 0 is none: give None for no bound")
}

fn store(bound: &AtomicU64, value: Option<Duration>) -> io::Result<()> {
    if value.is_some_and(|bound| bound.is_zero()) {
        return Err(no_bound());
    }
    let ns = value.map_or(0, |bound| u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX));
    bound.store(ns, Ordering::Relaxed);
    Ok(())
}

fn load(bound: &AtomicU64) -> Option<Duration> {
    let ns = bound.load(Ordering::Relaxed);
    (ns > 0).then(|| Duration::from_nanos(ns))
}

impl Read for &TcpStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let patience = self.patience(&self.inner.read_bound);
        Ok(self.inner.connection.read(out, patience)?)
    }
}

impl Write for &TcpStream {
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

impl Read for TcpStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        (&*self).read(out)
    }
}

impl Write for TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self).flush()
    }
}
