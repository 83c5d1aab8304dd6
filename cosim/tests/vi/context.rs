//! The contexts of VIs that the engines get, compared with the reference.

use crate::bench::Bench;
use crate::reference::Vi;
use cosim::verilated::blocks::vi::Out;
use nic_regs::doorbell::Token;
use nic_regs::vi::State;

/// Region, offset and segments of a doorbell's token, from bit 16 on.
const TOKEN: u64 = (1 << 47) - 1;

impl Bench {
    /// A VI that is offered with its context: what the doorbell's cycle presented is the state that it left.
    pub(crate) fn fresh(&mut self, o: &Out) {
        let presented = self.presented.take();
        if o.send_work_fresh != 0 {
            assert_ne!(o.send_work_valid, 0);
            let mut presented = presented.expect("a doorbell in the last cycle");
            presented.send_ctx_count = 1;
            presented.send_ctx_region = presented.send_push_token as u16;
            presented.send_ctx_offset = (presented.send_push_token >> 16 & 0x3ff_ffff) as u32;
            presented.send_ctx_segments = (presented.send_push_token >> 42) as u8;
            let vi = &self.vis[&o.send_work_vi];
            assert!(vi.state == State::Connected && vi.pending == 0 && vi.reading.is_none());
            assert!(!vi.awaiting && vi.answer.is_none() && !vi.queues[0].in_progress);
            check_send(vi, &presented);
            self.tally.fresh += 1;
        }
        if o.send_posting != 0 {
            self.presented = Some(o.clone());
        }
    }

    /// A push with data is judged: the engine gets it with the context of a VI that has nothing to send.
    pub(crate) fn judged(&mut self, o: &Out) {
        if o.send_push_valid == 0 {
            assert_eq!(o.send_push_inline, 0);
            return;
        }
        let post = self.posting.front_mut().expect("a doorbell");
        let token = Token::from_bits(post.token);
        assert_eq!((post.push & 8, o.send_push_slot), (8, post.push >> 4));
        post.inline = o.send_push_inline != 0;
        if post.inline {
            let vi = &self.vis[&token.vi];
            assert_eq!((vi.state, vi.domain), (State::Connected, post.domain));
            assert!(vi.pending == 0 && !vi.has_work() && !vi.awaiting && vi.reading.is_none());
            assert_ne!(self.send.job, Some(token.vi));
            assert!(self.pushed.iter().all(|push| push.0 != token.vi));
            check_send(vi, o);
            let descriptor = (token.region, token.offset_64, token.segments);
            assert_eq!((o.send_push_vi, o.send_push_token), (token.vi, post.token >> 16 & TOKEN));
            self.pushed.push_back((token.vi, descriptor));
        }
    }
}

pub(crate) fn check_send(state: &Vi, o: &Out) {
    assert_eq!(o.send_ctx_state, state.state as u8);
    if state.state == State::Free {
        return;
    }
    let work = &state.queues[0];
    assert_eq!((o.send_ctx_domain, o.send_ctx_tag), (state.domain, state.tag));
    assert_eq!(o.send_ctx_reliability, state.reliability);
    assert_eq!(o.send_ctx_max_transfer, state.max_transfer);
    assert_eq!(
        (o.send_ctx_count, o.send_ctx_control_pending),
        (work.posted.len() as u16, state.pending)
    );
    assert_eq!(o.send_ctx_in_progress != 0, work.in_progress);
    assert_eq!((o.send_ctx_progress, o.send_ctx_message), (work.offset, work.message));
    assert_eq!(o.send_ctx_fragment, work.fragment);
    assert_eq!(
        (o.send_ctx_awaiting, o.send_ctx_acked),
        (state.awaiting.into(), state.acked.into())
    );
    if state.awaiting {
        assert_eq!((o.send_ctx_region, o.send_ctx_offset), (state.popped.0, state.popped.1));
    } else if let Some(head) = work.posted.front() {
        assert_eq!((o.send_ctx_region, o.send_ctx_offset, o.send_ctx_segments), *head);
    }
    if state.live() {
        assert_eq!((o.send_ctx_peer, o.send_ctx_peer_vi), (state.peer, state.peer_vi));
        assert_eq!(o.send_ctx_connection, state.connection);
        assert_eq!(o.send_ctx_allows, state.peer_allows);
    }
    if state.pending & 2 != 0 {
        assert_eq!(o.send_ctx_refuse_reason, state.refuse_reason);
    }
    assert_eq!(o.send_ctx_reading != 0, state.reading.is_some());
    assert_eq!(o.send_ctx_answer != 0, state.answer.is_some());
    if let Some((address, handle, left)) = state.answer {
        assert_eq!((o.send_ctx_answer_address, o.send_ctx_answer_handle), (address, handle));
        assert_eq!(o.send_ctx_answer_left, left);
    }
}

/// What the receive engine gets of the send queue.
pub(crate) fn check_read(state: &Vi, o: &Out) {
    assert_eq!(o.recv_ctx_state, state.state as u8);
    if state.state == State::Free {
        return;
    }
    let work = &state.queues[0];
    assert_eq!(o.recv_ctx_count, work.posted.len() as u16);
    assert_eq!(o.recv_ctx_in_progress != 0, state.reading.is_some());
    assert_eq!(o.recv_ctx_progress, work.offset);
    if let Some(total) = state.reading {
        assert_eq!(o.recv_ctx_total, total);
    }
    if let Some(head) = work.posted.front() {
        assert_eq!((o.recv_ctx_region, o.recv_ctx_offset, o.recv_ctx_segments), *head);
    }
}

pub(crate) fn check_look(state: &Vi, o: &Out) {
    assert_eq!(o.look_state, state.state as u8);
    if state.state == State::Free {
        return;
    }
    let work = &state.queues[1];
    assert_eq!((o.look_domain, o.look_tag), (state.domain, state.tag));
    assert_eq!(o.look_count, work.posted.len() as u16);
    if let Some(head) = work.posted.front() {
        assert_eq!((o.look_region, o.look_offset, o.look_segments), *head);
    }
}

pub(crate) fn check_recv(state: &Vi, o: &Out) {
    assert_eq!(o.recv_ctx_state, state.state as u8);
    if state.state == State::Free {
        return;
    }
    let work = &state.queues[1];
    assert_eq!((o.recv_ctx_domain, o.recv_ctx_tag), (state.domain, state.tag));
    assert_eq!(o.recv_ctx_reliability, state.reliability);
    assert_eq!(o.recv_ctx_count, work.posted.len() as u16);
    assert_eq!(o.recv_ctx_in_progress != 0, work.in_progress);
    assert_eq!(o.recv_ctx_answering != 0, state.answer.is_some());
    assert_eq!((o.recv_ctx_write != 0, o.recv_ctx_allows), (work.write, state.allows));
    assert_eq!((o.recv_ctx_progress, o.recv_ctx_total), (work.offset, work.total));
    assert_eq!((o.recv_ctx_message, o.recv_ctx_fragment), (work.message, work.fragment));
    if let Some(head) = work.posted.front() {
        assert_eq!((o.recv_ctx_region, o.recv_ctx_offset, o.recv_ctx_segments), *head);
    }
    if state.live() {
        assert_eq!((o.recv_ctx_peer, o.recv_ctx_peer_vi), (state.peer, state.peer_vi));
        assert_eq!(o.recv_ctx_connection, state.connection);
    }
}
