//! The comparison with the reference, cycle by cycle, and calls for tests of one thing.

use crate::bench::{ABSENT_QUEUE, Bench, EventCall, PATIENCE, Post, VIS};
use crate::context::{check_look, check_read, check_recv, check_send};
use crate::engines::{Recv, Send};
use crate::reference::{NO_QUEUE, Vi};
use cosim::verilated::blocks::vi::Out;
use nic_regs::counter::{Counter, ErrorCode, ErrorRecord};
use nic_regs::desc::status::TRANSPORT_ERROR;
use nic_regs::doorbell::{PUSH_LINE_BYTES, PUSH_OFFSET, Queue, Token};
use nic_regs::vi::{State, StopReason};

impl Bench {
    fn count(&mut self, counter: Counter) {
        *self.counts.entry(counter as usize).or_default() += 1;
    }

    pub(crate) fn cycle(&mut self) {
        self.drive();
        self.model.cycle();
        let out = self.model.outputs.clone();
        self.sample(&out);
        self.now += 1;
    }

    fn sample(&mut self, o: &Out) {
        self.last_cycle(o);
        self.fresh(o);
        self.judged(o);
        self.stopped = false;
        assert!(o.send_acked_left != 0 || self.acked.is_empty(), "a fence would go first");
        if o.post_ready != 0 && self.model.inputs.post_valid != 0 {
            let post = self.post.take();
            self.posting.extend(post);
        }
        if o.send_done != 0 {
            let call = self.send.call.take().expect("a call of the send engine");
            if self.was_nothing {
                self.send.queued = Some(Send { nothing: false, ..call });
                self.send.pause = 1 + self.random.below(self.settings.idle);
            } else {
                self.send_done(call, o);
            }
        }
        if o.recv_done != 0 {
            let call = self.recv.call.take().expect("a call of the receive engine");
            self.recv_done(call, o);
        }
        if o.complete_done != 0 {
            let call = self.complete.call.take().expect("a call of the completer");
            self.complete_done(call);
        }
        if o.look_done != 0 {
            let vi = self.look.call.take().expect("a call of the prefetcher");
            check_look(self.vis.entry(vi).or_default(), o);
            self.tally.looks += 1;
            self.look.pause = 1 + self.random.below(self.settings.idle);
        }
        if o.admin_done != 0 {
            self.admin_done(o);
        }
        // After the operation of this cycle, which still saw the VI offered.
        if o.send_work_valid != 0 && self.model.inputs.send_work_ready != 0 {
            self.taken(o.send_work_vi);
        }
        if o.send_acked_valid != 0 && self.model.inputs.send_acked_ready != 0 {
            assert_eq!(
                self.acked.pop_front(),
                Some(o.send_acked_vi),
                "ends in the order of ViAcks"
            );
            self.begin(o.send_acked_vi, true);
        }
        if o.kill_done != 0 {
            self.kill.take().expect("a kill");
            for vi in self.killed.drain(..) {
                assert!(!self.vis[&vi].error_untried, "PeerDown before the ViError of VI {vi}");
            }
            self.kill_pause = 2;
            self.tally.kills += 1;
        }
        if o.drain_done != 0 {
            let queue = self.drain.take().expect("a drain");
            self.drain_pause = 2;
            self.drain_errors = (queue < 256).then_some(queue | 0x8000);
        }
        self.event_call(o);
        let waiting = [
            self.post.is_some(),
            self.send.call.is_some(),
            self.recv.call.is_some(),
            self.admin.is_some(),
            self.kill.is_some() || self.drain.is_some(),
            self.complete.call.is_some(),
            self.look.call.is_some(),
        ];
        for (at, waiting) in waiting.into_iter().enumerate() {
            if !waiting {
                self.waiting_since[at] = self.now;
            }
            let patience = if at == 4 { 40 * PATIENCE } else { PATIENCE };
            assert!(self.now - self.waiting_since[at] < patience, "port {at} starves");
        }
    }

