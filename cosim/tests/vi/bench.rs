//! The neighbours of the VIs, and the comparison with the reference.

use crate::engines::{Engine, Recv, Send};
use crate::reference::{Descriptor, NO_QUEUE, Vi};
use cosim::random::Random;
use cosim::verilated::blocks::vi::Model;
use nic_regs::doorbell::{Queue, Token};
use nic_regs::vi::State;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

pub(crate) const VIS: [u16; 10] = [0, 1, 2, 31, 32, 500, 511, 512, 1022, 1023];
const PEERS: u64 = 3;
pub(crate) const ERROR_QUEUE: u16 = 3;
pub(crate) const ABSENT_QUEUE: u16 = 9;
/// Descriptors posted to one queue at most.
const POSTED: usize = 8;
/// No call may take longer, except kill and drain.
pub(crate) const PATIENCE: u64 = 6_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub quiet: bool,
    /// Pauses between calls, answer time of the event block.
    pub idle: u64,
    pub event_delay: u64,
    /// Records that event queues 0 to 3 still take.
    pub rooms: [u32; 4],
    /// Chance of new space in a cycle.
    pub space_chance: f64,
    pub kill_chance: f64,
}

impl Settings {
    pub(crate) fn random(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5e77);
        Self {
            quiet: false,
            idle: [1, 6, 40][random.below(3) as usize],
            event_delay: [1, 10, 60][random.below(3) as usize],
            rooms: [4; 4],
            space_chance: [0.1, 0.02, 0.005][random.below(3) as usize],
            kill_chance: [0.0, 0.0002, 0.001][random.below(3) as usize],
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub sends: u64,
    pub recvs: u64,
    pub need_next: u64,
    pub events: u64,
    pub deferred: u64,
    pub drains: u64,
    pub kills: u64,
    pub stops: u64,
    pub acks: u64,
    /// Sends that were ended after their VI had stopped.
    pub late: u64,
    pub reads: u64,
    pub answers: u64,
    /// VIs that were offered with their context.
    pub fresh: u64,
    /// Pushes that the engine sent, that it gave back.
    pub pushes: u64,
    pub returns: u64,
    pub looks: u64,
}

/// A doorbell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Post {
    pub token: u64,
    pub domain: u8,
    /// Of a push 0, its line 2:1, its data is in a slot 3, which 6:4.
    pub push: u8,
    /// The engine has taken it.
    pub inline: bool,
}

/// A call of the event block: kind, VI, word 1, queue, and when it is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventCall {
    pub kind: u32,
    pub vi: u16,
    pub word1: u32,
    pub queue: u16,
    pub answer_at: u64,
}

#[derive(Default)]
pub(crate) struct Bench {
    pub random: Random,
    pub model: Model,
    pub now: u64,
    pub settings: Settings,
    pub tally: Tally,
    pub vis: BTreeMap<u16, Vi>,
    /// The VI that the send engine took last and has not given back.
    pub current: Option<u16>,
    pub finishing: bool,
    /// Events that were answered with 'written': kind, VI, word 1.
    pub reported: Vec<(u32, u16, u32)>,
    /// VIs that may be in the ready ring.
    pub eligible: BTreeSet<u16>,
    /// VIs whose sends are acknowledged, in order; the engine ends the current one.
    pub acked: VecDeque<u16>,
    pub ending: bool,
    /// Takes of others while a VI had work.
    pub waits: HashMap<u16, u64>,
    pub send: Engine<Send>,
    pub recv: Engine<Recv>,
    /// The receive engine's completer, and what waits for it; its prefetcher.
    pub complete: Engine<Recv>,
    pub completing: VecDeque<Recv>,
    pub look: Engine<u16>,
    /// COMPLETEs of the send engine that were answered and have not had their effect.
    pub completed_sends: VecDeque<u16>,
    /// In the last cycle an RDMA read was completed.
    pub read_completed: bool,
    pub post: Option<Post>,
    pub posting: VecDeque<Post>,
    /// Pushes that the engine has, by VI.
    pub pushed: VecDeque<(u16, Descriptor)>,
    /// What was called in the cycle before was nothing yet.
    pub was_nothing: bool,
    pub admin: Option<(u8, u16, Vi)>,
    pub admin_pause: u64,
    /// Admin wants both engines between two frames.
    pub fence: bool,
    /// Cycles since it does.
    pub fenced_for: u64,
    pub kill: Option<u8>,
    pub kill_pause: u64,
    /// Peer and last stopped VI of the running scan.
    pub kill_scan: Option<(u8, Option<u16>)>,
    pub event: Option<EventCall>,
    pub deferring: BTreeSet<u16>,
    pub drain: Option<u16>,
    /// VIs that the running kill has stopped.
    pub killed: Vec<u16>,
    pub drain_pause: u64,
    /// The second call of a drain.
    pub drain_errors: Option<u16>,
    /// Deferrals outside of drains, and all.
    pub first_tries: (u64, u64),
    /// A stop in the last cycle that was not a kill's.
    pub stopped: bool,
    pub counts: HashMap<usize, u64>,
    pub seen: HashMap<usize, u64>,
    pub waiting_since: [u64; 7],
    /// The last cycle's, if a doorbell was looked at.
    pub presented: Option<cosim::verilated::blocks::vi::Out>,
    /// A test takes the next VI.
    pub take_now: bool,
    pub error_queue: u16,
}

