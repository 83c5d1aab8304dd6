//! A node of `shm:` with one region of memory, which another node writes into; and how two of them
//! exchange their cookies.

use std::sync::Arc;

use port::DmaMemory;
use port::clan::{
    AccessRights, ClanEvent, ClanPeer, ClanPort, Cookie, EventQueue, Message, RegionNumber, Remote,
};
use soft_nic::shm::ShmNode;

use super::{Offered, Transport, poll};
use crate::Failure;

/// What a message with a cookie ends with. A node may also get what was meant for the one that had its
/// name before, such as VIPL's last words of a connection.
const MARK: &[u8; 8] = b"a cookie";

/// A node whose region is not open to anybody yet.
pub(super) struct Node {
    pub(super) port: Arc<dyn ClanPort>,
    pub(super) memory: DmaMemory,
    pub(super) region: RegionNumber,
    messages: Arc<dyn EventQueue>,
}

impl Node {
    /// A node whose region has so many bytes, all of them zero.
    pub(super) fn new(bytes: usize) -> Result<Self, Failure> {
        let port: Arc<dyn ClanPort> = Arc::new(ShmNode::open(None)?.port()?);
        let memory = port.allocate(bytes)?;
        let region = port.register(&memory)?;
        let messages = port.event_queue()?;
        port.set_message_queue(messages.number())?;
        Ok(Self { port, memory, region, messages })
    }

    /// Opens the region to a peer and sends it the cookie.
    fn open_to(&self, peer: &ClanPeer) -> Result<(), Failure> {
        let cookie = self.port.open(self.region, peer, AccessRights::WRITE)?;
        let mut message: Message = [0; 48];
        message[..8].copy_from_slice(&cookie.to_bits().to_le_bytes());
        message[40..].copy_from_slice(MARK);
        Ok(self.port.send_message(peer, &message)?)
    }

    /// Waits for the next message with a cookie; who sent it, and the cookie.
    fn cookie(&self) -> Result<(ClanPeer, Cookie), Failure> {
        poll(|| {
            let Some(ClanEvent::Message { from, message }) = self.messages.poll() else {
                return Ok(None);
            };
            if !message.ends_with(MARK) {
                return Ok(None);
            }
            let bits = message.first_chunk().copied().map(u64::from_le_bytes);
            let cookie = bits.and_then(Cookie::from_bits).ok_or("the other end has no cookie")?;
            Ok(Some((from, cookie)))
        })
    }

    /// Offers an end of the transport that `make` makes of this node and the other one's region.
    pub(super) fn offer<T: Transport + 'static>(
        self,
        make: impl FnOnce(Self, Box<dyn Remote>) -> T + 'static,
    ) -> Offered {
        let place = to_text(&self.port.attributes().own);
        let accept = move || -> Result<Box<dyn Transport>, Failure> {
            let (peer, cookie) = self.cookie()?;
            self.open_to(&peer)?;
            let remote = self.port.attach(&peer, cookie)?;
            Ok(Box::new(make(self, remote)))
        };
        Offered { place, accept: Box::new(accept) }
    }

    /// Joins the node at a place; the other one's region.
    pub(super) fn join(&self, place: &str) -> Result<Box<dyn Remote>, Failure> {
        let peer = from_text(place).ok_or_else(|| format!("`{place}` is no node"))?;
        self.open_to(&peer)?;
        let (_, cookie) = self.cookie()?;
        Ok(self.port.attach(&peer, cookie)?)
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
