//! Events of a port that wait for [`crate::ViOps::next_event`].

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::sync::Mutex;

use crate::attributes::PortEvent;
use crate::sync::lock;

/// Events for one user of a port.
#[derive(Debug, Default)]
pub struct EventList {
    /// How many there are, for who looks without the lock; it is written with it.
    count: AtomicUsize,
    events: Mutex<VecDeque<PortEvent>>,
}

impl EventList {
    /// Reports an event.
    pub fn push(&self, event: PortEvent) {
        let mut events = lock(&self.events);
        events.push_back(event);
        self.count.store(events.len(), Ordering::Release);
    }

    /// Takes the next event. Cheap if there is none.
    pub fn pop(&self) -> Option<PortEvent> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut events = lock(&self.events);
        let event = events.pop_front();
        self.count.store(events.len(), Ordering::Release);
        event
    }

    /// Forgets the events of a VI.
    pub fn forget(&self, vi: u16) {
        let mut events = lock(&self.events);
        events.retain(|event| !matches!(event, PortEvent::ViStopped(stopped) if stopped.vi == vi));
        self.count.store(events.len(), Ordering::Release);
    }
}
