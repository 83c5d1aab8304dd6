//! Listeners, in the manner of `std::net::TcpListener`.

use core::task::Waker;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use port::sync::lock;
use vipl::{ConnectionRequest, NetAddress, VipReturn};

use crate::address::Address;
use crate::connection::Connection;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ports::Port;
use crate::stream::TcpStream;
use crate::to_address::ToAddress;

/// Connections that wait to be accepted.
const BACKLOG: usize = 128;
/// Requests that may come while the thread is at none of them.
const AT_ONCE: usize = 32;
/// How long who waits without a bound sleeps at a time.
const LONG: Duration = Duration::from_secs(3600);
/// How long the thread waits before it looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// A port at which connections arrive. A thread makes them (SOVIA's connection thread, 3.3), so that the
/// other side need not wait for [`TcpListener::accept`]; another one takes requests meanwhile, which would
/// be refused if nobody waited for them.
#[derive(Debug)]
pub struct TcpListener {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
    local: NetAddress,
    _port: Option<Port>,
    nonblocking: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<ConnectionRequest>,
    connections: VecDeque<(Arc<Connection>, NetAddress)>,
    /// Tasks that wait for a connection.
    tasks: Vec<Waker>,
    stopped: bool,
    failed: Option<Error>,
}

impl TcpListener {
    /// Listens at a port of this host: [`Device::host`], or the port alone. Port 0 is any that is free
    /// ([`TcpListener::local_addr`]).
    ///
    /// # Errors
    /// [`Error::PortInUse`], [`Error::NotHere`], those of [`ToAddress`]; there is no thread for it.
    pub fn bind(device: &Device, local: impl ToAddress) -> io::Result<Self> {
        let wanted = local.to_address(device)?;
        if wanted.host != device.host() {
            return Err(Error::NotHere(wanted.to_string()).into());
        }
        let port = Port::take(wanted)?;
        let local = port.address().to_net();
        Ok(Self::listen(device, local, Some(port))?)
    }

    /// Listens at an address of VIA of the device. Several listeners may: each request is for one of them.
    ///
    /// # Errors
    /// An address that is too long; there is no thread for it.
    pub fn bind_to(device: &Device, local: &NetAddress) -> io::Result<Self> {
        Ok(Self::listen(device, local.clone(), None)?)
    }

    fn listen(device: &Device, local: NetAddress, port: Option<Port>) -> Result<Self> {
        let queue = Arc::<Queue>::default();
        let listener = device.nic().listen(&local, AT_ONCE)?;
        let mut inner = Inner {
            queue: Arc::clone(&queue),
            threads: Vec::new(),
            local,
            _port: port,
            nonblocking: AtomicBool::new(false),
        };
        let own = Arc::clone(&queue);
        inner.threads.push(spawn(move || own.listen(listener))?);
        let device = device.clone();
        inner.threads.push(spawn(move || queue.connect(&device))?);
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Waits for a connection, and gives the address that it is from. That its other side is set
    /// differently is an error of the first call.
    ///
    /// # Errors
    /// The card is absent; `WouldBlock` as [`TcpListener::set_nonblocking`] says.
    pub fn accept(&self) -> io::Result<(TcpStream, Address)> {
        let waits = !self.inner.nonblocking.load(Ordering::Relaxed);
        self.accept_until(if waits { None } else { Some(Instant::now()) })
    }

    /// Waits for a connection, at most so long.
    ///
    /// # Errors
    /// As [`TcpListener::accept`]; `WouldBlock` if none came.
    pub fn accept_within(&self, bound: Duration) -> io::Result<(TcpStream, Address)> {
        self.accept_until(Some(Instant::now() + bound))
    }

    fn accept_until(&self, end: Option<Instant>) -> io::Result<(TcpStream, Address)> {
        self.stream(self.inner.queue.next(end)?)
    }

    fn stream(&self, next: (Arc<Connection>, NetAddress)) -> io::Result<(TcpStream, Address)> {
        let (connection, peer) = next;
        let address = Address::from_net(&peer);
        Ok((TcpStream::of(connection, self.inner.local.clone(), peer, None)?, address))
    }

    /// Takes a connection, or has a task woken when there is one.
    #[cfg(feature = "tokio")]
    pub(crate) fn accept_or_wake(&self, task: &Waker) -> Option<io::Result<(TcpStream, Address)>> {
        self.inner.queue.next_or_wake(task).map(|next| self.stream(next?))
    }

    /// The connections that come, without end.
    pub const fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// Its address.
    ///
    /// # Errors
    /// None; as in `std`, as for the others here that have none.
    pub fn local_addr(&self) -> io::Result<Address> {
        Ok(Address::from_net(&self.inner.local))
    }

    /// The same listener once more.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { inner: Arc::clone(&self.inner) })
    }

