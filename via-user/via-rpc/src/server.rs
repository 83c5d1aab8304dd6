//! A server: one completion queue for the receives of all its clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use port::sync::lock;
use vipl::{ConnectionRequest, Cq, CqEntry, VipReturn};

use crate::accept::{Acceptor, Accepts, LOOK};
use crate::buffers::{BufferCounters, Buffers};
use crate::connection::{Arrival, Connection, Role};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::peer::Peer;
use crate::request::Request;
use crate::settings::Settings;
use crate::waiting::Deadline;

/// How long a client may take for its two trips of the negotiation.
const NEGOTIATION: Duration = Duration::from_secs(10);
/// Completions that a client has at most beside those of its credits.
const SPARE_ENTRIES: u32 = 3;

/// How long a server that ends gives its clients to take answers that wait for their credits.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often it looks at all of them meanwhile.
const FAREWELL_LOOK: Duration = Duration::from_millis(1);

/// Looks at the last client's VI for one at the completion queue, where others write as well.
const CQ_TURNS: usize = 16;

/// What happens to a server. Where several threads receive, one may have a client's first request before
/// another one has handled that it has connected.
#[derive(Debug)]
pub enum Event {
    /// A client has connected.
    Connected(Peer),
    /// A client calls: its request is in the vector.
    Request(Request),
    /// A client has ended its connection or died ([`Error::Lost`]), or broken the protocol.
    Ended(Peer, Error),
}

/// A server at an endpoint. Any number of threads may receive, each an event of its own. Dropped, it ends
/// the connections of its clients, once they have taken the answers that wait for their credits, or after a
/// second.
#[derive(Debug)]
pub struct Server {
    inner: Arc<Inner>,
    _acceptor: Acceptor,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    settings: Settings,
    buffers: Buffers,
    /// By the number of their VI.
    peers: Mutex<BTreeMap<u16, Peer>>,
    /// The client whose request came last: the next one is likely to be its own.
    recent: Mutex<Option<Peer>>,
    failed: Mutex<Option<Error>>,
    /// After the VIs that report to it.
    cq: Cq,
}

impl Server {
    /// A server at a named endpoint of the device. Several at one endpoint share its clients.
    ///
    /// # Errors
    /// [`Error::Settings`], [`Error::Endpoint`]; [`Error::NoThread`]; the NIC has no completion queue
    /// left.
    pub fn bind(device: &Device, endpoint: &str, settings: &Settings) -> Result<Self> {
        settings.check().map_err(Error::Settings)?;
        let local = Device::address(&device.host(), endpoint)?;
        let nic = device.nic();
        let clients = u32::try_from(settings.clients).unwrap_or(u32::MAX);
        let entries = clients.saturating_mul(u32::from(settings.credits) + SPARE_ENTRIES);
        let cq = nic.create_cq(entries.min(nic.query().max_cq_entries))?;
        let inner = Arc::new(Inner {
            device: device.clone(),
            settings: *settings,
            buffers: Buffers::new(device, settings),
            peers: Mutex::default(),
            recent: Mutex::default(),
            failed: Mutex::default(),
            cq,
        });
        let acceptor = Acceptor::start(nic, local, &inner)?;
        Ok(Self { inner, _acceptor: acceptor })
    }

    /// ReceiveAny: waits for a request of any client, which takes the place of what is in `body`. With a
    /// vector that is used again this allocates nothing.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::Via`] if the NIC fails, for good. What a client does is none.
    pub fn receive_any(&self, body: &mut Vec<u8>, timeout: Duration) -> Result<Request> {
        let mut deadline = Deadline::after(timeout);
        loop {
            if let Event::Request(request) = self.inner.next(body, &mut deadline)? {
                return Ok(request);
            }
        }
    }

    /// As [`Server::receive_any`], for programs that want to know of clients that come and go.
    ///
    /// # Errors
    /// As [`Server::receive_any`].
    pub fn next(&self, body: &mut Vec<u8>, timeout: Duration) -> Result<Event> {
        self.inner.next(body, &mut Deadline::after(timeout))
    }

    /// Clients that are connected, or about to be.
    #[must_use]
    pub fn clients(&self) -> usize {
        lock(&self.inner.peers).len()
    }

    /// What the cache of buffers for answers has seen.
    #[must_use]
    pub fn buffer_counters(&self) -> BufferCounters {
        self.inner.buffers.counters()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        *lock(&self.inner.recent) = None;
        let peers = core::mem::take(&mut *lock(&self.inner.peers));
        self.inner.flush(peers.values().collect());
        // Requests may keep them.
        peers.into_values().for_each(|peer| peer.lock().close());
    }
}

/// What a look has found.
enum Found {
    /// A receive is done.
    Entry(CqEntry),
    /// A packet of the client that was looked at; perhaps it is an event.
    Packet(Option<Event>),
}

