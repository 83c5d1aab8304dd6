//! Event queues: the reader's side of a ring that the device fills.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

use nic_regs::doorbell::EventDoorbell;
use nic_regs::event::{EVENT_BYTES, Event, PHASE_BIT, WIDE_ENTRY_BYTES};
use nic_regs::frame::MESSAGE_BYTES;

use crate::dma::DmaMemory;
use crate::doorbell::DoorbellPage;
use crate::presence::Presence;
use port::connection::Message;

/// Log2 of the entries of the largest event queue of a program.
pub(crate) const LOG2_MAX: u8 = 15;
/// Bytes of a narrow entry, and of the record in a wide one.
const NARROW: usize = 16;
/// Bytes of a wide entry.
const WIDE: usize = MESSAGE_BYTES + NARROW;
const _: () = assert!(NARROW as u64 == EVENT_BYTES && WIDE as u64 == WIDE_ENTRY_BYTES);

/// A ring of event records with one reader at a time (its owner's lock sees to that; the methods
/// take `&self` so that [`EventRing::has_event`] needs no lock).
#[derive(Debug)]
pub struct EventRing {
    index: u16,
    ring: DmaMemory,
    log2: u8,
    wide: bool,
    doorbell: DoorbellPage,
    /// Entries consumed since creation, modulo 2^32.
    consumer: AtomicU32,
    /// The device is not notified.
    retired: AtomicBool,
    presence: Arc<Presence>,
}

impl EventRing {
    /// Bytes of a ring.
    #[must_use]
    pub const fn bytes(log2: u8, wide: bool) -> usize {
        let entry = if wide { WIDE } else { NARROW };
        entry << log2
    }

    /// The reader of ring `index`, whose memory is zero and that the device has been
    /// given.
    #[must_use]
    pub fn new(
        index: u16,
        ring: DmaMemory,
        log2: u8,
        wide: bool,
        doorbell: DoorbellPage,
        presence: Arc<Presence>,
    ) -> Self {
        assert!(ring.len() >= Self::bytes(log2, wide), "ring memory is too small");
        Self {
            index,
            ring,
            log2,
            wide,
            doorbell,
            consumer: AtomicU32::new(0),
            retired: AtomicBool::new(false),
            presence,
        }
    }

    /// Number of the event queue.
    #[must_use]
    pub const fn index(&self) -> u16 {
        self.index
    }

    /// Offset of the record that comes next, and the phase it will have.
    fn next(&self) -> (usize, bool) {
        let consumer = self.consumer.load(Ordering::Relaxed);
        let slot = (consumer & ((1 << self.log2) - 1)) as usize;
        let offset = if self.wide { slot * WIDE + MESSAGE_BYTES } else { slot * NARROW };
        (offset, (consumer >> self.log2) & 1 == 0)
    }

    /// Whether a record is there.
    #[must_use]
    pub fn has_event(&self) -> bool {
        let (offset, phase) = self.next();
        (self.ring.load_u32(offset + 12) >> PHASE_BIT != 0) == phase
    }

    /// Takes the next record, if it is there. The device learns of it every quarter of a ring.
    pub fn take(&self) -> Option<Event> {
        if !self.has_event() {
            return None;
        }
        let (offset, _) = self.next();
        let word = |i: usize| self.ring.load_u32(offset + 4 * i);
        let event = Event::from_words([word(0), word(1), word(2), word(3)]);
        self.advance();
        Some(event)
    }

    /// Takes the next record of a wide ring and its message bytes.
    pub fn take_wide(&self) -> Option<(Event, Message)> {
        debug_assert!(self.wide);
        if !self.has_event() {
            return None;
        }
        let (offset, _) = self.next();
        let mut message = [0; MESSAGE_BYTES];
        self.ring.copy_to(offset - MESSAGE_BYTES, &mut message);
        self.take().map(|event| (event, message))
    }

    fn advance(&self) {
        let consumer = self.consumer.load(Ordering::Relaxed).wrapping_add(1);
        self.consumer.store(consumer, Ordering::Relaxed);
        let quarter = 1 << (self.log2 - 2);
        if consumer.is_multiple_of(quarter) {
            self.publish(false);
        }
    }

    /// Has the device interrupt at once, as for a record that nobody has read (`docs/contract.md` 2.4),
    /// although the ring is empty; [`EventRing::publish`] takes it back.
    pub(crate) fn provoke(&self) {
        let consumer = self.consumer.load(Ordering::Relaxed).wrapping_sub(1) & 0xffff;
        let consumer = u16::try_from(consumer).unwrap_or(0);
        self.doorbell.consume(EventDoorbell { queue: self.index, arm: true, consumer });
    }

    /// While it is retired, the device is not notified of it: another ring gets its number, and
    /// would take an index of this one for its own.
    pub fn retire(&self, retired: bool) {
        self.retired.store(retired, Ordering::Release);
    }

    /// Reports to the device what was consumed. With `arm` it interrupts at the next record, and at once
    /// if one is there already, so no wake-up is lost between looking and arming. A card that is lost
    /// is not notified: it may be another driver's by now.
    pub fn publish(&self, arm: bool) {
        if self.retired.load(Ordering::Acquire) || self.presence.is_lost() {
            return;
        }
        let consumer = self.consumer.load(Ordering::Relaxed) & 0xffff;
        let consumer = u16::try_from(consumer).unwrap_or(0);
        self.doorbell.consume(EventDoorbell { queue: self.index, arm, consumer });
    }
}