    /// What the counters show of the last cycle: a doorbell, or a VI stopped by a kill.
    fn last_cycle(&mut self, o: &Out) {
        for at in 0..64 {
            *self.seen.entry(at).or_default() += o.counts >> at & 1;
        }
        let read = std::mem::take(&mut self.read_completed);
        if o.counts >> Counter::SendsCompleted as usize & 1 != 0 && !read {
            let vi = self.completed_sends.pop_front().expect("a COMPLETE of the send engine");
            self.send_completed(vi);
        }
        let mut stamp = false;
        if o.counts & 7 != 0 {
            let post = self.posting.pop_front().expect("a doorbell");
            stamp = self.posted(post, o);
        } else {
            assert_eq!(o.error_valid, 0);
        }
        assert_eq!(o.stamp_doorbell != 0, stamp);
        if o.counts >> Counter::ViStops as usize & 1 != 0 && !self.stopped {
            let (peer, last) = self.kill_scan.expect("a stop without a reason");
            let stops = |(vi, state): (&u16, &Vi)| {
                last.is_none_or(|last| *vi > last)
                    && (state.state == State::Connected && state.peer == peer)
            };
            let vi = self.vis.iter().find(|&(vi, state)| stops((vi, state))).map(|found| *found.0);
            let vi = vi.expect("a VI of that peer");
            self.kill_scan = Some((peer, Some(vi)));
            let down = (StopReason::PeerDown as u8, 0, false, TRANSPORT_ERROR);
            self.stop(vi, down, false);
            self.killed.push(vi);
        }
        if self.kill.is_none()
            && let Some((peer, _)) = self.kill_scan.take()
        {
            let connected = |state: &&Vi| state.state == State::Connected && state.peer == peer;
            assert_eq!(self.vis.values().filter(connected).count(), 0, "kill {peer}");
        }
    }

    /// True: the sampled VI's stamp is due.
    fn posted(&mut self, post: Post, o: &Out) -> bool {
        let (token, domain) = (Token::from_bits(post.token), post.domain);
        let vi = self.vis.get_mut(&token.vi);
        let owner = vi.filter(|vi| vi.state != State::Free && vi.domain == domain);
        let kind = owner.map(|vi| {
            if vi.state == State::Error {
                return 4;
            }
            if !post.inline {
                let descriptor = (token.region, token.offset_64, token.segments);
                vi.queues[token.queue as usize].posted.push_back(descriptor);
            }
            1
        });
        assert_eq!(o.counts & 7, kind.unwrap_or(2), "{token:?} {domain}");
        self.count(match kind {
            Some(1) => Counter::DoorbellTokens,
            Some(_) => Counter::DoorbellDropped,
            None => Counter::DoorbellBad,
        });
        assert_eq!(o.error_valid != 0, kind.is_none());
        if kind.is_none() {
            let line = u32::from(post.push >> 1 & 3) * PUSH_LINE_BYTES as u32;
            let offset = if post.push & 1 != 0 { PUSH_OFFSET as u32 + line } else { 0 };
            let detail = u32::from(token.vi) | offset << 16 | 1 << 28;
            let code = ErrorCode::BadDoorbell as u8;
            let record = ErrorRecord { code, index: domain.into(), detail };
            assert_eq!(o.error_record, record.to_bits());
        }
        let send = kind == Some(1) && token.queue == Queue::Send;
        if post.inline {
            self.count(Counter::PushesInline);
        } else if send {
            self.push(token.vi);
            if post.push & 1 != 0 {
                self.count(Counter::PushesPlain);
            }
        }
        send && token.vi == 32
    }

    /// The VI enters the ready ring, if it has work.
    fn push(&mut self, vi: u16) {
        let pushed = self.pushed.iter().any(|push| push.0 == vi);
        if self.vis[&vi].has_work() && !pushed {
            self.eligible.insert(vi);
        }
    }

    fn stop(&mut self, vi: u16, stopped: (u8, u8, bool, u32), refuse: bool) {
        let (stops, refuses) = self.vis.entry(vi).or_default().stop(stopped, refuse);
        if stops {
            self.count(Counter::ViStops);
            self.tally.stops += 1;
            self.push(vi);
        }
        if refuses {
            self.count(Counter::RefusalsSent);
        }
    }

    fn taken(&mut self, vi: u16) {
        assert!(self.eligible.remove(&vi), "VI {vi} is offered without a reason");
        self.waits.remove(&vi);
        for other in &self.eligible {
            if self.vis[other].has_work() {
                let waits = self.waits.entry(*other).or_default();
                *waits += 1;
                assert!(*waits <= 2 * VIS.len() as u64, "VI {other} is passed over");
            }
        }
        self.take_now = false;
        self.begin(vi, false);
    }

