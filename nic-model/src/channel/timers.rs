//! Timers of the channels: retries, acknowledgement delay, keepalive.

use nic_regs::admin::PeerState;
use nic_regs::csr::RETRY_LIMIT;
use nic_regs::event::PeerDownReason;
use nic_regs::limits::{PEER_COUNT, QUIET_CYCLES};

use crate::bits::small8;
use crate::device::HostBus;
use crate::nic::Model;

/// After how many quiet cycles an Ack is sent: without keepalive, too, since an Ack that gave credits
/// back may be lost.
pub(super) fn quiet_after(keepalive: u64) -> u64 {
    if keepalive == 0 { QUIET_CYCLES.into() } else { keepalive }
}

impl Model {
    /// Looks at the timers, if one may have run out.
    pub(crate) fn timer_step(&mut self, host: &mut dyn HostBus) {
        if self.now < self.channels.next_timer {
            return;
        }
        for node in 0..small8(PEER_COUNT) {
            if self.channels.peer(node).state != PeerState::Closed {
                self.retry_timer(node, host);
                self.quiet_timers(node, host);
            }
        }
        let (keepalive, limit) = (self.csr.keepalive.into(), u64::from(self.retry_limit()));
        let deadlines = self.channels.peers.iter().map(|p| p.next_deadline(keepalive, limit));
        self.channels.next_timer = deadlines.min().unwrap_or(u64::MAX);
    }

    fn retry_limit(&self) -> u32 {
        RETRY_LIMIT(self.csr.retry_limit).get(RETRY_LIMIT::TRIES)
    }

    /// SYN and unacknowledged frames: the silent time-out number RETRY_LIMIT in a row is the last.
    fn retry_timer(&mut self, node: u8, host: &mut dyn HostBus) {
        let (now, limit) = (self.now, self.retry_limit());
        let timeout = u64::from(self.csr.retry_timeout);
        let peer = self.channels.peer_mut(node);
        if peer.retry_deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        if std::mem::take(&mut peer.heard) {
            peer.silent = 0;
        } else {
            peer.silent += 1;
            if peer.silent >= limit {
                self.peer_down(node, PeerDownReason::Dead, host);
                return;
            }
        }
        peer.retries = (peer.retries + 1).min(limit.saturating_sub(1));
        peer.retry_deadline = Some(now + (timeout << peer.retries));
        if peer.state == PeerState::Opening {
            peer.owes.syn = true;
        } else {
            peer.retransmit();
        }
        self.channels.make_ready(node);
    }

    /// Owed acknowledgement, keepalive, silence.
    fn quiet_timers(&mut self, node: u8, host: &mut dyn HostBus) {
        let (now, keepalive) = (self.now, u64::from(self.csr.keepalive));
        let silence = keepalive * u64::from(self.retry_limit());
        let peer = self.channels.peer_mut(node);
        if peer.state != PeerState::Open {
            return;
        }
        if keepalive != 0 && now >= peer.last_heard + silence {
            self.peer_down(node, PeerDownReason::Dead, host);
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
            peer.owes.ack = true;
            self.channels.make_ready(node);
        }
    }
}