impl Bench {
    pub(crate) fn new(seed: u64, settings: Settings) -> Self {
        let random = Random::new(seed);
        let mut bench = Self { random, settings, error_queue: ERROR_QUEUE, ..Self::default() };
        bench.model.reset();
        let i = &mut bench.model.inputs;
        (i.error_queue, i.error_queue_valid) = (ERROR_QUEUE, 1);
        (i.sample_vi, i.sample_armed) = (32, 1);
        bench
    }

    pub(crate) fn random_vi(&mut self) -> u16 {
        VIS[self.random.below(VIS.len() as u64) as usize]
    }

    /// What Next of the head says, if the successor is already posted.
    pub(crate) fn successor(&self, vi: u16, queue: usize) -> Option<(u16, u32)> {
        let posted = &self.vis.get(&vi)?.queues[queue].posted;
        posted.get(1).map(|next| (next.0, next.1))
    }

    fn random_post(&mut self) -> Option<Post> {
        let (mut vi, queue) = (self.random_vi(), self.random.below(2) as usize);
        // A push goes at once only if its VI has nothing to send, which is rare here.
        let idle = |vi: &Vi| vi.state == State::Connected && !vi.has_work() && !vi.awaiting;
        let first_idle = self.vis.iter().find(|(at, state)| **at >= vi && idle(state));
        let at_once = first_idle.filter(|_| queue == 0).map(|(at, _)| *at);
        vi = at_once.unwrap_or(vi);
        let state = self.vis.get(&vi).cloned().unwrap_or_default();
        if state.queues[queue].posted.len() + self.posting.len() >= POSTED {
            return None;
        }
        let mut domain = state.domain;
        if self.random.chance(0.03) {
            domain ^= 1 << self.random.below(6);
        }
        let far = self.random.chance(0.02);
        let token = self.token(if far { vi | 0x8000 } else { vi }, queue == 1);
        // `cq` puts no data into a slot for the receive queue.
        let kind = self.random.below(4);
        let push = if at_once.is_some() || kind == 2 && queue == 0 {
            9 | (self.random.bits() as u8 & 0x76)
        } else if kind < 2 {
            0
        } else {
            1 | (self.random.bits() as u8 & 6)
        };
        Some(Post { token, domain, push, inline: false })
    }

    pub(crate) fn token(&mut self, vi: u16, recv: bool) -> u64 {
        Token {
            vi,
            region: self.random.bits() as u16,
            offset_64: self.random.below(1 << 26) as u32,
            segments: self.random.below(18) as u8,
            queue: if recv { Queue::Recv } else { Queue::Send },
        }
        .to_bits()
    }

    fn random_admin(&mut self) -> Option<(u8, u16, Vi)> {
        let vi = self.random_vi();
        let state = self.vis.get(&vi).map_or(State::Free, |vi| vi.state);
        let likely = match state {
            State::Free => 0,
            State::Idle if self.random.chance(0.9) => 2,
            State::Idle => 1,
            State::Error => 3,
            State::Connected if self.random.chance(0.1) => 3,
            State::Connected => 4,
        };
        let op = if self.random.chance(0.9) { likely } else { self.random.below(5) as u8 };
        let new = self.new_vi();
        let killing = self.kill_scan.is_some_and(|(peer, _)| peer == new.peer);
        (op != 2 || !killing).then_some((op, vi, new))
    }