    /// [`TcpListener::accept`] fails with `WouldBlock` instead of waiting.
    ///
    /// # Errors
    /// None.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.inner.nonblocking.store(nonblocking, Ordering::Relaxed);
        Ok(())
    }

    /// What keeps it from listening, if something does. Unlike `std`'s it stays.
    ///
    /// # Errors
    /// None.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(lock(&self.inner.queue.state).failed.clone().map(io::Error::from))
    }
}

/// The connections of a listener, see [`TcpListener::incoming`].
#[derive(Debug)]
pub struct Incoming<'a> {
    listener: &'a TcpListener,
}

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.listener.accept().map(|(stream, _)| stream))
    }
}

fn spawn(run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("sovia listener".to_owned());
    thread.spawn(run).map_err(|error| Error::NoThread(Arc::new(error)))
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue.change(|state| state.stopped = true);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Waiting {
    fn next(&mut self) -> Option<Result<(Arc<Connection>, NetAddress)>> {
        let next = self.connections.pop_front().map(Ok);
        next.or_else(|| self.failed.clone().map(Err))
    }
}

impl Queue {
    /// Changes something that threads and tasks may wait for.
    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        let mut state = lock(&self.state);
        change(&mut state);
        let tasks = core::mem::take(&mut state.tasks);
        drop(state);
        self.changed.notify_all();
        tasks.into_iter().for_each(Waker::wake);
    }

    fn next(&self, end: Option<Instant>) -> Result<(Arc<Connection>, NetAddress)> {
        let mut state = lock(&self.state);
        loop {
            if let Some(next) = state.next() {
                self.changed.notify_all();
                return next;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Error::WouldBlock);
            }
            let woken = self.changed.wait_timeout(state, left.unwrap_or(LONG));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    #[cfg(feature = "tokio")]
    fn next_or_wake(&self, task: &Waker) -> Option<Result<(Arc<Connection>, NetAddress)>> {
        let mut state = lock(&self.state);
        let next = state.next();
        if next.is_some() {
            self.changed.notify_all();
        } else if !state.tasks.iter().any(|known| known.will_wake(task)) {
            state.tasks.push(task.clone());
        }
        next
    }

    /// Takes requests.
    fn listen(&self, mut listener: vipl::Listener) {
        loop {
            let mut state = lock(&self.state);
            while state.requests.len() + state.connections.len() >= BACKLOG && !state.stopped {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.stopped {
                return;
            }
            drop(state);
            // It sleeps also where the program's waits poll: that processor is theirs.
            match listener.wait_as(LOOK, vipl::Waiting::default()) {
                Ok(request) => self.change(|state| state.requests.push_back(request)),
                Err(error) if error.code == VipReturn::Timeout => {}
                Err(error) => return self.change(|state| state.failed = Some(error.into())),
            }
        }
    }

    /// Makes connections of requests.
    fn connect(&self, device: &Device) {
        let mut state = lock(&self.state);
        while !state.stopped {
            if let Some(request) = state.requests.pop_front() {
                drop(state);
                self.make(device, &request);
                state = lock(&self.state);
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Accepts a request.
    fn make(&self, device: &Device, request: &ConnectionRequest) {
        if let Ok(connection) = Connection::accept(device, request) {
            let peer = request.remote_address().clone();
            self.change(|state| state.connections.push_back((connection, peer)));
        }
    }
}