    /// The engine has taken a VI, to end its acknowledged send or for a slot.
    fn begin(&mut self, vi: u16, ending: bool) {
        (self.current, self.ending) = (Some(vi), ending);
        if !self.settings.quiet {
            self.send.job = Some(vi);
            self.send.queued = Some(Send { op: 0, vi, ..Send::default() });
            self.send.pause = self.random.below(self.settings.idle);
        }
    }

    fn completed(&mut self, vi: u16, queue: usize) {
        let counter = if queue == 0 { Counter::SendsCompleted } else { Counter::RecvsCompleted };
        self.count(counter);
        let state = self.vis.get_mut(&vi).unwrap();
        let live = state.live();
        let work = &mut state.queues[queue];
        if live && work.event_queue != NO_QUEUE {
            work.unreported += 1;
            work.unattempted += 1;
        }
    }

    fn send_done(&mut self, call: Send, o: &Out) {
        let vi = call.vi;
        let Send { offset, fragment, .. } = call;
        let state = self.vis.entry(vi).or_default();
        let work = &mut state.queues[0];
        let mut need_next = false;
        match call.op {
            0 => check_send(state, o),
            1 if call.reading => {
                work.offset = 0;
                state.reading = Some(offset);
                self.tally.reads += 1;
            }
            1 => {
                (work.in_progress, work.offset, work.fragment) =
                    (call.in_progress, offset, fragment);
            }
            2 => {
                need_next = state.pop(0, call.next, call.in_progress);
                assert_eq!(need_next, o.send_need_next != 0);
                self.tally.need_next += u64::from(need_next);
            }
            3 => {
                (work.offset, work.fragment) = (offset, fragment);
                state.awaiting = true;
            }
            // Answered ahead; what it does shows in the counter.
            4 => self.completed_sends.push_back(vi),
            5 => {
                self.stop(vi, (call.reason, 0, call.queue, call.status), call.refuse);
                self.stopped = true;
            }
            6 => {
                state.pending &= !call.pending;
                if let (true, Some((address, handle, left))) = (call.answered, state.answer) {
                    let rest = (address.wrapping_add(4096), handle, left.saturating_sub(4096));
                    state.answer = (left > 4096).then_some(rest);
                    self.tally.answers += 1;
                }
            }
            8 | 9 => {
                let (pushed, descriptor) = self.pushed.pop_front().expect("a push");
                assert_eq!(pushed, vi);
                if call.op == 8 {
                    self.tally.returns += 1;
                    if state.state == State::Connected {
                        work.posted.push_front(descriptor);
                    }
                } else {
                    self.tally.pushes += 1;
                    check_send(state, o);
                    state.push(descriptor, offset, fragment);
                }
            }
            _ => {
                check_send(state, o);
                let work = &mut state.queues[0];
                work.message = work.message.wrapping_add(call.in_progress.into());
            }
        }
        let popped = call.op == 2 && !need_next && self.vis[&vi].reliability != 4;
        if matches!(call.op, 1 | 3 | 6 | 8 | 9) || popped {
            self.push(vi);
        }
        if matches!(call.op, 1 | 3 | 4 | 5) {
            self.current = None;
        }
        if !self.settings.quiet {
            self.send.queued = self.after_send(call, need_next);
            self.send.pause = 1 + self.random.below(self.settings.idle);
            if self.send.queued.is_none() {
                self.send.job = None;
            }
        }
    }

    /// A COMPLETE of the send engine.
    fn send_completed(&mut self, vi: u16) {
        let state = self.vis.get_mut(&vi).expect("a VI");
        if state.awaiting {
            state.queues[0].offset = 0;
            self.tally.acks += 1;
            self.tally.late += u64::from(state.state == State::Error);
        }
        (state.awaiting, state.acked) = (false, false);
        self.completed(vi, 0);
        self.tally.sends += 1;
        self.push(vi);
    }

