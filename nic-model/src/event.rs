//! Event queues: records, what a full queue puts off, interrupts.

use bitvec::vec::BitVec;
use nic_regs::admin::{NO_QUEUE, PeerState};
use nic_regs::counter::Counter;
use nic_regs::csr::ERROR_QUEUE;
use nic_regs::doorbell::Queue;
use nic_regs::event::{EVENT_BYTES, Event, Kind, MESSAGE_BYTES, PeerDownReason, WIDE_ENTRY_BYTES};
use nic_regs::limits::{EVENT_QUEUE_COUNT, PEER_COUNT, VI_COUNT};

use crate::bits::{low16, size, small8, small16};
use crate::device::HostBus;
use crate::nic::Model;
use crate::trace::Trace;

/// An event queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EventQueue {
    pub(crate) exists: bool,
    pub(crate) base: u64,
    pub(crate) log2: u32,
    pub(crate) wide: bool,
    pub(crate) domain: u8,
    pub(crate) vector: u8,
    pub(crate) producer: u16,
    pub(crate) consumer: u16,
    pub(crate) armed: bool,
}

impl EventQueue {
    /// Records that are not consumed.
    pub(crate) fn level(&self) -> u16 {
        self.producer.wrapping_sub(self.consumer)
    }

    pub(crate) fn full(&self) -> bool {
        u32::from(self.level()) >= 1 << self.log2
    }
}

/// Events about a peer that are still to be delivered.
#[derive(Clone, Copy, Debug, Default)]
struct PeerEvents {
    /// PeerUp, with this epoch.
    up: Option<u32>,
    /// PeerDown, with this reason.
    down: Option<PeerDownReason>,
    message_refused: bool,
}

/// All event queues, and what is put off.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    pub(crate) queues: Vec<EventQueue>,
    /// VI work queues (2 x VI + queue) whose completions are put off.
    completions: BitVec,
    /// VIs whose ViError is put off.
    stops: BitVec,
    /// Peers with events that are put off.
    peers: BitVec,
    peer_events: Vec<PeerEvents>,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            queues: vec![EventQueue::default(); EVENT_QUEUE_COUNT],
            completions: BitVec::repeat(false, 2 * VI_COUNT),
            stops: BitVec::repeat(false, VI_COUNT),
            peers: BitVec::repeat(false, PEER_COUNT),
            peer_events: vec![PeerEvents::default(); PEER_COUNT],
        }
    }
}

impl Events {
    /// The queue with this number, if it exists.
    pub(crate) fn get(&self, queue: u16) -> Option<&EventQueue> {
        self.queues.get(usize::from(queue)).filter(|q| q.exists)
    }

    /// Nothing of this VI is put off any more.
    pub(crate) fn forget_vi(&mut self, vi: u16) {
        let vi = usize::from(vi);
        self.stops.set(vi, false);
        self.completions.set(2 * vi, false);
        self.completions.set(2 * vi + 1, false);
    }
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It is in the queue.
    Written,
    /// The queue is full.
    Full,
    /// There is no such queue: the event is lost.
    Absent,
}

impl Model {
    /// Writes a record, and interrupts if that was asked for.
    pub(crate) fn post_event(
        &mut self,
        number: u16,
        mut event: Event,
        message: Option<&[u8]>,
        host: &mut dyn HostBus,
    ) -> Delivery {
        let Some(&queue) = self.events.get(number) else { return Delivery::Absent };
        if queue.full() {
            return Delivery::Full;
        }
        let slot = u64::from(queue.producer) & ((1 << queue.log2) - 1);
        event.phase = (queue.producer >> queue.log2) & 1 == 0;
        let mut entry = [0; size(WIDE_ENTRY_BYTES)];
        let (text, record) = entry.split_at_mut(size(MESSAGE_BYTES));
        if let Some(message) = message {
            text.copy_from_slice(message);
        }
        for (bytes, word) in record.chunks_mut(4).zip(event.to_words()) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        if queue.wide {
            host.write(queue.base + WIDE_ENTRY_BYTES * slot, &entry);
        } else {
            host.write(queue.base + EVENT_BYTES * slot, record);
        }
        self.count(Counter::EventsWritten);
        self.trace(Trace::Event { queue: number, event });
        let q = &mut self.events.queues[usize::from(number)];
        q.producer = q.producer.wrapping_add(1);
        if std::mem::take(&mut q.armed) {
            self.interrupt(queue.vector.into(), host);
        }
        Delivery::Written
    }

    /// A descriptor was completed: its VI's event, if it has an event queue.
    pub(crate) fn announce(&mut self, vi: u16, queue: Queue, host: &mut dyn HostBus) {
        if self.vi(vi).event_queues[queue as usize] == NO_QUEUE {
            return;
        }
        let count = &mut self.vi_mut(vi).unannounced[queue as usize];
        *count = count.wrapping_add(1);
        self.deliver_completions(vi, queue, true, host);
    }

