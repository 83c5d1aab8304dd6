//! The bare distributed message queue, without VIA on it: what VIPL on `shm:` is a layer over.

use std::sync::Arc;

use port::clan::message_queue::{Layout, Receiver, Sender};
use port::clan::{
    AccessRights, ClanEvent, ClanPeer, ClanPort, Cookie, EventQueue, Message, Remote,
};
use port::{DmaMemory, memory::PAGE_BYTES};
use soft_nic::shm::ShmNode;

use super::{Offered, Transport, poll};
use crate::Failure;

/// Bytes of a message: what goes with its flags into a cache line.
pub(super) const BODY: usize = 56;
const COUNT: usize = 256;
const LAYOUT: Layout = Layout { slots: PAGE_BYTES, count: COUNT, written: Some(0), read: 64 };
const BYTES: usize = PAGE_BYTES + 64 * COUNT;

struct Queue {
    to: Box<dyn Remote>,
    sender: Sender,
    receiver: Receiver,
    _port: Arc<dyn ClanPort>,
}

/// This end's memory, which is not open to anybody yet.
struct Own {
    port: Arc<dyn ClanPort>,
    memory: DmaMemory,
    messages: Arc<dyn EventQueue>,
}

impl Own {
    fn new() -> Result<Self, Failure> {
        let port: Arc<dyn ClanPort> = Arc::new(ShmNode::open(None)?.port()?);
        let memory = port.allocate(BYTES)?;
        let messages = port.event_queue()?;
        port.set_message_queue(messages.number())?;
        Ok(Self { port, memory, messages })
    }

    fn open_to(&self, peer: &ClanPeer) -> Result<Cookie, Failure> {
        let region = self.port.register(&self.memory)?;
        Ok(self.port.open(region, peer, AccessRights::WRITE)?)
    }

    fn connect(self, peer: &ClanPeer, cookie: Cookie) -> Result<Queue, Failure> {
        let to = self.port.attach(peer, cookie)?;
        let sender = Sender::new(LAYOUT, self.memory.clone(), 0);
        let receiver = Receiver::new(LAYOUT, self.memory, 0);
        Ok(Queue { to, sender, receiver, _port: self.port })
    }
}

/// Where a node is, as a word.
fn to_text(peer: &ClanPeer) -> String {
    format!("{}/{}", String::from_utf8_lossy(&peer.host), peer.domain)
}

fn from_text(text: &str) -> Option<ClanPeer> {
    let (host, domain) = text.split_once('/')?;
    Some(ClanPeer { host: host.as_bytes().to_vec(), domain: domain.parse().ok()? })
}

impl Own {
    fn say(&self, to: &ClanPeer, cookie: Cookie) -> Result<(), Failure> {
        let mut message: Message = [0; 48];
        message[..8].copy_from_slice(&cookie.to_bits().to_le_bytes());
        Ok(self.port.send_message(to, &message)?)
    }

    /// The next message: who sent it, and its cookie.
    fn hear(&self) -> Result<(ClanPeer, Cookie), Failure> {
        poll(|| {
            let Some(ClanEvent::Message { from, message }) = self.messages.poll() else {
                return Ok(None);
            };
            let bits = message.first_chunk().copied().map(u64::from_le_bytes);
            let cookie = bits.and_then(Cookie::from_bits).ok_or("the other end has no cookie")?;
            Ok(Some((from, cookie)))
        })
    }
}

pub(super) fn offer() -> Result<Offered, Failure> {
    let own = Own::new()?;
    let place = to_text(&own.port.attributes().own);
    let accept = move || -> Result<Box<dyn Transport>, Failure> {
        let (peer, cookie) = own.hear()?;
        own.say(&peer, own.open_to(&peer)?)?;
        Ok(Box::new(own.connect(&peer, cookie)?))
    };
    Ok(Offered { place, accept: Box::new(accept) })
}

pub(super) fn join(place: &str) -> Result<Box<dyn Transport>, Failure> {
    let own = Own::new()?;
    let peer = from_text(place).ok_or_else(|| format!("`{place}` is no node"))?;
    own.say(&peer, own.open_to(&peer)?)?;
    let (_, cookie) = own.hear()?;
    Ok(Box::new(own.connect(&peer, cookie)?))
}

impl Transport for Queue {
    fn send(&mut self, _length: usize, stamp: u32) -> Result<(), Failure> {
        poll(|| Ok((self.sender.room() > 0).then_some(())))?;
        let sent = self.sender.send(&mut *self.to, &[stamp.into(), 0, 0, 0, 0, 0, 0]);
        sent.map_err(|error| format!("the message queue: {error:?}").into())
    }

    fn receive(&mut self, length: usize) -> Result<u32, Failure> {
        poll(|| self.poll_receive(length))
    }

    #[inline]
    fn poll_receive(&mut self, _length: usize) -> Result<Option<u32>, Failure> {
        let Some(body) = self.receiver.peek() else { return Ok(None) };
        self.receiver.take();
        let returned = self.receiver.give_back(&mut *self.to);
        returned.map_err(|error| format!("the message queue: {error:?}"))?;
        Ok(Some(u32::try_from(body[0] & u64::from(u32::MAX))?))
    }
}
