//! Timers of the channels: retries, acknowledgement delay, keepalive.

use nic_regs::admin::PeerState;
use nic_regs::csr::RETRY_LIMIT;
use nic_regs::event::PeerDownReason;
use nic_regs::limits::PEER_COUNT;

use super::Channels;
use super::peer::{quiet_after, retry_after};
use crate::bits::small8;
use crate::context::Context;
use crate::work_queue::WorkQueues;

impl Channels {
    /// Looks at the timers, if one may have run out.
    pub(crate) fn timer_step(&mut self, queues: &mut WorkQueues, cx: &mut Context<'_>) {
        if cx.now < self.next_timer {
            return;
        }
        for node in 0..small8(PEER_COUNT) {
            if self.peer(node).state != PeerState::Closed {
                self.retry_timer(node, queues, cx);
                self.quiet_timers(node, queues, cx);
            }
        }
        let (keepalive, limit) = (self.settings.keepalive.into(), self.retry_limit().into());
        let deadlines = self.peers.iter().map(|p| p.next_deadline(keepalive, limit));
        self.next_timer = deadlines.min().unwrap_or(u64::MAX);
    }

    const fn retry_limit(&self) -> u32 {
        self.settings.retry_limit.get(RETRY_LIMIT::TRIES)
    }

    /// SYN and unacknowledged frames: the silent time-out number RETRY_LIMIT in a row is the last.
    fn retry_timer(&mut self, node: u8, queues: &mut WorkQueues, cx: &mut Context<'_>) {
        let (limit, timeout) = (self.retry_limit(), self.settings.retry_timeout);
        let peer = self.peer_mut(node);
        if peer.retry_deadline.is_none_or(|deadline| cx.now < deadline) {
            return;
        }
        if std::mem::take(&mut peer.answered) {
            peer.silent = 0;
        } else {
            peer.silent += 1;
            if peer.silent >= limit {
                self.down(node, PeerDownReason::Dead, queues, cx);
                return;
            }
        }
        peer.retries = (peer.retries + 1).min(limit.saturating_sub(1));
        peer.retry_deadline = Some(cx.now + retry_after(timeout, peer.retries));
        if peer.state == PeerState::Opening {
            peer.pending.syn = true;
        } else {
            peer.retransmit();
        }
        self.make_ready(node);
    }

    /// Pending acknowledgement, keepalive, silence.
    fn quiet_timers(&mut self, node: u8, queues: &mut WorkQueues, cx: &mut Context<'_>) {
        let (now, keepalive) = (cx.now, u64::from(self.settings.keepalive));
        let silence = keepalive * u64::from(self.retry_limit());
        let peer = self.peer_mut(node);
        if peer.state != PeerState::Open {
            return;
        }
        if keepalive != 0 && now >= peer.last_received + silence {
            self.down(node, PeerDownReason::Dead, queues, cx);
            return;
        }
        let due = peer.ack_deadline.is_some_and(|deadline| now >= deadline);
        if due {
            peer.ack_deadline = None;
        }
        let quiet = now >= peer.last_sent + quiet_after(keepalive);
        if quiet {
            // So that this is not due again before the Ack is out.
            peer.last_sent = now;
        }
        if due || quiet {
            peer.pending.ack = true;
            self.make_ready(node);
        }
    }
}
