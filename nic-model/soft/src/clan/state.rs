//! The state of a VI.

use std::sync::Mutex;

use super::link::Link;
use crate::via::descriptor::Pieces;
use crate::via::vi::ViCore;

/// A VI.
#[derive(Debug)]
pub(super) struct Vi {
    pub(super) number: u16,
    pub(super) state: Mutex<State>,
}

/// Its state, under its lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) vi: ViCore,
    /// How many of the receives the peer knows.
    pub(super) offered: usize,
    /// Bytes of the oldest send that the peer has.
    pub(super) sent: usize,
    /// Where in it begins what the peer's oldest receive takes.
    pub(super) share: usize,
    /// Bytes of the message under way that are in the oldest receive's buffers.
    pub(super) received: usize,
    /// Where the data of a descriptor is, while it is carried out.
    pub(super) pieces: Option<Box<Pieces>>,
    pub(super) link: Option<Link>,
}

impl State {
    /// Of a VI that is not connected.
    pub(super) const fn new(vi: ViCore) -> Self {
        Self { vi, offered: 0, sent: 0, share: 0, received: 0, pieces: None, link: None }
    }

    /// Forgets what was posted.
    pub(super) fn empty(&mut self) {
        self.vi.empty();
        (self.offered, self.received) = (0, 0);
        (self.sent, self.share) = (0, 0);
    }
}
