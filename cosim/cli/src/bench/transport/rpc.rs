//! Calls of `via-rpc` on any device. The end that is offered calls, since it sends first; so the other
//! one has the server, and reports its host by a call of its own before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use port::sync::lock;
use via_rpc::{Client, Device, Event, Request, Server, Settings};
use vipl::{Nic, Waiting};

use super::vipl::{hex, unhex};
use super::{BOUND, Offered, Transport, stamp_of};
use crate::Failure;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Servers {
    /// Each client has a server of its own.
    One,
    /// All clients of the other process have one, whose requests any of its threads takes.
    Shared,
}

/// A server with a device that outlives it.
struct Shop {
    server: Server,
    _device: Device,
}

/// The server of all clients, while there are any.
static SHARED: Mutex<Weak<Shop>> = Mutex::new(Weak::new());

impl Servers {
    /// Endpoint of the server that is measured; several at one endpoint would share its clients.
    fn endpoint(self, number: &str) -> String {
        match self {
            Self::One => format!("bench {number}"),
            Self::Shared => "bench of all".to_owned(),
        }
    }

    fn shop(self, device: Device, number: &str) -> Result<Arc<Shop>, Failure> {
        let mut shared = lock(&SHARED);
        if self == Self::Shared
            && let Some(shop) = shared.upgrade()
        {
            return Ok(shop);
        }
        let server = Server::bind(&device, &self.endpoint(number), &Settings::default())?;
        let shop = Arc::new(Shop { server, _device: device });
        if self == Self::Shared {
            *shared = Arc::downgrade(&shop);
        }
        Ok(shop)
    }
}

/// Endpoint of the server that is asked for its caller's host.
fn rendezvous(number: &str) -> String {
    format!("bench rendezvous {number}")
}

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
    shop: Arc<Shop>,
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
        self.request = Some(self.shop.server.receive_any(&mut self.body, BOUND)?);
        Ok(stamp_of(&self.body))
    }
}

pub(super) fn offer(device: &str, blocking: bool, servers: Servers) -> Result<Offered, Failure> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let device = open(device, blocking)?;
    let settings = Settings::default();
    let number = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let asked = Server::bind(&device, &rendezvous(&number), &settings)?;
    let place = format!("{} {number}", hex(&device.host()));
    let accept = move || -> Result<Box<dyn Transport>, Failure> {
        let mut host = Vec::new();
        asked.receive_any(&mut host, BOUND)?.reply(&[])?;
        let endpoint = servers.endpoint(&number);
        let client = Client::connect(&device, &host, &endpoint, &settings, BOUND)?;
        Ok(Box::new(Caller { client, request: Vec::new(), answer: Vec::new() }))
    };
    Ok(Offered { place, accept: Box::new(accept) })
}

pub(super) fn join(
    device: &str,
    blocking: bool,
    place: &str,
    servers: Servers,
) -> Result<Box<dyn Transport>, Failure> {
    let (host, number) = place.split_once(' ').ok_or("a place has a host and a number")?;
    let device = open(device, blocking)?;
    let settings = Settings::default();
    let shop = servers.shop(device.clone(), number)?;
    let mut body = Vec::new();
    Client::connect(&device, &unhex(host)?, &rendezvous(number), &settings, BOUND)?.call(
        &device.host(),
        &mut body,
        BOUND,
    )?;
    match shop.server.next(&mut body, BOUND)? {
        Event::Connected(_) => Ok(Box::new(Answerer { shop, body, request: None })),
        event => Err(format!("{event:?} before a client").into()),
    }
}
