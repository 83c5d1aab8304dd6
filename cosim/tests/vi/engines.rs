//! The send and the receive engine as neighbours of the VIs: what they ask, and what they do with
//! the answer.

use crate::bench::Bench;
use crate::reference::{Descriptor, Vi};
use nic_regs::vi::State;

/// A call of the send engine; the fields are those of `ViSendClient`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Send {
    pub op: u8,
    pub vi: u16,
    pub in_progress: bool,
    pub reading: bool,
    pub offset: u32,
    pub fragment: u8,
    pub next: Option<(u16, u32)>,
    pub reason: u8,
    pub status: u32,
    pub queue: bool,
    pub refuse: bool,
    pub pending: u8,
    pub answered: bool,
    /// The call was begun, and is nothing yet.
    pub nothing: bool,
}

/// A call of the receive engine; operation 4 is one of its completer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recv {
    pub op: u8,
    pub vi: u16,
    pub in_progress: bool,
    pub write: bool,
    pub offset: u32,
    pub total: u32,
    pub message: u8,
    pub fragment: u8,
    pub next: Option<(u16, u32)>,
    pub ack: bool,
    pub sends: bool,
    pub address: u64,
    pub handle: u32,
    pub reason: u8,
    pub detail: u8,
    pub status: u32,
    pub queue: bool,
    pub refuse: bool,
}

/// An engine: a call, or a pause before the next step of its job.
#[derive(Debug, Default)]
pub(crate) struct Engine<T> {
    pub pause: u64,
    pub call: Option<T>,
    /// The call that follows the pause.
    pub queued: Option<T>,
    /// The VI being worked on.
    pub job: Option<u16>,
}

impl Bench {
    /// A push goes out, or back to the head of its queue.
    pub(crate) fn next_of_push(&mut self, vi: u16, descriptor: Descriptor) -> Send {
        let op = if self.random.chance(0.2) { 8 } else { 9 };
        let next = Some((descriptor.0, descriptor.1));
        let fragment = if op == 8 { descriptor.2 } else { 0 };
        let offset = self.random.below(45) as u32;
        let nothing = self.random.chance(0.5);
        Send { op, vi, next, fragment, offset, nothing, ..Send::default() }
    }

    /// The next step after a call of the send engine, `None`: the job is over.
    pub(crate) fn after_send(&mut self, done: Send, need_next: bool) -> Option<Send> {
        let vi = done.vi;
        let state = self.vis.get(&vi).cloned().unwrap_or_default();
        let next = self.successor(vi, 0);
        let random = &mut self.random;
        match done.op {
            0 if self.ending => {
                assert!(state.awaiting && state.acked, "{state:?}");
                Some(Send { op: 4, vi, ..Send::default() })
            }
            0 if state.pending != 0 => {
                // Or it gives the VI back.
                let give = random.chance(if self.finishing { 0.0 } else { 0.2 });
                let pending = if give { 0 } else { state.pending & state.pending.wrapping_neg() };
                Some(Send { op: 6, vi, pending, ..Send::default() })
            }
            0 if state.state != State::Connected => None,
            0 if state.answer.is_some() => {
                let answered = self.finishing || random.chance(0.8);
                Some(Send { op: 6, vi, answered, ..Send::default() })
            }
            0 if state.reading.is_some() => None,
            0 if !state.awaiting && !state.queues[0].posted.is_empty() && random.chance(0.1) => {
                let offset = random.below((1 << 18) + 1) as u32;
                Some(Send { op: 1, vi, reading: true, offset, ..Send::default() })
            }
            0 if state.awaiting => None,
            0 if state.queues[0].posted.is_empty() => None,
            0 if random.chance(if self.finishing { 0.0 } else { 0.3 }) => Some(Send {
                op: 1,
                vi,
                in_progress: random.chance(0.5),
                offset: random.below(1 << 18) as u32,
                fragment: random.bits() as u8,
                ..Send::default()
            }),
            // Next was read with the descriptor: it is good only if it was linked by then.
            0 => {
                let next = if random.chance(0.1) { None } else { next };
                let in_progress = random.chance(0.8);
                Some(Send { op: 2, vi, next, in_progress, ..Send::default() })
            }
            2 if need_next => Some(Send { next, ..done }),
            2 if state.reliability == 4 && random.chance(0.8) => {
                let offset = random.below((1 << 18) + 1) as u32;
                let fragment = random.bits() as u8;
                Some(Send { op: 3, vi, offset, fragment, ..Send::default() })
            }
            2 if random.chance(0.5) => {
                let (in_progress, nothing) = (random.chance(0.5), random.chance(0.5));
                Some(Send { op: 7, vi, in_progress, nothing, ..Send::default() })
            }
            // Those of Reception are ended by the ViAck, and nobody by a VI that has stopped.
            9 if state.state != State::Connected || state.reliability == 4 => None,
            2 | 7 | 9 => Some(Send { op: 4, vi, ..Send::default() }),
            4 if random.chance(if self.finishing { 0.0 } else { 0.03 }) => Some(Send {
                op: 5,
                vi,
                reason: 1 + random.below(5) as u8,
                status: 1 << (1 + random.below(8)),
                queue: random.chance(0.5),
                refuse: random.chance(0.7),
                ..Send::default()
            }),
            _ => None,
        }
    }