    pub(crate) fn new_vi(&mut self) -> Vi {
        let random = &mut self.random;
        let mut queue = || [0, 1, 2, ERROR_QUEUE, ABSENT_QUEUE, NO_QUEUE][random.below(6) as usize];
        let queues = [queue(), queue()];
        let mut vi = Vi {
            domain: random.below(64) as u8,
            reliability: 1 << random.below(3),
            tag: random.bits() as u16,
            max_transfer: random.below(1 << 18) as u32 + 1,
            peer: random.below(PEERS) as u8,
            peer_vi: random.bits() as u16,
            connection: random.bits() as u16,
            allows: random.below(4) as u8,
            ..Vi::default()
        };
        for (work, queue) in vi.queues.iter_mut().zip(queues) {
            work.event_queue = queue;
        }
        vi
    }

    fn choose(&mut self) {
        let idle = self.settings.idle;
        let ready = self.model.outputs.ready != 0;
        if self.post.is_none() && !self.finishing && self.random.below(idle) == 0 {
            self.post = self.random_post();
        }
        if self.recv.job.is_none() && !self.fence && self.random.below(idle) == 0 {
            let first = self.first_recv();
            self.recv.job = Some(first.vi);
            self.recv.queued = Some(first);
        }
        if self.look.call.is_none() && self.random.below(self.settings.idle) == 0 {
            self.look.queued = Some(self.random_vi());
        }
        self.admin_pause = self.admin_pause.saturating_sub(1);
        if self.admin.is_none() && self.admin_pause == 0 && !self.finishing && ready {
            self.fence = true;
            let received = self.recv.job.is_none() && self.all_complete();
            let sent = self.send.job.is_none() && self.pushed.is_empty() && self.fenced_for > 3;
            if sent && received && self.acked.is_empty() {
                self.admin = self.random_admin();
                self.fence = self.admin.is_some();
                self.admin_pause = 10;
            }
        }
        self.kill_pause = self.kill_pause.saturating_sub(1);
        self.drain_pause = self.drain_pause.saturating_sub(1);
        if self.finishing {
            self.fence = self.admin.is_some();
        }
        self.fenced_for = if self.fence { self.fenced_for + 1 } else { 0 };
        if self.send.job.is_none()
            && let Some(&(vi, descriptor)) = self.pushed.front()
            && self.random.below(self.settings.idle) == 0
        {
            self.send.job = Some(vi);
            self.send.queued = Some(self.next_of_push(vi, descriptor));
        }
        if self.kill.is_none() && self.kill_pause == 0 && !self.finishing {
            let connecting = self.admin.as_ref().is_some_and(|admin| admin.0 == 2);
            if !connecting && self.random.chance(self.settings.kill_chance) {
                let peer = self.random.below(PEERS) as u8;
                self.kill = Some(peer);
                self.kill_scan = Some((peer, None));
            }
        }
        if self.random.chance(self.settings.space_chance) || self.finishing {
            let queue = self.random.below(4) as u16;
            self.settings.rooms[usize::from(queue)] += 1 + self.random.below(4) as u32;
        }
        if self.drain.is_none() && self.drain_pause == 0 && self.drain_errors.is_some() {
            self.drain = self.drain_errors.take();
        } else if self.drain.is_none() && self.drain_pause == 0 {
            let rooms = self.settings.rooms;
            let moved = self.deferring.iter().copied().find(|&queue| rooms[usize::from(queue)] > 0);
            if let Some(queue) = moved {
                self.request_drain(queue);
            }
        }
    }

    pub(crate) fn request_drain(&mut self, queue: u16) {
        self.deferring.remove(&queue);
        self.drain = Some(queue);
        self.tally.drains += 1;
    }