impl Inner {
    /// Looks at the completion queue, and, while that has nothing, at the VI of the client whose request
    /// came last: a packet is there a little before it is reported. The entry that reports it finds
    /// nothing then. The queue comes first in each call, so that no client waits for another one.
    fn next(&self, body: &mut Vec<u8>, deadline: &mut Deadline) -> Result<Event> {
        let nic = self.device.nic();
        let recent = lock(&self.recent).clone();
        loop {
            let mut turn = CQ_TURNS - 1;
            let look = || {
                turn += 1;
                let entry = turn.is_multiple_of(CQ_TURNS).then(|| self.cq.poll().ok()).flatten();
                let packet = || self.take(recent.as_ref()?, body).map(Found::Packet);
                entry.map(Found::Entry).or_else(packet)
            };
            let found = match nic.spin(look) {
                Some(found) => Ok(found),
                None => {
                    if let Some(failed) = &*lock(&self.failed) {
                        return Err(failed.clone());
                    }
                    self.cq.wait(deadline.left()?.min(LOOK)).map(Found::Entry)
                }
            };
            let event = match found {
                Ok(Found::Packet(event)) => event,
                Ok(Found::Entry(entry)) => self.handle(&entry, body),
                Err(VipReturn::Timeout) => None,
                Err(code) => return Err(vipl::Error::from(code).into()),
            };
            if let Some(event) = event {
                return Ok(event);
            }
        }
    }

    /// Sends what waits for credits, while clients give them.
    fn flush(&self, mut peers: Vec<&Peer>) {
        let end = Instant::now() + FAREWELL;
        loop {
            peers.retain(|peer| !peer.lock().flush());
            if peers.is_empty() || Instant::now() >= end {
                return;
            }
            // Whose entry it is does not matter.
            let _ = self.cq.wait(FAREWELL_LOOK);
        }
    }

    /// A receive of a client is done.
    fn handle(&self, entry: &CqEntry, body: &mut Vec<u8>) -> Option<Event> {
        let peer = lock(&self.peers).get(&entry.vi.number()).cloned();
        // What was flushed for a client that has been dropped, is not looked at.
        let peer = peer.filter(|peer| *peer.vi() == entry.vi)?;
        self.take(&peer, body).flatten()
    }

    /// Takes the oldest packet of a client, if there is one; perhaps it is an event. There are as many
    /// entries as packets, and threads take packets under the client's lock, so each comes in its order.
    fn take(&self, peer: &Peer, body: &mut Vec<u8>) -> Option<Option<Event>> {
        let mut connection = peer.lock();
        let completion = connection.poll()?;
        let was_open = connection.is_open();
        Some(match connection.arrive(&completion) {
            Ok(Arrival::Nothing) => None,
            Ok(Arrival::Established) => Some(Event::Connected(peer.clone())),
            Ok(Arrival::Message(header)) => {
                connection.take_message(body);
                drop(connection);
                let mut recent = lock(&self.recent);
                if recent.as_ref() != Some(peer) {
                    *recent = Some(peer.clone());
                }
                Some(Event::Request(Request::new(peer.clone(), header.call)))
            }
            Err(error) => {
                drop(connection);
                lock(&self.recent).take_if(|recent| recent == peer);
                // Once: its other receives are flushed, too, and another thread may have one.
                let removed = lock(&self.peers).remove(&peer.vi().number());
                (was_open && removed.is_some()).then(|| Event::Ended(peer.clone(), error))
            }
        })
    }
}

impl Accepts for Inner {
    fn accept(&self, request: ConnectionRequest) {
        if lock(&self.peers).len() >= self.settings.clients {
            return request.reject();
        }
        let queue = Some(&self.cq);
        let made =
            Connection::new(&self.device, &self.settings, &self.buffers, queue, Role::Server);
        // The NIC has no more: as if there were too many.
        let Ok(connection) = made else { return request.reject() };
        let peer = Peer::new(connection, request.remote_address().clone());
        let number = peer.vi().number();
        // First, so that its packets find it.
        lock(&self.peers).insert(number, peer.clone());
        if request.accept(peer.vi()).is_err() || peer.lock().accepted().is_err() {
            lock(&self.peers).remove(&number);
        }
    }

    /// Drops clients that do not negotiate.
    fn tend(&self) {
        let is_late = |peer: &Peer| peer.since().elapsed() > NEGOTIATION && !peer.lock().is_open();
        let late: Vec<Peer> = {
            let mut peers = lock(&self.peers);
            peers.extract_if(.., |_, peer| is_late(peer)).map(|(_, peer)| peer).collect()
        };
        late.iter().for_each(|peer| peer.lock().fail(Error::TimedOut));
    }

    fn fail(&self, error: Error) {
        lock(&self.failed).get_or_insert(error);
    }
}
