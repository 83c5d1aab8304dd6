//! The state of a VI.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use port::doorbell::Post;
use port::events::EventList;
use port::{Queue, ViSettings};

use super::link::Link;
use crate::via::completion::Records;
use crate::via::descriptor::Pieces;
use crate::via::region::{Known, Regions};

/// A VI.
#[derive(Debug)]
pub(super) struct Vi {
    pub(super) number: u16,
    pub(super) state: Mutex<State>,
}

/// Its state, under its lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) number: u16,
    pub(super) settings: ViSettings,
    pub(super) regions: Arc<Regions>,
    pub(super) events: Arc<EventList>,
    pub(super) records: [Option<Arc<Records>>; 2],
    pub(super) known: Known,
    /// Receives that are not completed, and how many of them the peer knows.
    pub(super) receives: VecDeque<Post>,
    pub(super) offered: usize,
    /// Sends that are not carried out yet.
    pub(super) sends: VecDeque<Post>,
    /// Bytes of the oldest of them that the peer has.
    pub(super) sent: usize,
    /// Where in it begins what the peer's oldest receive takes.
    pub(super) share: usize,
    /// Bytes of the message under way that are in the oldest receive's buffers.
    pub(super) received: usize,
    /// Where the data of a descriptor is, while it is carried out.
    pub(super) pieces: Option<Box<Pieces>>,
    pub(super) link: Option<Link>,
    pub(super) is_stopped: bool,
}

impl State {
    /// Reports that the oldest descriptor of a queue is done.
    #[inline]
    pub(super) fn report(&self, queue: Queue) {
        if let Some(records) = &self.records[queue as usize] {
            records.push(self.number, queue);
        }
    }

    /// Forgets what was posted.
    pub(super) fn empty(&mut self) {
        self.receives.clear();
        self.sends.clear();
        (self.offered, self.received) = (0, 0);
        (self.sent, self.share) = (0, 0);
    }
}
