//! The state of a VI.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use port::doorbell::Post;
use port::sync::lock;
use port::{PortEvent, Queue, ViSettings};

use super::link::Link;
use crate::via::completion::Records;
use crate::via::region::{Known, Regions};

/// What happened to VIs of one NIC handle.
#[derive(Debug, Default)]
pub(super) struct Events {
    list: Mutex<VecDeque<PortEvent>>,
    count: AtomicUsize,
}

impl Events {
    pub(super) fn push(&self, event: PortEvent) {
        let mut list = lock(&self.list);
        list.push_back(event);
        self.count.store(list.len(), Ordering::Release);
    }

    pub(super) fn pop(&self) -> Option<PortEvent> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut list = lock(&self.list);
        let event = list.pop_front();
        self.count.store(list.len(), Ordering::Release);
        event
    }

    /// Forgets what happened to a VI.
    pub(super) fn forget(&self, vi: u16) {
        let mut list = lock(&self.list);
        list.retain(|event| !matches!(event, PortEvent::ViStopped(stopped) if stopped.vi == vi));
        self.count.store(list.len(), Ordering::Release);
    }
}

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
    pub(super) events: Arc<Events>,
    pub(super) records: [Option<Arc<Records>>; 2],
    pub(super) known: Known,
    /// Receives that are not completed, and how many of them the peer knows.
    pub(super) receives: VecDeque<Post>,
    pub(super) offered: usize,
    /// Sends that are not carried out yet.
    pub(super) sends: VecDeque<Post>,
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
        self.offered = 0;
    }
}
