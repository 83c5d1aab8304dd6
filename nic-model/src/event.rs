//! Event queues: records, what a full queue defers, interrupts.

use bitvec::vec::BitVec;
use nic_regs::admin::NO_QUEUE;
use nic_regs::counter::Counter;
use nic_regs::csr::ERROR_QUEUE;
use nic_regs::doorbell::{EventDoorbell, Queue};
use nic_regs::event::{EVENT_BYTES, Event, Kind, MESSAGE_BYTES, PeerDownReason, WIDE_ENTRY_BYTES};
use nic_regs::limits::{DOMAIN_COUNT, EVENT_QUEUE_COUNT, PEER_COUNT, VI_COUNT};

use crate::bits::{low16, size, small8, small16};
use crate::context::Context;
use crate::trace::Trace;
use crate::vector::Vectors;
use crate::vi::Vis;

/// An event queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventQueue {
    /// It was created and not destroyed.
    pub exists: bool,
    /// Bus address of its first entry.
    pub base: u64,
    /// Logarithm of the number of entries.
    pub log2: u32,
    /// Entries have 64 bytes, with the text of a message.
    pub wide: bool,
    /// Domain that may consume.
    pub domain: u8,
    /// MSI-X vector.
    pub vector: u8,
    /// Records written, modulo 65,536.
    pub producer: u16,
    /// Records consumed, modulo 65,536.
    pub consumer: u16,
    /// The next record interrupts.
    pub armed: bool,
}

impl EventQueue {
    /// Records that are not consumed.
    #[must_use]
    pub const fn level(&self) -> u16 {
        self.producer.wrapping_sub(self.consumer)
    }

    /// Whether it has no space for a record.
    #[must_use]
    pub fn is_full(&self) -> bool {
        u32::from(self.level()) >= 1 << self.log2
    }
}

/// Events about a peer that are still to be delivered.
#[derive(Clone, Copy, Debug, Default)]
struct PeerEvents {
    /// The last of PeerUp and PeerDown is PeerUp.
    is_up: bool,
    /// PeerUp, with this epoch.
    up: Option<u32>,
    /// PeerDown, with this reason.
    down: Option<PeerDownReason>,
    message_refused: bool,
}

/// All event queues with their vectors, and the events that are deferred.
#[derive(Clone, Debug)]
pub struct Events {
    /// By number.
    pub queues: Vec<EventQueue>,
    /// The MSI-X vectors.
    pub vectors: Vectors,
    /// Event queues for the messages to each domain.
    pub message_queues: [u16; DOMAIN_COUNT],
    /// The register ERROR_QUEUE.
    pub(crate) error_queue: ERROR_QUEUE,
    /// VI work queues (2 x VI + queue) whose completions are deferred.
    completions: BitVec,
    /// VIs whose ViError is deferred.
    stops: BitVec,
    /// Peers with events that are deferred.
    peers: BitVec,
    peer_events: Vec<PeerEvents>,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            queues: vec![EventQueue::default(); EVENT_QUEUE_COUNT],
            vectors: Vectors::default(),
            message_queues: [NO_QUEUE; DOMAIN_COUNT],
            error_queue: ERROR_QUEUE::RESET,
            completions: BitVec::repeat(false, 2 * VI_COUNT),
            stops: BitVec::repeat(false, VI_COUNT),
            peers: BitVec::repeat(false, PEER_COUNT),
            peer_events: vec![PeerEvents::default(); PEER_COUNT],
        }
    }
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is in the queue.
    Written,
    /// The queue is full.
    Full,
    /// There is no such queue: the event is lost.
    Absent,
}

/// Why an event doorbell is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsumeError {
    /// The domain has no such queue.
    Queue,
    /// The consumer index is out of range.
    Index,
}

impl Events {
    /// The queue with this number, if it exists.
    pub(crate) fn get(&self, queue: u16) -> Option<&EventQueue> {
        self.queues.get(usize::from(queue)).filter(|q| q.exists)
    }

    /// EventCreate. False if the queue exists.
    pub fn create(&mut self, number: u16, queue: EventQueue) -> bool {
        let entry = &mut self.queues[usize::from(number)];
        let absent = !entry.exists;
        if absent {
            *entry = queue;
        }
        absent
    }

    /// EventDestroy: what was deferred to the queue is lost. False if the queue is absent.
    pub fn destroy(&mut self, number: u16, vis: &mut Vis, cx: &mut Context<'_>) -> bool {
        let existed = std::mem::take(&mut self.queues[usize::from(number)].exists);
        if existed {
            self.drain(number, vis, cx);
        }
        existed
    }

