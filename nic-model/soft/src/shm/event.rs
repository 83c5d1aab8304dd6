//! Event queues.
//!
//! What peers report are bits in the control segment, which cannot overflow: a tripwire that fired
//! several times before it is polled is one event. What this process itself reports (messages, DMA,
//! lost nodes) waits in a list. Bits and list take turns, so that neither keeps the other waiting.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use port::clan::{ClanEvent, EventQueue};
use port::fork;
use port::sync::lock;

use super::control::Control;
use super::fence;
use super::tripwire::{Taken, Tripwires};

/// Events in a queue's list, above which messages are lost and requests refused.
const LIST_LIMIT: usize = 4096;
/// Lost nodes that are reported beyond that. A program that does not poll has no use for more, and no
/// peer can have it keep more by names that it makes up.
const LOST_LIMIT: usize = 2 * LIST_LIMIT;

/// An event queue of this process.
#[derive(Debug)]
pub(super) struct Queue {
    number: u16,
    only_wakes: bool,
    control: Control,
    tripwires: Arc<Mutex<Tripwires>>,
    list: Mutex<VecDeque<ClanEvent>>,
    listed: AtomicUsize,
    /// Before the lock of the tripwires.
    reader: Mutex<Reader>,
    /// How often it was armed.
    arms: AtomicU32,
    /// Its number may be another queue's by now. Set under the lock of the reader.
    is_destroyed: AtomicBool,
    generation: u32,
}

#[derive(Debug, Default)]
struct Reader {
    taken: Taken,
    /// The list gave the last event.
    was_listed: bool,
}

impl Queue {
    /// A new one, or one that only wakes.
    ///
    /// # Errors
    /// None left.
    pub(super) fn new(
        control: Control,
        tripwires: Arc<Mutex<Tripwires>>,
        only_wakes: bool,
    ) -> port::Result<Self> {
        let number = lock(&tripwires).create_queue()?;
        control.only_wakes(number).store(only_wakes.into(), Ordering::SeqCst);
        Ok(Self {
            number,
            only_wakes,
            control,
            tripwires,
            list: Mutex::default(),
            listed: AtomicUsize::new(0),
            reader: Mutex::default(),
            arms: AtomicU32::new(0),
            is_destroyed: AtomicBool::new(false),
            generation: fork::generation(),
        })
    }

    /// False in a child after fork. It must not poll: bits that it takes are lost to its parent, and
    /// locks may be held by threads that it does not have.
    pub(super) fn is_own(&self) -> bool {
        self.generation == fork::generation()
    }

    /// Has all later calls find nothing; those under way end first.
    pub(super) fn destroy(&self) {
        let _reader = lock(&self.reader);
        self.is_destroyed.store(true, Ordering::SeqCst);
    }

    /// Whether it exists no more.
    pub(super) fn is_destroyed(&self) -> bool {
        self.is_destroyed.load(Ordering::SeqCst)
    }

    /// Reports an event. A message is lost if the list is full; what became of a request, and that a
    /// node is lost, is reported all the same.
    pub(super) fn push(&self, event: ClanEvent) {
        let mut list = lock(&self.list);
        let limit = match event {
            ClanEvent::Message { .. } => LIST_LIMIT,
            ClanEvent::NodeLost { .. } => LOST_LIMIT,
            // Requests are refused before they get here.
            ClanEvent::Dma { .. } | ClanEvent::Tripwire { .. } => usize::MAX,
        };
        if list.len() >= limit || self.is_destroyed() {
            return;
        }
        list.push_back(event);
        self.listed.store(list.len(), Ordering::SeqCst);
        drop(list);
        self.control.report(self.number);
    }

    /// Whether a request may report an event.
    pub(super) fn has_room(&self) -> bool {
        self.listed.load(Ordering::Relaxed) < LIST_LIMIT
    }

    fn pop(&self) -> Option<ClanEvent> {
        if self.listed.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut list = lock(&self.list);
        let event = list.pop_front();
        self.listed.store(list.len(), Ordering::SeqCst);
        event
    }

    fn has_fired(&self, taken: Taken) -> bool {
        taken.is_any() || self.control.summary(self.number).load(Ordering::SeqCst) != 0
    }

    fn pop_fired(&self, reader: &mut Reader) -> Option<ClanEvent> {
        // The lock is the node's, and an empty queue is not to wait for the readers of others.
        if !self.has_fired(reader.taken) {
            return None;
        }
        let tag = lock(&self.tripwires).next_fired(self.number, &mut reader.taken);
        tag.map(|tag| ClanEvent::Tripwire { tag })
    }
}

impl EventQueue for Queue {
    fn number(&self) -> u16 {
        self.number
    }

    fn has_event(&self) -> bool {
        if !self.is_own() {
            return false;
        }
        let reader = lock(&self.reader);
        let is_any = self.listed.load(Ordering::SeqCst) != 0 || self.has_fired(reader.taken);
        is_any && !self.is_destroyed()
    }

    fn poll(&self) -> Option<ClanEvent> {
        if !self.is_own() {
            return None;
        }
        let mut reader = lock(&self.reader);
        if self.is_destroyed() {
            return None;
        }
        if !reader.was_listed
            && let Some(event) = self.pop()
        {
            reader.was_listed = true;
            return Some(event);
        }
        reader.was_listed = false;
        self.pop_fired(&mut reader).or_else(|| self.pop())
    }

    fn arm(&self) {
        if !self.is_own() || self.is_destroyed() {
            return;
        }
        // Never 0, which is not armed.
        let value = self.arms.fetch_add(1, Ordering::Relaxed).wrapping_mul(2).wrapping_add(1);
        self.control.arm(self.number, value);
        if self.only_wakes {
            // The reader looks now, at what was written before a writer looked whether to wake it. It
            // cannot fail: this process has registered.
            let _ = fence::on_all();
        }
        if self.has_event() {
            self.control.report(self.number);
        }
    }
}
