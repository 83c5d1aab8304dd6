//! A server, as one thread has it: the request that it serves, and the answer that is marshalled.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use port::fork;
use port::sync::lock;
use via_rpc::{Buffer, Request, Settings};

use crate::client::check;
use crate::failure::{Code, Failure, Outcome};
use crate::node;
use crate::place::Place;

/// What the handles of an endpoint share.
#[derive(Debug)]
struct Shared {
    // The place first: nobody is sent to a server that ends.
    _place: Option<Place>,
    server: via_rpc::Server,
    generation: u32,
}

/// By their endpoints.
static SHARED: Mutex<BTreeMap<String, Weak<Shared>>> = Mutex::new(BTreeMap::new());

/// What `viarpc_server` stands for.
#[derive(Debug)]
pub struct Server {
    request: Option<Request>,
    body: Vec<u8>,
    answer: Option<Buffer>,
    shared: Arc<Shared>,
}

impl Server {
    /// A server at an endpoint, or another handle of the one that this process has there.
    ///
    /// # Errors
    /// No device; as `via_rpc::Server::bind`.
    pub fn bind(endpoint: &str) -> Outcome<Self> {
        let known = fork::without_forks(|| lock(&SHARED).get(endpoint).and_then(Weak::upgrade));
        let shared = match known {
            Some(shared) if check(shared.generation).is_ok() => shared,
            other => {
                core::mem::forget(other);
                Self::start(endpoint)?
            }
        };
        Ok(Self { request: None, body: Vec::new(), answer: None, shared })
    }

    fn start(endpoint: &str) -> Outcome<Arc<Shared>> {
        let device = node::device()?;
        let server = via_rpc::Server::bind(&device, endpoint, &Settings::default())?;
        let _place = Place::new(endpoint, &device.host());
        let shared = Arc::new(Shared { _place, server, generation: fork::generation() });
        let weak = Arc::downgrade(&shared);
        fork::without_forks(|| lock(&SHARED).insert(endpoint.to_owned(), weak));
        Ok(shared)
    }

    /// Waits for a request, whose bytes are good until the next one. One that was not answered meanwhile
    /// is dropped.
    ///
    /// # Errors
    /// As `via_rpc::Server::receive_any`.
    pub fn next(&mut self, timeout: Duration) -> Outcome<&[u8]> {
        check(self.shared.generation)?;
        self.answer = None;
        self.request = None;
        self.request = Some(self.shared.server.receive_any(&mut self.body, timeout)?);
        Ok(&self.body)
    }

    /// A buffer for an answer of `length` bytes.
    ///
    /// # Errors
    /// No request waits for one; the client is lost; no memory can be registered.
    pub fn answer(&mut self, length: usize) -> Outcome<&Buffer> {
        check(self.shared.generation)?;
        let request = self.request.as_ref().ok_or_else(no_request)?;
        self.answer = None;
        Ok(self.answer.insert(request.buffer(length)?))
    }

    /// Answers the request with the first `length` bytes of the buffer.
    ///
    /// # Errors
    /// As `via_rpc::Request::reply_with`. After `VIARPC_TOO_LONG` it can still be answered.
    pub fn reply(&mut self, length: usize) -> Outcome {
        check(self.shared.generation)?;
        let mut answer =
            self.answer.take().ok_or_else(|| Failure::invalid("no answer was marshalled"))?;
        if length > answer.capacity() {
            return Err(Failure::invalid("an answer longer than its buffer"));
        }
        let most = Settings::default().max_message as usize;
        if length > most {
            let text = format!("an answer of {length} bytes is too long: at most {most}");
            return Err(Failure::new(Code::TooLong, text));
        }
        answer.set_len(length);
        Ok(self.request.take().ok_or_else(no_request)?.reply_with(answer)?)
    }

    /// Ends this handle, in the process whose it is; with the last one the server ends.
    pub fn end(self) {
        if check(self.shared.generation).is_err() {
            core::mem::forget(self);
        }
    }
}

fn no_request() -> Failure {
    Failure::invalid("no request waits for an answer")
}
