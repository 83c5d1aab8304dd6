//! Event queues of a bare node: their rings, and what a reader does.

use cosim::testbench::host::BUS_BASE;
use cosim::testbench::{EVENT_OFFSET, high, low};
use nic_regs::admin::Opcode;
use nic_regs::doorbell::{EVENT_OFFSET as EVENT_DOORBELL, EventDoorbell};
use nic_regs::event::{EVENT_BYTES, Event, WIDE_ENTRY_BYTES};

use super::{Bare, RING};

/// Room for the ring of one queue.
pub(super) const RING_BYTES: usize = 0x1_0000;

/// An event ring as its reader knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ring {
    log2: u32,
    wide: bool,
    domain: u8,
    consumer: u16,
}

/// What an event queue is created with.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Log2 of the entries.
    pub log2: u32,
    /// Entries hold messages.
    pub wide: bool,
    /// Owning domain.
    pub domain: u8,
    /// MSI-X vector.
    pub vector: u8,
}

impl Shape {
    /// A narrow queue of domain 0 with 2^log2 entries and this vector.
    #[must_use]
    pub const fn narrow(log2: u32, vector: u8) -> Self {
        Self { log2, wide: false, domain: 0, vector }
    }
}

impl Bare {
    /// Creates an event queue on its ring.
    #[track_caller]
    pub fn event_create(&mut self, node: usize, queue: u16, shape: Shape) {
        self.try_event_create(node, queue, shape).expect(RING);
    }

    pub(super) fn try_event_create(&mut self, node: usize, queue: u16, shape: Shape) -> Option<()> {
        let at = Self::event_ring(queue);
        let Shape { log2, wide, domain, vector } = shape;
        let entry = if wide { WIDE_ENTRY_BYTES } else { EVENT_BYTES };
        let bytes = usize::try_from(entry << log2).unwrap().min(RING_BYTES);
        self.host_mut(node).memory[at..at + bytes].fill(0);
        self.rings[node][usize::from(queue)] = Ring { log2, wide, domain, consumer: 0 };
        let base = BUS_BASE + at as u64;
        let word = log2 | u32::from(wide) << 4 | u32::from(domain) << 8 | u32::from(vector) << 16;
        self.try_ok(node, Opcode::EventCreate, queue.into(), &[low(base), high(base), word])?;
        Some(())
    }

    /// New records of an event queue. The device is not notified that they are read.
    pub fn peek_events(&mut self, node: usize, queue: u16) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next_event(node, queue) {
            events.push(event);
            let ring = &mut self.rings[node][usize::from(queue)];
            ring.consumer = ring.consumer.wrapping_add(1);
        }
        events
    }

    /// Takes the last record back that `peek_events` gave.
    pub const fn unread(&mut self, node: usize, queue: u16) {
        let ring = &mut self.rings[node][queue as usize];
        ring.consumer = ring.consumer.wrapping_sub(1);
    }

    /// Where the ring of an event queue is in host memory.
    #[must_use]
    pub fn event_ring(queue: u16) -> usize {
        EVENT_OFFSET + usize::from(queue) * RING_BYTES
    }

    /// The record that the reader sees next, if it is there.
    #[must_use]
    pub fn next_event(&self, node: usize, queue: u16) -> Option<Event> {
        let ring = self.rings[node][usize::from(queue)];
        let bytes = if ring.wide { WIDE_ENTRY_BYTES } else { EVENT_BYTES };
        let entries = 1 << ring.log2;
        let consumer = usize::from(ring.consumer);
        let slot = Self::event_ring(queue) + (consumer % entries) * usize::try_from(bytes).unwrap();
        let record = slot + usize::try_from(bytes - EVENT_BYTES).unwrap();
        let event = Event::from_words([0, 4, 8, 12].map(|at| self.host(node).word(record + at)));
        (event.phase == (consumer / entries).is_multiple_of(2)).then_some(event)
    }

    /// Reports to the device how far the reader is, and whether to interrupt.
    pub fn consume(&mut self, node: usize, queue: u16, arm: bool) {
        let ring = self.rings[node][usize::from(queue)];
        let doorbell = EventDoorbell { queue, arm, consumer: ring.consumer };
        self.doorbell(node, ring.domain, EVENT_DOORBELL, doorbell.to_bits());
    }

    /// New records, and reports to the device that they are read.
    pub fn take_events(&mut self, node: usize, queue: u16) -> Vec<Event> {
        let events = self.peek_events(node, queue);
        self.consume(node, queue, false);
        events
    }
}
