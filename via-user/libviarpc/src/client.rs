//! A client: a connection, the request that is marshalled, and the last answer.

use std::time::Duration;

use port::fork;
use via_rpc::{Buffer, Settings};

use crate::failure::{Code, Failure, Outcome};
use crate::node::{self, LOCALHOST};

/// What `viarpc_client` stands for.
#[derive(Debug)]
pub struct Client {
    inner: via_rpc::Client,
    request: Option<Buffer>,
    answer: Vec<u8>,
    generation: u32,
}

/// Fails in a child after fork, which has not its parent's connections.
pub(crate) fn check(generation: u32) -> Outcome {
    if generation == fork::generation() {
        return Ok(());
    }
    Err(Failure::invalid("this handle is the parent process's: a child after fork makes its own"))
}

impl Client {
    /// Connects to an endpoint of a host.
    ///
    /// # Errors
    /// No device, no such host, no server; as `via_rpc::Client::connect`.
    pub fn connect(host: &str, endpoint: &str, timeout: Duration) -> Outcome<Self> {
        let device = node::device()?;
        let address = node::host(&device, host, endpoint)?;
        let settings = Settings::default();
        let inner = via_rpc::Client::connect(&device, &address, endpoint, &settings, timeout);
        let inner = inner.map_err(|error| match Failure::from(error) {
            // Whoever served it there last is dead, or nobody ever has.
            failure if host == LOCALHOST && failure.code == Code::Unreachable => {
                let text = format!("no program of this machine serves endpoint `{endpoint}`");
                Failure::new(Code::Refused, text)
            }
            failure => failure,
        })?;
        let generation = fork::generation();
        Ok(Self { inner, request: None, answer: Vec::new(), generation })
    }

    /// A buffer for a request of `length` bytes.
    ///
    /// # Errors
    /// The connection is lost; no memory can be registered.
    pub fn request(&mut self, length: usize) -> Outcome<&Buffer> {
        check(self.generation)?;
        // First, so that the same memory is found again.
        self.request = None;
        Ok(self.request.insert(self.inner.buffer(length)?))
    }

    /// Sends the first `length` bytes of the buffer, and waits for the answer.
    ///
    /// # Errors
    /// As `via_rpc::Client::call`.
    pub fn call(&mut self, length: usize, timeout: Duration) -> Outcome<&[u8]> {
        check(self.generation)?;
        let mut request =
            self.request.take().ok_or_else(|| Failure::invalid("no request was marshalled"))?;
        if length > request.capacity() {
            return Err(Failure::invalid("a request longer than its buffer"));
        }
        request.set_len(length);
        self.inner.call_with(request, &mut self.answer, timeout)?;
        Ok(&self.answer)
    }

    /// Ends the connection, in the process whose it is.
    pub fn end(self) {
        if check(self.generation).is_err() {
            core::mem::forget(self);
        }
    }
}