    /// Forgets the deferred events of a VI.
    pub(crate) fn forget_vi(&mut self, vi: u16) {
        let vi = usize::from(vi);
        self.stops.set(vi, false);
        self.completions.set(2 * vi, false);
        self.completions.set(2 * vi + 1, false);
    }

    /// Writes a record, and interrupts if that was asked for.
    pub fn post(
        &mut self,
        number: u16,
        mut event: Event,
        message: Option<&[u8]>,
        cx: &mut Context<'_>,
    ) -> Delivery {
        let Some(&queue) = self.get(number) else { return Delivery::Absent };
        if queue.is_full() {
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
            cx.write(queue.base.wrapping_add(WIDE_ENTRY_BYTES * slot), &entry);
        } else {
            cx.write(queue.base.wrapping_add(EVENT_BYTES * slot), record);
        }
        cx.count(Counter::EventsWritten);
        cx.trace(Trace::Event { queue: number, event });
        let q = &mut self.queues[usize::from(number)];
        q.producer = q.producer.wrapping_add(1);
        if std::mem::take(&mut q.armed) {
            self.vectors.interrupt(queue.vector.into(), cx);
        }
        Delivery::Written
    }

    /// Delivers a message to the queue of its domain: section 7.8. Unless written, it is refused.
    pub fn post_message(
        &mut self,
        domain: u16,
        event: Event,
        message: &[u8],
        cx: &mut Context<'_>,
    ) -> Delivery {
        let queue = self.message_queues.get(usize::from(domain)).copied().unwrap_or(NO_QUEUE);
        let wide = self.get(queue).is_some_and(|q| q.wide);
        let delivery =
            if wide { self.post(queue, event, Some(message), cx) } else { Delivery::Absent };
        let good = delivery == Delivery::Written;
        cx.count(if good { Counter::MessagesReceived } else { Counter::MessagesRefused });
        delivery
    }

    /// Reports a completion of a VI's work queue, if it has an event queue.
    pub(crate) fn report(&mut self, vi: u16, queue: Queue, vis: &mut Vis, cx: &mut Context<'_>) {
        if vis[vi].event_queues[queue as usize] == NO_QUEUE {
            return;
        }
        let count = &mut vis[vi].unreported[queue as usize];
        *count = count.wrapping_add(1);
        self.deliver_completions(vi, queue, true, vis, cx);
    }

    /// Reports what is not reported. A first try that fails counts as deferred.
    fn deliver_completions(
        &mut self,
        vi: u16,
        queue: Queue,
        first_try: bool,
        vis: &mut Vis,
        cx: &mut Context<'_>,
    ) {
        let number = vis[vi].event_queues[queue as usize];
        let kind = match queue {
            Queue::Send => Kind::SendComplete,
            Queue::Recv => Kind::RecvComplete,
        };
        let event = Event {
            kind: small8(kind as usize),
            index: vi,
            word1: vis[vi].unreported[queue as usize],
            ..Event::default()
        };
        let full = self.post(number, event, None, cx) == Delivery::Full;
        self.completions.set(2 * usize::from(vi) + queue as usize, full);
        if !full {
            vis[vi].unreported[queue as usize] = 0;
        } else if first_try {
            cx.count(Counter::EventsDeferred);
        }
    }

    /// The queue for errors and peers, if one is wanted.
    fn error_queue(&self) -> Option<u16> {
        let register = self.error_queue;
        (register.get(ERROR_QUEUE::VALID) == 1).then(|| low16(register.get(ERROR_QUEUE::QUEUE)))
    }

    /// Writes a record to the error queue. True if it has to be deferred.
    fn post_error(&mut self, event: Event, first_try: bool, cx: &mut Context<'_>) -> bool {
        let Some(queue) = self.error_queue() else { return false };
        let full = self.post(queue, event, None, cx) == Delivery::Full;
        if full && first_try {
            cx.count(Counter::EventsDeferred);
        }
        full
    }

    /// Delivers a VI's ViError.
    pub(crate) fn deliver_stop(
        &mut self,
        vi: u16,
        first_try: bool,
        vis: &mut Vis,
        cx: &mut Context<'_>,
    ) {
        let Some(stop) = vis[vi].stop else { return };
        let event = Event {
            kind: small8(Kind::ViError as usize),
            index: vi,
            word1: stop.reason as u32
                | u32::from(stop.peer_reason) << 8
                | (stop.queue as u32) << 16,
            word2: stop.status,
            ..Event::default()
        };
        let deferred = self.post_error(event, first_try, cx);
        self.stops.set(usize::from(vi), deferred);
        if !deferred {
            vis[vi].stop = None;
        }
    }

