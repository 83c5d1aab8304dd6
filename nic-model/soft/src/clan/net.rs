//! What VIs need of the network: the port, memory for inboxes, a message to the other end.

use std::sync::Arc;

use port::StopReason;
use port::clan::{ClanPort, Message};

use super::inbox::Inboxes;
use super::link::Link;

/// First byte of the message that a VI stopped; connection messages begin with their version.
pub(super) const STOP: u8 = 0xc1;

/// The network, as VIs use it.
#[derive(Debug)]
pub(super) struct Net {
    pub(super) port: Arc<dyn ClanPort>,
    pub(super) inboxes: Inboxes,
}

impl Net {
    /// Notifies the VI at the other end that this one stopped, also if its program does not look.
    pub(super) fn send_stop(&self, link: &Link, reason: StopReason) {
        let mut message: Message = [0; 48];
        message[0] = STOP;
        message[1] = u8::from(reason == StopReason::Disconnected);
        message[2..4].copy_from_slice(&link.remote.vi.to_le_bytes());
        message[4..6].copy_from_slice(&link.remote.connection.to_le_bytes());
        // A peer that does not take it finds the connection closed when it uses it.
        let _ = self.port.send_message(&link.peer, &message);
    }
}