    /// Announces what is not announced. A first try that fails counts as deferred.
    fn deliver_completions(
        &mut self,
        vi: u16,
        queue: Queue,
        first_try: bool,
        host: &mut dyn HostBus,
    ) {
        let number = self.vi(vi).event_queues[queue as usize];
        let kind = match queue {
            Queue::Send => Kind::SendComplete,
            Queue::Recv => Kind::RecvComplete,
        };
        let event = Event {
            kind: small8(kind as usize),
            index: vi,
            word1: self.vi(vi).unannounced[queue as usize],
            ..Event::default()
        };
        let delivery = self.post_event(number, event, None, host);
        let full = delivery == Delivery::Full;
        self.events.completions.set(2 * usize::from(vi) + queue as usize, full);
        if !full {
            self.vi_mut(vi).unannounced[queue as usize] = 0;
        } else if first_try {
            self.count(Counter::EventsDeferred);
        }
    }

    /// The queue for errors and peers, if one is wanted.
    fn error_queue(&self) -> Option<u16> {
        let register = ERROR_QUEUE(self.csr.error_queue);
        (register.get(ERROR_QUEUE::VALID) == 1).then(|| low16(register.get(ERROR_QUEUE::QUEUE)))
    }

    /// Writes a record to the error queue. True if it has to be put off.
    fn post_error(&mut self, event: Event, first_try: bool, host: &mut dyn HostBus) -> bool {
        let Some(queue) = self.error_queue() else { return false };
        let full = self.post_event(queue, event, None, host) == Delivery::Full;
        if full && first_try {
            self.count(Counter::EventsDeferred);
        }
        full
    }

    /// Delivers a VI's ViError.
    pub(crate) fn deliver_stop(&mut self, vi: u16, first_try: bool, host: &mut dyn HostBus) {
        let Some(stop) = self.vi(vi).stop else { return };
        let event = Event {
            kind: small8(Kind::ViError as usize),
            index: vi,
            word1: stop.reason as u32
                | u32::from(stop.peer_reason) << 8
                | (stop.queue as u32) << 16,
            word2: stop.status,
            ..Event::default()
        };
        let later = self.post_error(event, first_try, host);
        self.events.stops.set(usize::from(vi), later);
        if !later {
            self.vi_mut(vi).stop = None;
        }
    }

    pub(crate) fn raise_peer_up(&mut self, node: u8, epoch: u32, host: &mut dyn HostBus) {
        self.events.peer_events[usize::from(node)].up = Some(epoch);
        self.deliver_peer(node, true, host);
    }

    pub(crate) fn raise_peer_down(
        &mut self,
        node: u8,
        reason: PeerDownReason,
        host: &mut dyn HostBus,
    ) {
        self.events.peer_events[usize::from(node)].down = Some(reason);
        self.deliver_peer(node, true, host);
    }

    pub(crate) fn raise_message_refused(&mut self, node: u8, host: &mut dyn HostBus) {
        self.events.peer_events[usize::from(node)].message_refused = true;
        self.deliver_peer(node, true, host);
    }

    /// Delivers a peer's events; the one that tells its state now is the last of up and down.
    fn deliver_peer(&mut self, node: u8, first_try: bool, host: &mut dyn HostBus) {
        let index = usize::from(node);
        let open = self.channels.peer(node).state == PeerState::Open;
        let order = if open {
            [Kind::PeerDown, Kind::PeerUp, Kind::MessageRefused]
        } else {
            [Kind::MessageRefused, Kind::PeerUp, Kind::PeerDown]
        };
        for kind in order {
            let events = self.events.peer_events[index];
            let word1 = match kind {
                Kind::PeerUp => events.up,
                Kind::PeerDown => events.down.map(|reason| reason as u32),
                _ => events.message_refused.then_some(0),
            };
            let Some(word1) = word1 else { continue };
            let kind_bits = small8(kind as usize);
            let event =
                Event { kind: kind_bits, index: u16::from(node), word1, ..Event::default() };
            if self.post_error(event, first_try, host) {
                self.events.peers.set(index, true);
                return;
            }
            let events = &mut self.events.peer_events[index];
            match kind {
                Kind::PeerUp => events.up = None,
                Kind::PeerDown => events.down = None,
                _ => events.message_refused = false,
            }
        }
        self.events.peers.set(index, false);
    }

    /// Room in a queue: what was put off because of it is delivered, VIs first, then peers, then
    /// errors.
    pub(crate) fn drain(&mut self, number: u16, host: &mut dyn HostBus) {
        let completions: Vec<usize> = self.events.completions.iter_ones().collect();
        for index in completions {
            let vi = small16(index / 2);
            let queue = if index % 2 == 0 { Queue::Send } else { Queue::Recv };
            if self.vi(vi).event_queues[queue as usize] == number {
                self.deliver_completions(vi, queue, false, host);
            }
        }
        if self.error_queue() == Some(number) {
            self.drain_errors(host);
        }
    }

    /// The same for peers and errors alone: also after a change of ERROR_QUEUE.
    pub(crate) fn drain_errors(&mut self, host: &mut dyn HostBus) {
        let peers: Vec<usize> = self.events.peers.iter_ones().collect();
        for node in peers {
            self.deliver_peer(small8(node), false, host);
        }
        let stops: Vec<usize> = self.events.stops.iter_ones().collect();
        for vi in stops {
            self.deliver_stop(small16(vi), false, host);
        }
    }
}
