//! A client: one connection, on which it makes one call at a time.

use std::time::{Duration, Instant};

use vipl::{NetAddress, Nic, VipReturn};

use crate::buffers::{Buffer, BufferCounters, Buffers};
use crate::connection::{Arrival, Connection, Role};
use crate::device::Device;
use crate::error::{Error, Result, Violation};
use crate::header::MessageHeader;
use crate::settings::Settings;
use crate::waiting::Deadline;

/// How long no server must wait for a connection to be refused: one that has just taken a connection
/// does not wait for a moment.
const REFUSAL: Duration = Duration::from_millis(100);
/// Time between two attempts.
const AGAIN: Duration = Duration::from_micros(200);
/// Longest attempt.
const ATTEMPT: Duration = Duration::from_secs(60);

/// A client of an endpoint. Each thread has its own, as in the paper: nothing is shared, not even a
/// completion queue.
#[derive(Debug)]
pub struct Client {
    nic: Nic,
    connection: Connection,
    server: NetAddress,
    buffers: Buffers,
    last_call: u32,
}

impl Client {
    /// Connects to a named endpoint of a host of VIA (the local address of its NIC).
    ///
    /// A server negotiates in [`crate::Server::receive_any`]: one that is busy keeps its clients waiting.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Rejected`], [`Error::Disagreement`], [`Error::TimedOut`];
    /// [`Error::Settings`] and [`Error::Endpoint`] for what cannot be.
    pub fn connect(
        device: &Device,
        host: &[u8],
        endpoint: &str,
        settings: &Settings,
        timeout: Duration,
    ) -> Result<Self> {
        settings.check().map_err(Error::Settings)?;
        let server = Device::address(host, endpoint)?;
        let nic = device.nic().clone();
        let buffers = Buffers::new(device, settings);
        let connection = Connection::new(device, settings, &buffers, None, Role::Client)?;
        let mut client = Self { nic, connection, server, buffers, last_call: 0 };
        let mut deadline = Deadline::after(timeout);
        client.request_connection(device, endpoint, &mut deadline)?;
        client.connection.accepted()?;
        client.connection.hello(settings)?;
        while client.receive_direct(&mut deadline)? != Arrival::Established {}
        Ok(client)
    }

    fn request_connection(
        &self,
        device: &Device,
        endpoint: &str,
        deadline: &mut Deadline,
    ) -> Result<()> {
        let local = NetAddress::new(&device.host(), b"");
        let refused = Instant::now() + REFUSAL;
        loop {
            let bound = deadline.left()?.min(ATTEMPT);
            let requested = self.connection.vi().connect_request(&local, &self.server, bound);
            let Err(error) = requested else { return Ok(()) };
            match error.code {
                VipReturn::NoMatch if Instant::now() < refused => std::thread::sleep(AGAIN),
                VipReturn::NoMatch => return Err(Error::Refused(endpoint.to_owned())),
                VipReturn::Reject => return Err(Error::Rejected(endpoint.to_owned())),
                // The deadline decides.
                VipReturn::Timeout => {}
                _ => return Err(error.into()),
            }
        }
    }

    /// ReceiveDirect: waits for a packet of the one connection.
    fn receive_direct(&mut self, deadline: &mut Deadline) -> Result<Arrival> {
        let completion = match self.nic.spin(|| self.connection.poll()) {
            Some(completion) => completion,
            None => self.connection.vi().recv_wait(deadline.left()?),
        };
        match &completion {
            Err(error) if error.code == VipReturn::Timeout => Err(Error::TimedOut),
            completion => self.connection.arrive(completion),
        }
    }

    /// Calls the server: sends a request, and waits for its answer, which takes the place of what is in
    /// `reply`. With a vector that is used again this allocates nothing.
    ///
    /// # Errors
    /// [`Error::TimedOut`]: the client can be used for the next call. [`Error::Unanswered`] and
    /// [`Error::TooLong`]: likewise. [`Error::Lost`] or [`Error::Violation`]: for good.
    pub fn call(&mut self, request: &[u8], reply: &mut Vec<u8>, timeout: Duration) -> Result<()> {
        let mut buffer = self.buffer(request.len())?;
        buffer.append(request)?;
        self.call_with(buffer, reply, timeout)
    }

    /// An empty buffer for a request of `length` bytes, to be marshalled in place.
    ///
    /// # Errors
    /// The NIC cannot register more memory; the connection is lost.
    pub fn buffer(&mut self, length: usize) -> Result<Buffer> {
        self.connection.buffer(length)
    }

    /// As [`Client::call`], without a copy of the request.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn call_with(
        &mut self,
        request: Buffer,
        reply: &mut Vec<u8>,
        timeout: Duration,
    ) -> Result<()> {
        self.last_call = self.last_call.wrapping_add(1);
        self.connection.queue(request, self.last_call)?;
        let mut deadline = Deadline::after(timeout);
        loop {
            let Arrival::Message(answer) = self.receive_direct(&mut deadline)? else { continue };
            if self.is_due(answer)? {
                if answer.is_unanswered {
                    return Err(Error::Unanswered);
                }
                self.connection.take_message(reply);
                return Ok(());
            }
        }
    }

    /// Whether an answer is that of the last call, not of one whose time was over.
    fn is_due(&mut self, answer: MessageHeader) -> Result<bool> {
        if self.last_call.wrapping_sub(answer.call) > u32::MAX / 2 {
            let violation = Error::from(Violation::Answer(answer.call));
            self.connection.fail(violation.clone());
            return Err(violation);
        }
        Ok(answer.call == self.last_call)
    }

    /// The server's address of VIA.
    #[must_use]
    pub const fn server(&self) -> &NetAddress {
        &self.server
    }

    /// What the cache of buffers for requests has seen.
    #[must_use]
    pub fn buffer_counters(&self) -> BufferCounters {
        self.buffers.counters()
    }

    /// The connection, for calls that are made in another manner.
    #[cfg(feature = "tarpc")]
    pub(crate) fn into_connection(self) -> (Connection, NetAddress) {
        (self.connection, self.server)
    }
}
