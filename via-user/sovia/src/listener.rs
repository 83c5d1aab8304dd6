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
/// How long the thread waits before it looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// How long a new connection has for its first packet.
const GREETING: Duration = Duration::from_secs(5);

/// A port at which connections arrive. A thread takes them (SOVIA's connection thread, 3.3), so that the
/// other side need not wait for [`Listener::accept`].
#[derive(Debug)]
pub struct Listener {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
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
        let queue = Arc::new(Queue::default());
        let (own, device) = (Arc::clone(&queue), device.clone());
        let local = Device::address(&device.host(), port);
        let thread = std::thread::Builder::new().name("sovia listener".to_owned());
        let thread = thread.spawn(move || own.run(&device, &local));
        let thread = thread.map_err(|error| Error::NoThread(Arc::new(error)))?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// The port is another listener's; the card is absent.
    pub fn accept(&self) -> Result<Stream> {
        loop {
            let (connection, peer) = self.queue.next()?;
            // One that says nothing, or something else, is none.
            if let Ok(stream) = Stream::of(connection, peer, Instant::now() + GREETING) {
                return Ok(stream);
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        lock(&self.queue.state).stopped = true;
        self.queue.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn next(&self) -> Result<(Arc<Connection>, NetAddress)> {
        let mut state = lock(&self.state);
        loop {
            if let Some(next) = state.connections.pop_front() {
                self.changed.notify_all();
                return Ok(next);
            }
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(&self, device: &Device, local: &NetAddress) {
        loop {
            let mut state = lock(&self.state);
            while state.connections.len() >= BACKLOG && !state.stopped {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.stopped {
                return;
            }
            drop(state);
            match device.nic().connect_wait(local, LOOK) {
                Ok(request) => self.take(device, request),
                Err(error) if error.code == VipReturn::Timeout => {}
                Err(error) => {
                    lock(&self.state).failed = Some(error.into());
                    self.changed.notify_all();
                    return;
                }
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