    fn recv_done(&mut self, call: Recv, o: &Out) {
        let vi = call.vi;
        let mut need_next = false;
        if vi < 1024 {
            let state = self.vis.entry(vi).or_default();
            let work = &mut state.queues[1];
            match call.op {
                0 if call.sends => check_read(state, o),
                0 => check_recv(state, o),
                1 if call.sends => state.queues[0].offset = call.offset,
                2 if call.sends => {
                    need_next = state.pop(0, call.next, false);
                    assert_eq!(need_next, o.recv_need_next != 0);
                }
                3 => {
                    if state.state == State::Connected {
                        state.answer = Some((call.address, call.handle, call.total));
                    }
                    self.push(vi);
                }
                1 => {
                    (work.in_progress, work.offset) = (call.in_progress, call.offset);
                    (work.total, work.message) = (call.total, call.message);
                    (work.fragment, work.write) = (call.fragment, call.write);
                    if state.live() && call.ack {
                        state.pending |= 1;
                        self.push(vi);
                    }
                }
                2 => {
                    need_next = state.pop(1, call.next, false);
                    assert_eq!(need_next, o.recv_need_next != 0);
                    self.tally.need_next += u64::from(need_next);
                }
                5 => {
                    let stopped = (call.reason, call.detail, call.queue, call.status);
                    self.stop(vi, stopped, call.refuse);
                    self.stopped = true;
                }
                _ => {
                    if state.state == State::Connected && state.awaiting && !state.acked {
                        state.acked = true;
                        self.acked.push_back(vi);
                    } else {
                        self.count(Counter::Unmatched);
                    }
                    self.push(vi);
                }
            }
        } else {
            assert_eq!(o.recv_ctx_state, 0);
        }
        if !self.settings.quiet {
            self.recv.queued = self.after_recv(call, need_next);
            self.recv.pause = 1 + self.random.below(self.settings.idle);
            if self.recv.queued.is_none() {
                self.recv.job = None;
            }
        }
    }

    fn complete_done(&mut self, call: Recv) {
        let vi = call.vi;
        let state = self.vis.entry(vi).or_default();
        self.read_completed = call.sends;
        if call.sends {
            state.reading = None;
        } else {
            if state.live() && call.ack {
                state.pending |= 1;
            }
            self.tally.recvs += 1;
        }
        self.completed(vi, usize::from(!call.sends));
        self.push(vi);
        self.complete.pause = 1 + self.random.below(self.settings.idle.max(1));
    }

    fn admin_done(&mut self, o: &Out) {
        let (op, vi, new) = self.admin.take().expect("a command");
        let state = self.vis.entry(vi).or_default();
        if op == 3 {
            let late: Vec<u32> = state.queues.iter().map(|queue| queue.unattempted).collect();
            assert_eq!(late, [0, 0], "announcements of VI {vi} lost to admin");
            assert!(self.event.is_none_or(|event| event.vi != vi));
        }
        assert_eq!((o.admin_status, o.admin_result), state.admin(op, &new), "op {op} VI {vi}");
        if matches!(op, 2 | 3) && o.admin_status == 0 {
            self.push(vi);
        }
        if op == 3 && o.admin_status == 0 {
            // Its ViError is forgotten, and it may stop again for another reason.
            self.killed.retain(|killed| *killed != vi);
        }
        self.fence = false;
        self.admin_pause = 2 + self.random.below(20 * self.settings.idle + 1);
    }

    fn event_call(&mut self, o: &Out) {
        if let Some(event) = self.event
            && event.answer_at == self.now
        {
            assert_ne!(o.events_valid, 0);
            self.answered(event, self.model.inputs.events_outcome);
            self.event = None;
        } else if o.events_valid != 0 && self.event.is_none() {
            let (kind, vi) = (o.events_word0 & 0xffff, (o.events_word0 >> 16) as u16);
            let state = self.vis.get_mut(&vi).expect("an event of a VI");
            if kind == 3 {
                let (reason, detail, queue, status) = state.stopped;
                let word1 = u32::from(reason) | u32::from(detail) << 8 | u32::from(queue) << 16;
                assert!(state.error_pending);
                state.error_untried = false;
                assert_eq!((o.events_word1, o.events_word2), (word1, status));
                assert_eq!(o.events_queue, self.error_queue);
            } else {
                let work = &mut state.queues[kind as usize - 1];
                let count = o.events_word1;
                assert!(count > 0 && count <= work.unreported, "{count} of {work:?}");
                assert_eq!((o.events_queue, o.events_word2), (work.event_queue, 0));
                work.unattempted = work.unattempted.min(work.unreported - count);
            }
            let delay = self.settings.event_delay.max(1);
            self.event = Some(EventCall {
                kind,
                vi,
                word1: o.events_word1,
                queue: o.events_queue,
                answer_at: self.now + 1 + self.random.below(delay),
            });
        }
    }

