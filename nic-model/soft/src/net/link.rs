//! An end of a connection: packets go out, and acknowledgements.

use std::io::IoSlice;

use port::RemoteAttributes;
use port::stamp::{Stage, stamp};

use super::context::Net;
use super::flow::{BITS_MAX, Flow, Limits};
use super::format::{DATA_HEADER_BYTES, Fragment, HEADER_BYTES, Header, flag};
use super::socket::Outcome;
use super::state::{Link, Sending};

/// Most packets that are given to the system together, and most bytes: as one UDP datagram may have.
const BATCH_MAX: usize = 44;
const BATCH_BYTES: usize = 64_000;
/// When packets that the system did not take are offered again.
const RETRY_NS: u64 = 200_000;
/// How long a connection is silent before its peer is asked whether it lives.
const PROBE_NS: u64 = 1_000_000_000;
/// Data bytes of a packet at least, whatever the system says of the path.
const SEGMENT_MIN: usize = 256;
/// Time-outs in a row after which the path is taken to carry less than the system says.
const SHRINK_AFTER: u32 = 3;
/// Data bytes of a packet then.
const SEGMENT_SHRUNK: usize = 1_024;

/// The other end, and what the two nodes have agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) peer: super::address::Address,
    pub(super) remote: RemoteAttributes,
    pub(super) own_token: u64,
    pub(super) remote_token: u64,
    /// Bytes of a packet that both ends and the path carry.
    pub(super) longest: usize,
}

impl Link {
    pub(super) fn new(net: &Net, now: u64, is_reliable: bool, end: &End) -> Self {
        let segment = end.longest.saturating_sub(DATA_HEADER_BYTES).max(SEGMENT_MIN);
        let limits = Limits { window: net.window(segment), time_out_ns: net.time_out_ns };
        Self {
            peer: end.peer,
            remote: end.remote,
            own_token: end.own_token,
            remote_token: end.remote_token,
            segment,
            flow: Flow::new(now, is_reliable, limits),
            sending: Sending::None,
            message: 0,
            arriving: None,
            answer: None,
            seen_at: now,
            probed_at: now,
            retry_at: None,
            is_over: false,
        }
    }

    /// Queues a data packet of `bytes` bytes of data, which `fill` writes.
    #[inline]
    pub(super) fn push(
        &mut self,
        now: u64,
        fragment: &Fragment,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        let mut packet = self.flow.sender.buffer();
        // What an earlier packet has left is overwritten.
        packet.resize(DATA_HEADER_BYTES + bytes, 0);
        fragment.write(&mut packet);
        fill(&mut packet[DATA_HEADER_BYTES..]);
        self.flow.sender.push(now, packet, false);
    }

    /// Queues the packet that stops the peer.
    pub(super) fn push_stop(&mut self, now: u64, reason: port::StopReason) {
        let mut packet = self.flow.sender.buffer();
        packet.resize(DATA_HEADER_BYTES, 0);
        Fragment::stop(reason).write(&mut packet);
        self.flow.sender.push(now, packet, true);
    }

    fn header(&self, flags: u16, sequence: u32) -> Header {
        let ack = self.flow.receiver.ack();
        Header { flags, vi: self.remote.vi, token: self.remote_token, sequence, ack }
    }