    pub(crate) fn settle_for(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle();
        }
    }

    pub(crate) fn settle(&mut self) {
        self.settle_for(60);
    }

    pub(crate) fn drive(&mut self) {
        if !self.settings.quiet {
            self.choose();
        }
        step(&mut self.send);
        step(&mut self.recv);
        if self.complete.call.is_none() && self.complete.pause == 0 {
            self.complete.queued = self.completing.pop_front();
        }
        step(&mut self.complete);
        step(&mut self.look);
        let i = &mut self.model.inputs;
        i.post_valid = self.post.is_some().into();
        let nothing = Post { token: !0, domain: 0, push: 0x7f, inline: false };
        let post = self.post.unwrap_or(nothing);
        (i.post_token, i.post_domain, i.post_push) = (post.token, post.domain, post.push);
        i.send_push_ready = (!self.fence && self.random.chance(0.7)).into();
        i.send_push_open = (!self.fence).into();
        (i.send_holding, i.send_holding_vi) =
            (self.send.job.is_some().into(), self.send.job.unwrap_or(0x3ff));
        self.was_nothing = self.send.call.is_some_and(|call| call.nothing);
        if let Some(call) = &mut self.send.call {
            call.nothing &= self.random.chance(0.7);
        }
        i.send_valid = self.send.call.is_some().into();
        if let Some(call) = self.send.call {
            (i.send_op, i.send_vi, i.send_in_progress) =
                (call.op, call.vi, call.in_progress.into());
            if call.nothing {
                i.send_op = 15;
            }
            (i.send_offset, i.send_fragment) = (call.offset, call.fragment);
            i.send_next_valid = call.next.is_some().into();
            (i.send_next_region, i.send_next_offset) = call.next.unwrap_or((0xdead, 0xbad));
            (i.send_reason, i.send_status) = (call.reason, call.status);
            (i.send_queue, i.send_refuse) = (call.queue.into(), call.refuse.into());
            i.send_control_pending = call.pending;
            (i.send_reading, i.send_answered) = (call.reading.into(), call.answered.into());
        }
        let free = !self.settings.quiet
            && self.send.job.is_none()
            && self.random.below(self.settings.idle) == 0;
        // A fence waits for acknowledged sends. The engine ends them first; this one often does not.
        let ends = free
            && self.model.outputs.send_acked_valid != 0
            && (self.fence || self.finishing || self.random.chance(0.2));
        i.send_acked_ready = ends.into();
        i.send_work_ready = (self.take_now || free && !self.fence && !ends).into();
        i.recv_valid = self.recv.call.is_some().into();
        if let Some(call) = self.recv.call {
            (i.recv_op, i.recv_vi, i.recv_in_progress) =
                (call.op, call.vi, call.in_progress.into());
            (i.recv_offset, i.recv_total) = (call.offset, call.total);
            (i.recv_write, i.recv_sends) = (call.write.into(), call.sends.into());
            (i.recv_address, i.recv_handle) = (call.address, call.handle);
            (i.recv_message, i.recv_fragment) = (call.message, call.fragment);
            i.recv_next_valid = call.next.is_some().into();
            (i.recv_next_region, i.recv_next_offset) = call.next.unwrap_or((0xdead, 0xbad));
            (i.recv_reason, i.recv_detail) = (call.reason, call.detail);
            (i.recv_status, i.recv_queue) = (call.status, call.queue.into());
            (i.recv_refuse, i.recv_need_ack) = (call.refuse.into(), call.ack.into());
        }
        i.complete_valid = self.complete.call.is_some().into();
        if let Some(call) = self.complete.call {
            (i.complete_vi, i.complete_sends) = (call.vi, call.sends.into());
            i.complete_need_ack = call.ack.into();
        }
        i.look_valid = self.look.call.is_some().into();
        i.look_vi = self.look.call.unwrap_or(0x3ff);
        i.admin_valid = self.admin.is_some().into();
        if let Some((op, vi, new)) = &self.admin {
            (i.admin_op, i.admin_vi, i.admin_domain) = (*op, *vi, new.domain);
            (i.admin_reliability, i.admin_tag) = (new.reliability, new.tag);
            i.admin_send_queue = new.queues[0].event_queue;
            i.admin_recv_queue = new.queues[1].event_queue;
            (i.admin_max_transfer, i.admin_peer) = (new.max_transfer, new.peer);
            (i.admin_peer_vi, i.admin_connection) = (new.peer_vi, new.connection);
            i.admin_allows = new.allows;
        }
        i.kill_valid = self.kill.is_some().into();
        i.kill_peer = self.kill.unwrap_or(0);
        i.drain_valid = self.drain.is_some().into();
        i.drain_queue = self.drain.unwrap_or(0);
        i.events_done = self.event.is_some_and(|event| event.answer_at == self.now).into();
        i.events_outcome = self.event.map_or(0, |event| match event.queue {
            ABSENT_QUEUE => 2,
            queue if self.settings.rooms[usize::from(queue)] == 0 => 1,
            _ => 0,
        });
    }
}

/// A queued call starts after its pause; a call ended at least a cycle ago.
fn step<T>(engine: &mut Engine<T>) {
    if engine.pause > 0 {
        engine.pause -= 1;
    } else if engine.call.is_none() {
        engine.call = engine.queued.take();
    }
}
