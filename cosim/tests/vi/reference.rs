//! The VIs as contract sections 2, 4, 5 and 6 describe them: whole lists of posted descriptors
//! instead of head and last tokens, one operation at a time.

use nic_regs::desc::status::PARTIAL_ERROR;
use nic_regs::vi::State;
use std::collections::VecDeque;

/// Number of one queue's event queue that means 'none'.
pub(crate) const NO_QUEUE: u16 = 0xffff;

/// Descriptor: region, offset in units of 64 bytes, segments.
pub(crate) type Descriptor = (u16, u32, u8);

#[derive(Clone, Debug, Default)]
pub(crate) struct WorkQueue {
    pub posted: VecDeque<Descriptor>,
    pub in_progress: bool,
    pub write: bool,
    pub offset: u32,
    pub total: u32,
    pub message: u8,
    pub fragment: u8,
    pub event_queue: u16,
    /// Completed, not reported.
    pub unreported: u32,
    /// Completed since the last attempt to report.
    pub unattempted: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Vi {
    pub state: State,
    pub domain: u8,
    pub reliability: u8,
    pub tag: u16,
    pub max_transfer: u32,
    pub peer: u8,
    pub peer_vi: u16,
    pub connection: u16,
    /// RDMA that the VI allows, that the peer's VI allows.
    pub allows: u8,
    pub peer_allows: u8,
    /// Send, receive.
    pub queues: [WorkQueue; 2],
    pub popped: Descriptor,
    pub awaiting: bool,
    pub acked: bool,
    /// An RDMA read of so many bytes is being answered (placed: the send queue's offset).
    pub reading: Option<u32>,
    /// The answer that is pending: address, handle, bytes left.
    pub answer: Option<(u64, u32, u32)>,
    pub pending: u8,
    pub refuse_reason: u8,
    /// Reason, detail, queue, status of the last stop.
    pub stopped: (u8, u8, bool, u32),
    pub error_pending: bool,
    /// The ViError was not tried yet.
    pub error_untried: bool,
}

impl Vi {
    pub(crate) fn live(&self) -> bool {
        matches!(self.state, State::Connected | State::Error)
    }

    pub(crate) fn has_work(&self) -> bool {
        let free = self.reading.is_none() && !self.awaiting;
        let sends = free && !self.queues[0].posted.is_empty();
        self.pending != 0 || self.state == State::Connected && (sends || self.answer.is_some())
    }

    fn empty(&mut self) {
        for queue in &mut self.queues {
            *queue = WorkQueue { event_queue: queue.event_queue, ..WorkQueue::default() };
        }
        (self.awaiting, self.acked) = (false, false);
        (self.reading, self.answer) = (None, None);
    }

    /// Stops a Connected VI; true if it was one, and whether a refusal is pending now.
    pub(crate) fn stop(&mut self, stopped: (u8, u8, bool, u32), refuse: bool) -> (bool, bool) {
        if self.state != State::Connected {
            return (false, false);
        }
        self.state = State::Error;
        self.answer = None;
        self.stopped = stopped;
        if self.reading.is_some() && self.queues[0].offset != 0 && !stopped.2 {
            self.stopped.3 |= PARTIAL_ERROR;
        }
        self.error_pending = true;
        self.error_untried = true;
        let refuse = refuse && self.reliability != 1;
        if refuse {
            self.pending |= 2;
            self.refuse_reason = stopped.0;
        }
        (true, refuse)
    }

    /// Takes the head off a queue, if there is one. `true`: Next was needed and not valid.
    /// `sent`: a frame of the message was sent.
    pub(crate) fn pop(&mut self, queue: usize, next: Option<(u16, u32)>, sent: bool) -> bool {
        let work = &mut self.queues[queue];
        if work.posted.len() > 2 {
            let Some(next) = next else { return true };
            let head = work.posted.pop_front().unwrap();
            // A head by Next keeps the segment count before it as its hint.
            work.posted[0] = (next.0, next.1, head.2);
            self.popped = if queue == 0 { head } else { self.popped };
        } else if let Some(head) = work.posted.pop_front() {
            self.popped = if queue == 0 { head } else { self.popped };
        } else {
            return false;
        }
        (work.in_progress, work.offset, work.total) = (false, 0, 0);
        work.write = false;
        if queue == 0 {
            work.message = work.message.wrapping_add(sent.into());
            work.fragment = 0;
        }
        false
    }

    /// A push goes out: as pop, and await on Reception; its message is one frame.
    pub(crate) fn push(&mut self, descriptor: Descriptor, length: u32, fragment: u8) {
        let work = &mut self.queues[0];
        if self.reliability != 4 {
            work.message = work.message.wrapping_add(1);
        } else if self.state == State::Connected {
            (work.offset, work.fragment) = (length, fragment);
            self.awaiting = true;
        }
        self.popped = descriptor;
    }

    /// Operations of admin: status and result.
    pub(crate) fn admin(&mut self, op: u8, new: &Self) -> (u8, u32) {
        let busy = self.pending != 0;
        match (op, self.state) {
            (0, State::Free) => {
                *self = Self { state: State::Idle, ..new.clone() };
                (0, 0)
            }
            (1 | 2, State::Idle) if busy => (6, 0),
            (1, State::Idle) => {
                self.state = State::Free;
                self.error_pending = false;
                (0, 0)
            }
            (2, State::Idle) => {
                self.state = State::Connected;
                (self.peer, self.peer_vi) = (new.peer, new.peer_vi);
                (self.connection, self.peer_allows) = (new.connection, new.allows);
                for queue in &mut self.queues {
                    (queue.in_progress, queue.offset, queue.total) = (false, 0, 0);
                    (queue.message, queue.fragment, queue.write) = (0, 0, false);
                }
                (self.awaiting, self.acked) = (false, false);
                (self.reading, self.answer) = (None, None);
                (0, 0)
            }
            (3, State::Idle | State::Connected | State::Error) => {
                let own = ![7, 8, 9].contains(&self.stopped.0);
                let untold = self.state == State::Error && self.reliability == 1 && own;
                if self.state == State::Connected || untold {
                    self.pending |= 4;
                }
                self.state = State::Idle;
                self.error_pending = false;
                self.error_untried = false;
                self.empty();
                (0, 0)
            }
            (4, State::Free) => (0, 0),
            (4, _) => {
                let reason = if self.state == State::Error { self.stopped.0 } else { 0 };
                let reads = self.reading.is_some() || self.answer.is_some();
                let sending = self.queues[0].in_progress || self.awaiting || busy || reads;
                let bits = self.state as u32
                    | u32::from(reason) << 4
                    | u32::from(sending) << 12
                    | u32::from(self.queues[1].in_progress) << 13;
                (0, bits)
            }
            _ => (3, 0),
        }
    }
}
