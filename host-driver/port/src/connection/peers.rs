//! Connections of peers that name each other: what differs from client and server.

use super::Connections;
use super::acceptor::{InState, Listener};
use super::message::Body;
use super::retry::RETRY_MAX_NS;
use crate::address::NetAddress;
use crate::attributes::RemoteAttributes;

/// How long a peer's request is kept after its last repeat.
pub(super) const HELD_NS: u64 = 2 * RETRY_MAX_NS + RETRY_MAX_NS / 2;

/// Whether the peer at `local` is the one that requests a connection with the peer at `remote`: the
/// one with the lower address. Two peers agree on this without a word. They may not be the same.
#[must_use]
pub fn is_requester(local: &NetAddress, remote: &NetAddress) -> bool {
    local < remote
}

impl Connections {
    /// Waits for the request of the peer at `remote`, which must be [`is_requester`], to `local`. Then
    /// as for a client's request, but for [`Connections::mismatch`].
    pub fn listen_peer(&mut self, now: u64, local: &NetAddress, remote: &NetAddress) -> u32 {
        let (local, peer) = (local.clone(), Some(remote.clone()));
        self.add_listener(now, Listener { local, peer, offered: None })
    }

    /// Refuses a peer's request: the VIs are not alike. `local` says how.
    pub fn mismatch(&mut self, now: u64, key: (u32, u32), local: RemoteAttributes) {
        let forgotten_at = self.forgotten_at(now);
        let Some(arrived) = self.incoming.get_mut(&key) else { return };
        if arrived.state == InState::Offered {
            let connection = arrived.vi.attributes.connection;
            let attributes = RemoteAttributes { connection, ..local };
            arrived.finish(InState::Mismatch(attributes), forgotten_at);
            self.send(key.0, key.1, &Body::Mismatch { attributes });
        }
    }
}