    /// Sends what is queued, as far as the path carries it, and an acknowledgement if one is due.
    #[inline]
    pub(super) fn flush(&mut self, net: &Net, now: u64, is_stopped: bool) {
        self.retry_at = None;
        let stopped = if is_stopped { flag::STOPPED } else { 0 };
        let mut header = self.header(stopped, 0);
        let awaits = !matches!(self.sending, Sending::None | Sending::Message { .. });
        let mut count = 0;
        loop {
            let sender = &mut self.flow.sender;
            let batch = sender.batch(BATCH_MAX, BATCH_BYTES);
            if batch == 0 {
                break;
            }
            let wants = awaits || is_stopped || sender.wants_ack();
            for at in 0..batch {
                let Some((sequence, packet, is_last)) = sender.queued(at) else { break };
                header.sequence = sequence;
                header.flags = stopped | if wants && is_last { flag::WANTS_ACK } else { 0 };
                header.write_data(packet);
            }
            let (sent, outcome) = self.send_batch(net, batch);
            (0..sent).for_each(|_| self.flow.sender.sent(now));
            count += sent as u64;
            if outcome == Outcome::Full {
                net.counters.full.count();
                self.retry_at = Some(now + RETRY_NS);
                break;
            }
        }
        if count > 0 {
            stamp(Stage::Store);
            net.counters.sent.add(count);
            net.counters.retransmitted.add(self.flow.sender.take_retransmitted());
            self.flow.receiver.acknowledged(false);
        }
        if self.flow.receiver.is_ack_due(now) {
            self.acknowledge(net, stopped);
        }
    }

    /// Sends packets; how many were, and why not more.
    #[inline]
    fn send_batch(&mut self, net: &Net, count: usize) -> (usize, Outcome) {
        let sender = &self.flow.sender;
        if count > 1 {
            let mut parts = [IoSlice::new(&[]); BATCH_MAX];
            for (at, part) in parts.iter_mut().enumerate().take(count) {
                *part = IoSlice::new(sender.queued_bytes(at));
            }
            if net.socket.send_together(self.peer, &parts[..count]) {
                return (count, Outcome::Sent);
            }
        }
        for at in 0..count {
            let packet = sender.queued_bytes(at);
            match net.socket.send(self.peer, packet) {
                Outcome::Sent => {}
                Outcome::Full => return (at, Outcome::Full),
                Outcome::TooLong => {
                    net.counters.too_long.count();
                    net.socket.send_fragmented(self.peer, packet);
                    let longest = net.socket.longest(self.peer).saturating_sub(DATA_HEADER_BYTES);
                    self.segment = longest.clamp(SEGMENT_MIN, self.segment);
                }
            }
        }
        (count, Outcome::Sent)
    }

    /// Sends an acknowledgement.
    fn acknowledge(&mut self, net: &Net, flags: u16) {
        let mut packet = [0; HEADER_BYTES + BITS_MAX];
        let bytes = self.flow.receiver.held_bits(&mut packet[HEADER_BYTES..]);
        let packet = &mut packet[..HEADER_BYTES + bytes];
        self.header(flags, self.flow.sender.next()).write_ack(packet);
        // One that the system does not take is as good as lost.
        net.socket.send(self.peer, packet);
        net.counters.sent.count();
        self.flow.receiver.acknowledged(true);
    }

    /// Sends again what was in flight for too long, and asks a silent peer whether it lives. False if
    /// the connection is broken.
    pub(super) fn on_timer(&mut self, net: &Net, now: u64) -> bool {
        if self.is_over {
            return true;
        }
        if !self.flow.sender.on_timer(now)
            || now.saturating_sub(self.seen_at) > net.time_out_ns + 2 * PROBE_NS
        {
            return false;
        }
        if self.flow.sender.time_outs() >= SHRINK_AFTER {
            self.segment = self.segment.min(SEGMENT_SHRUNK);
        }
        if now >= self.seen_at.max(self.probed_at) + PROBE_NS {
            self.probed_at = now;
            self.acknowledge(net, flag::WANTS_ACK);
        }
        true
    }

    /// When there is something to do.
    pub(super) fn deadline(&self) -> u64 {
        if self.is_over {
            return self.flow.receiver.ack_at().unwrap_or(u64::MAX);
        }
        let probe = self.seen_at.max(self.probed_at) + PROBE_NS;
        let others = [self.flow.deadline(), self.retry_at];
        others.into_iter().flatten().fold(probe, u64::min)
    }

    /// The peer takes nothing any more.
    pub(super) fn is_void(&mut self) {
        self.flow.sender.clear();
    }
}