    /// Raises PeerUp.
    pub(crate) fn raise_peer_up(&mut self, node: u8, epoch: u32, cx: &mut Context<'_>) {
        let events = &mut self.peer_events[usize::from(node)];
        (events.up, events.is_up) = (Some(epoch), true);
        self.deliver_peer(node, true, cx);
    }

    /// Raises PeerDown.
    pub(crate) fn raise_peer_down(
        &mut self,
        node: u8,
        reason: PeerDownReason,
        cx: &mut Context<'_>,
    ) {
        let events = &mut self.peer_events[usize::from(node)];
        (events.down, events.is_up) = (Some(reason), false);
        self.deliver_peer(node, true, cx);
    }

    /// Raises MessageRefused.
    pub(crate) fn raise_message_refused(&mut self, node: u8, cx: &mut Context<'_>) {
        self.peer_events[usize::from(node)].message_refused = true;
        self.deliver_peer(node, true, cx);
    }

    /// Delivers a peer's events; the one that matches its present state is the last of up and down.
    fn deliver_peer(&mut self, node: u8, first_try: bool, cx: &mut Context<'_>) {
        let index = usize::from(node);
        let order = if self.peer_events[index].is_up {
            [Kind::PeerDown, Kind::PeerUp, Kind::MessageRefused]
        } else {
            [Kind::MessageRefused, Kind::PeerUp, Kind::PeerDown]
        };
        for kind in order {
            let events = self.peer_events[index];
            let word1 = match kind {
                Kind::PeerUp => events.up,
                Kind::PeerDown => events.down.map(|reason| reason as u32),
                _ => events.message_refused.then_some(0),
            };
            let Some(word1) = word1 else { continue };
            let kind_bits = small8(kind as usize);
            let event =
                Event { kind: kind_bits, index: u16::from(node), word1, ..Event::default() };
            if self.post_error(event, first_try, cx) {
                self.peers.set(index, true);
                return;
            }
            let events = &mut self.peer_events[index];
            match kind {
                Kind::PeerUp => events.up = None,
                Kind::PeerDown => events.down = None,
                _ => events.message_refused = false,
            }
        }
        self.peers.set(index, false);
    }

    /// An event doorbell in the page of a domain: section 2.4.
    pub(crate) fn consume(
        &mut self,
        page: u16,
        doorbell: EventDoorbell,
        vis: &mut Vis,
        cx: &mut Context<'_>,
    ) -> Result<(), ConsumeError> {
        let number = doorbell.queue;
        let queue = self.queues.get_mut(usize::from(number));
        let queue =
            queue.filter(|q| q.exists && u16::from(q.domain) == page).ok_or(ConsumeError::Queue)?;
        let level = queue.producer.wrapping_sub(doorbell.consumer);
        if u32::from(level) > 1 << queue.log2 {
            return Err(ConsumeError::Index);
        }
        let moved = queue.consumer != doorbell.consumer;
        queue.consumer = doorbell.consumer;
        queue.armed = doorbell.arm && level == 0;
        let vector = queue.vector;
        if doorbell.arm && level != 0 {
            self.vectors.interrupt(vector.into(), cx);
        }
        if moved {
            self.drain(number, vis, cx);
        }
        Ok(())
    }

    /// Delivers what was deferred because a queue was full: VIs first, then peers, then errors.
    pub(crate) fn drain(&mut self, number: u16, vis: &mut Vis, cx: &mut Context<'_>) {
        let completions: Vec<usize> = self.completions.iter_ones().collect();
        for index in completions {
            let vi = small16(index / 2);
            let queue = if index % 2 == 0 { Queue::Send } else { Queue::Recv };
            if vis[vi].event_queues[queue as usize] == number {
                self.deliver_completions(vi, queue, false, vis, cx);
            }
        }
        if self.error_queue() == Some(number) {
            self.drain_errors(vis, cx);
        }
    }

    /// The same for peers and errors alone: also after a change of ERROR_QUEUE.
    pub(crate) fn drain_errors(&mut self, vis: &mut Vis, cx: &mut Context<'_>) {
        let peers: Vec<usize> = self.peers.iter_ones().collect();
        for node in peers {
            self.deliver_peer(small8(node), false, cx);
        }
        let stops: Vec<usize> = self.stops.iter_ones().collect();
        for vi in stops {
            self.deliver_stop(small16(vi), false, vis, cx);
        }
    }
}