    fn answered(&mut self, event: EventCall, outcome: u8) {
        self.tally.events += 1;
        if outcome == 1 {
            self.tally.deferred += 1;
            self.deferring.insert(event.queue);
            // Retries, which only drains make, are not counted.
            if self.drain.is_none() {
                self.first_tries.0 += 1;
            }
            self.first_tries.1 += 1;
            return;
        }
        let state = self.vis.get_mut(&event.vi).unwrap();
        if event.kind == 3 {
            state.error_pending = false;
        } else {
            state.queues[event.kind as usize - 1].unreported -= event.word1;
        }
        if event.queue != ABSENT_QUEUE {
            self.settings.rooms[usize::from(event.queue)] -= 1;
            self.reported.push((event.kind, event.vi, event.word1));
        }
    }

    /// Nobody asks for more: all work is done and everything reported.
    pub(crate) fn finish(&mut self) {
        self.finishing = true;
        self.settle_for(20_000);
        // What the last kill deferred may still be on its way: a drain takes two scans of 1,024 VIs.
        let end = self.now + 20_000;
        while self.now < end && (self.drain.is_some() || !self.deferring.is_empty()) {
            self.cycle();
        }
        for (vi, state) in &self.vis {
            let reported = state.queues.iter().all(|queue| queue.unreported == 0);
            assert!(!state.has_work(), "VI {vi} is lost: {state:?}");
            assert!(state.state == State::Free || reported, "VI {vi}: {state:?}");
            assert!(!state.error_pending, "VI {vi}: {state:?}");
        }
        assert!(self.completed_sends.is_empty() && self.acked.is_empty());
        assert!(self.deferring.is_empty() && self.posting.is_empty() && self.drain.is_none());
        let deferred = self.seen.remove(&(Counter::EventsDeferred as usize)).unwrap();
        assert!((self.first_tries.0..=self.first_tries.1).contains(&deferred));
        for (at, count) in &self.seen {
            assert_eq!(count, self.counts.get(at).unwrap_or(&0), "counter {at}");
        }
    }

    // Calls for tests of one thing.

    pub(crate) fn post(&mut self, vi: u16, recv: bool, segments: u8) {
        let token = Token::from_bits(self.token(vi, recv));
        let domain = self.vis[&vi].domain;
        let token = Token { segments, ..token }.to_bits();
        self.post = Some(Post { token, domain, push: 0, inline: false });
        while self.post.is_some() {
            self.cycle();
        }
    }

    pub(crate) fn take(&mut self) -> u16 {
        self.take_now = true;
        while self.take_now {
            self.cycle();
        }
        self.current.expect("a VI was taken")
    }

    pub(crate) fn send_call(&mut self, call: Send) {
        self.send.call = Some(call);
        while self.send.call.is_some() {
            self.cycle();
        }
        self.cycle();
    }

    pub(crate) fn recv_call(&mut self, call: Recv) {
        if call.op == 4 {
            self.completing.push_back(call);
        } else {
            self.recv.call = Some(call);
        }
        while self.recv.call.is_some() || !self.all_complete() {
            self.cycle();
        }
        self.cycle();
    }

    pub(crate) fn admin_call(&mut self, op: u8, vi: u16) -> u8 {
        let mut new = self.new_vi();
        new.reliability = 2;
        new.queues[0].event_queue = 0;
        new.queues[1].event_queue = 1;
        self.admin = Some((op, vi, new));
        while self.admin.is_some() {
            self.cycle();
        }
        let status = self.model.outputs.admin_status;
        self.cycle();
        status
    }

    /// Creates and connects a VI with event queues 0 and 1.
    pub(crate) fn open(&mut self, vi: u16) {
        self.settings.rooms = [1_000; 4];
        assert_eq!(self.admin_call(0, vi), 0);
        assert_eq!(self.admin_call(2, vi), 0);
    }
}
