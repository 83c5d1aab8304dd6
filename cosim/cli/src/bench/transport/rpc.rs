//! Calls of `via-rpc` on any device. The end that is offered calls, since it sends first; so the other
//! one has the server, and reports its host by a call of its own before.

use via_rpc::{Client, Device, Event, Request, Server, Settings};
use vipl::{Nic, Waiting};

use super::vipl::{hex, unhex};
use super::{BOUND, Offered, Transport, stamp_of};
use crate::Failure;

/// Endpoints: of the server that is measured, and of the one that is asked for its caller's host.
const MEASURED: &str = "bench";
const RENDEZVOUS: &str = "bench rendezvous";

fn open(device: &str, blocking: bool) -> Result<Device, Failure> {
    let waiting = if blocking { Waiting::default() } else { Waiting::Poll };
    Ok(Device::new(Nic::open_with(device::open(device)?, waiting))?)
}

/// Its answers are what it receives.
struct Caller {
    client: Client,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Transport for Caller {
    /// The request leaves with [`Transport::receive`], which makes the call.
    fn send(&mut self, length: usize, stamp: u32) -> Result<(), Failure> {
        self.request.resize(length.max(4), 1);
        self.request[..4].copy_from_slice(&stamp.to_le_bytes());
        self.request.truncate(length);
        Ok(())
    }

    fn receive(&mut self, _: usize) -> Result<u32, Failure> {
        self.client.call(&self.request, &mut self.answer, BOUND)?;
        Ok(stamp_of(&self.answer))
    }
}

/// It answers each request before it receives the next one.
struct Answerer {
    server: Server,
    body: Vec<u8>,
    request: Option<Request>,
}

impl Transport for Answerer {
    fn send(&mut self, length: usize, stamp: u32) -> Result<(), Failure> {
        self.body.resize(length.max(4), 1);
        self.body[..4].copy_from_slice(&stamp.to_le_bytes());
        let request = self.request.take().ok_or("no request to answer")?;
        Ok(request.reply(&self.body[..length])?)
    }

    fn receive(&mut self, _: usize) -> Result<u32, Failure> {
        self.request = Some(self.server.receive_any(&mut self.body, BOUND)?);
        Ok(stamp_of(&self.body))
    }
}

pub(super) fn offer(device: &str, blocking: bool) -> Result<Offered, Failure> {
    let device = open(device, blocking)?;
    let settings = Settings::default();
    let rendezvous = Server::bind(&device, RENDEZVOUS, &settings)?;
    let place = hex(&device.host());
    let accept = move || -> Result<Box<dyn Transport>, Failure> {
        let mut host = Vec::new();
        rendezvous.receive_any(&mut host, BOUND)?.reply(&[])?;
        let client = Client::connect(&device, &host, MEASURED, &settings, BOUND)?;
        Ok(Box::new(Caller { client, request: Vec::new(), answer: Vec::new() }))
    };
    Ok(Offered { place, accept: Box::new(accept) })
}

pub(super) fn join(
    device: &str,
    blocking: bool,
    place: &str,
) -> Result<Box<dyn Transport>, Failure> {
    let device = open(device, blocking)?;
    let settings = Settings::default();
    let server = Server::bind(&device, MEASURED, &settings)?;
    let host = unhex(place)?;
    let mut body = Vec::new();
    Client::connect(&device, &host, RENDEZVOUS, &settings, BOUND)?.call(
        &device.host(),
        &mut body,
        BOUND,
    )?;
    match server.next(&mut body, BOUND)? {
        Event::Connected(_) => Ok(Box::new(Answerer { server, body, request: None })),
        event => Err(format!("{event:?} before a client").into()),
    }
}
