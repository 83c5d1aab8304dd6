//! Listeners, in the manner of `std::net::TcpListener`.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use port::sync::lock;
use vipl::{ConnectionRequest, NetAddress, VipReturn};

use crate::connection::Connection;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::stream::Stream;

/// Connections that wait to be accepted.
const BACKLOG: usize = 128;
/// How long who waits without a bound sleeps at a time.
const LONG: Duration = Duration::from_secs(3600);
/// How long the thread waits before it looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// A port at which connections arrive. A thread makes them (SOVIA's connection thread, 3.3), so that the
/// other side need not wait for [`Listener::accept`]; another one takes requests meanwhile, which would
/// be refused if nobody waited for them.
#[derive(Debug)]
pub struct Listener {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
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
    stopped: bool,
    failed: Option<Error>,
}

impl Listener {
    /// Listens at a port of the device.
    ///
    /// # Errors
    /// There is no thread for it. That the port is taken is found by [`Listener::accept`].
    pub fn bind(device: &Device, port: u16) -> Result<Self> {
        Self::bind_to(device, &Device::address(&device.host(), port))
    }

    /// Listens at an address of the device.
    ///
    /// # Errors
    /// As [`Listener::bind`].
    pub fn bind_to(device: &Device, local: &NetAddress) -> Result<Self> {
        let mut listener = Self { queue: Arc::default(), threads: Vec::new() };
        let (queue, own, local) = (Arc::clone(&listener.queue), device.clone(), local.clone());
        listener.threads.push(spawn(move || queue.listen(&own, &local))?);
        let (queue, own) = (Arc::clone(&listener.queue), device.clone());
        listener.threads.push(spawn(move || queue.connect(&own))?);
        Ok(listener)
    }

    /// Waits for a connection. That its other side is set differently is an error of the first call.
    ///
    /// # Errors
    /// The port is another listener's; the card is absent.
    pub fn accept(&self) -> Result<Stream> {
        self.accept_until(None)
    }

    /// Waits for a connection, at most so long.
    ///
    /// # Errors
    /// As [`Listener::accept`]; [`Error::WouldBlock`] if none came.
    pub fn accept_within(&self, bound: Duration) -> Result<Stream> {
        self.accept_until(Some(Instant::now() + bound))
    }

    fn accept_until(&self, end: Option<Instant>) -> Result<Stream> {
        let (connection, peer) = self.queue.next(end)?;
        Stream::of(connection, peer)
    }
}

fn spawn(run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("sovia listener".to_owned());
    thread.spawn(run).map_err(|error| Error::NoThread(Arc::new(error)))
}

impl Drop for Listener {
    fn drop(&mut self) {
        lock(&self.queue.state).stopped = true;
        self.queue.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn next(&self, end: Option<Instant>) -> Result<(Arc<Connection>, NetAddress)> {
        let mut state = lock(&self.state);
        loop {
            if let Some(next) = state.connections.pop_front() {
                self.changed.notify_all();
                return Ok(next);
            }
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Error::WouldBlock);
            }
            let woken = self.changed.wait_timeout(state, left.unwrap_or(LONG));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes requests.
    fn listen(&self, device: &Device, local: &NetAddress) {
        loop {
            let mut state = lock(&self.state);
            while state.requests.len() + state.connections.len() >= BACKLOG && !state.stopped {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.stopped {
                return;
            }
            drop(state);
            match device.nic().connect_wait(local, LOOK) {
                Ok(request) => {
                    lock(&self.state).requests.push_back(request);
                    self.changed.notify_all();
                }
                Err(error) if error.code == VipReturn::Timeout => {}
                Err(error) => {
                    lock(&self.state).failed = Some(error.into());
                    self.changed.notify_all();
                    return;
                }
            }
        }
    }

    /// Makes connections of requests.
    fn connect(&self, device: &Device) {
        let mut state = lock(&self.state);
        while !state.stopped {
            if let Some(request) = state.requests.pop_front() {
                drop(state);
                self.take(device, request);
                state = lock(&self.state);
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Accepts a request. One that cannot be accepted is rejected by its end.
    fn take(&self, device: &Device, request: ConnectionRequest) {
        let peer = request.remote_address().clone();
        let Ok(connection) = Connection::new(device) else { return request.reject() };
        if request.accept(connection.vi()).is_err() || connection.greet().is_err() {
            return;
        }
        lock(&self.state).connections.push_back((connection, peer));
        self.changed.notify_all();
    }
}