    /// The next step after a call of the receive engine for the answer to a read.
    fn after_read(&mut self, done: Recv, state: &Vi, need_next: bool) -> Option<Recv> {
        let vi = done.vi;
        let next = self.successor(vi, 0);
        let random = &mut self.random;
        let total = state.reading.unwrap_or(0);
        match done.op {
            0 if state.state != State::Connected || state.reading.is_none() => None,
            0 if !self.finishing && random.chance(0.5) => {
                let offset = random.below(u64::from(total) + 1) as u32;
                Some(Recv { op: 1, vi, sends: true, offset, ..Recv::default() })
            }
            0 => {
                let next = if random.chance(0.1) { None } else { next };
                Some(Recv { op: 2, vi, sends: true, next, ..Recv::default() })
            }
            2 if need_next => Some(Recv { next, ..done }),
            2 => {
                self.completing.push_back(Recv { op: 4, vi, sends: true, ..Recv::default() });
                None
            }
            _ => None,
        }
    }

    /// Nothing is left to the completer.
    pub(crate) fn all_complete(&self) -> bool {
        self.completing.is_empty() && self.complete.call.is_none()
    }

    /// A frame arrives: its first call.
    pub(crate) fn first_recv(&mut self) -> Recv {
        let vi = self.random_vi();
        let vi = if self.random.chance(0.02) { vi | 0x400 << self.random.below(6) } else { vi };
        let reading = self.vis.get(&vi).is_some_and(|state| state.reading.is_some());
        // A read counts as under way until it is complete: the engine waits.
        let sends = self.all_complete() && self.random.chance(if reading { 0.6 } else { 0.05 });
        Recv { op: 0, vi, sends, ..Recv::default() }
    }

    /// The next step after a call of the receive engine.
    pub(crate) fn after_recv(&mut self, done: Recv, need_next: bool) -> Option<Recv> {
        let vi = done.vi;
        let state = self.vis.get(&vi).cloned().unwrap_or_default();
        if done.sends {
            return self.after_read(done, &state, need_next);
        }
        let next = self.successor(vi, 1);
        let stops = self.all_complete();
        let random = &mut self.random;
        let ack = Recv { op: 6, vi, ..Recv::default() };
        let stop = Recv {
            op: 5,
            vi,
            reason: 1 + random.below(9) as u8,
            detail: random.bits() as u8,
            status: 1 << (1 + random.below(8)),
            queue: random.chance(0.5),
            refuse: random.chance(0.5),
            ..Recv::default()
        };
        match done.op {
            0 if state.state != State::Connected => None,
            0 if self.finishing => (state.awaiting && !state.acked).then_some(ack),
            0 if state.awaiting && random.chance(0.5) => Some(ack),
            0 if stops && random.chance(0.02) => Some(stop),
            0 if state.answer.is_none() && random.chance(0.1) => Some(Recv {
                op: 3,
                vi,
                address: random.bits(),
                handle: random.bits() as u32,
                total: random.below(20_000) as u32,
                ..Recv::default()
            }),
            0 if random.chance(0.05) => Some(ack),
            0 if state.queues[1].posted.is_empty() => {
                (stops && random.chance(0.02)).then_some(stop)
            }
            0 if random.chance(0.3) => Some(Recv {
                op: 1,
                vi,
                in_progress: random.chance(0.7),
                write: random.chance(0.5),
                ack: state.reliability == 4 && random.chance(0.2),
                offset: random.below(1 << 18) as u32,
                total: random.below((1 << 18) + 1) as u32,
                message: random.bits() as u8,
                fragment: random.bits() as u8,
                ..Recv::default()
            }),
            0 => Some(Recv {
                op: 2,
                vi,
                next: if random.chance(0.1) { None } else { next },
                ..Recv::default()
            }),
            2 if need_next => Some(Recv { next, ..done }),
            2 => {
                let ack = state.reliability == 4;
                self.completing.push_back(Recv { op: 4, vi, ack, ..Recv::default() });
                None
            }
            _ => None,
        }
    }
}
