//! The sending half of a connection: packets that are not acknowledged, what of them is lost, and how
//! many may be in flight.

use std::collections::VecDeque;

use super::congestion::Congestion;
use super::receiver::ACK_EVERY;
use super::rtt::RoundTrip;
use super::{Ack, Limits};

/// A packet is lost when one that was sent this much later is acknowledged.
const REORDERING: u64 = 3;
/// Buffers that are kept for packets to come.
const SPARE_MAX: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be sent, the first time or again.
    Queued,
    InFlight,
    /// Acknowledged, unlike one before it.
    Arrived,
}

#[derive(Debug)]
struct Packet {
    bytes: Vec<u8>,
    state: State,
    is_control: bool,
    /// How often it was sent.
    sent: u32,
    /// When it was sent last, and the how manieth transmission that was.
    sent_at: u64,
    order: u64,
}

/// The sending half.
#[derive(Debug)]
pub(in crate::net) struct Sender {
    is_reliable: bool,
    limits: Limits,
    /// The first packet that is not acknowledged, and the next new one.
    base: u32,
    next: u32,
    packets: VecDeque<Packet>,
    /// Numbers of packets that are queued, and of some that were acknowledged since.
    queue: VecDeque<u32>,
    /// Packets in each of these states.
    queued: u32,
    in_flight: u32,
    /// Transmissions so far, and the latest one that was acknowledged.
    order: u64,
    latest: Option<u64>,
    congestion: Congestion,
    time: RoundTrip,
    /// The first packet that the peer has no credit for.
    credit: u32,
    /// Packets that the peer of an unreliable connection has received.
    received: u32,
    /// When something was acknowledged last, or could have been.
    progress_at: u64,
    spare: Vec<Vec<u8>>,
    retransmitted: u64,
}

impl Sender {
    pub(super) fn new(now: u64, is_reliable: bool, limits: Limits) -> Self {
        Self {
            is_reliable,
            limits,
            base: 0,
            next: 0,
            packets: VecDeque::new(),
            queue: VecDeque::new(),
            queued: 0,
            in_flight: 0,
            order: 0,
            latest: None,
            congestion: Congestion::new(limits.window.into(), 0),
            time: RoundTrip::default(),
            credit: limits.window.into(),
            received: 0,
            progress_at: now,
            spare: Vec::new(),
            retransmitted: 0,
        }
    }

    /// Number of the next new packet.
    pub(in crate::net) const fn next(&self) -> u32 {
        self.next
    }

    /// Whether every packet before this one was acknowledged.
    pub(in crate::net) const fn has_arrived(&self, before: u32) -> bool {
        self.base.wrapping_sub(before).cast_signed() >= 0
    }

    /// Whether nothing is left to be acknowledged.
    pub(in crate::net) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Packets that were sent again since this was asked last.
    pub(in crate::net) fn take_retransmitted(&mut self) -> u64 {
        core::mem::take(&mut self.retransmitted)
    }

    /// How often in a row nothing was acknowledged in time.
    pub(in crate::net) const fn time_outs(&self) -> u32 {
        self.time.time_outs()
    }

    /// Whether a new packet may be sent.
    pub(in crate::net) fn has_credit(&self) -> bool {
        self.credit.wrapping_sub(self.next).cast_signed() > 0
            && self.in_flight + self.queued < self.congestion.window()
    }

    /// Whether the peer should acknowledge the last packet at once: it is the last that may be sent,
    /// and so few are in flight that the peer would wait for more; or an earlier one was too late.
    pub(in crate::net) fn wants_ack(&self) -> bool {
        self.time.time_outs() > 0
            || self.queue.len() <= 1
                && self.congestion.window() < 2 * ACK_EVERY
                && !self.has_credit()
    }

    /// A buffer for a packet, with the bytes of an earlier one.
    pub(in crate::net) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Queues a new packet; returns its number. A `control` packet is sent until it is acknowledged,
    /// whatever the connection's level.
    pub(in crate::net) fn push(&mut self, now: u64, bytes: Vec<u8>, is_control: bool) -> u32 {
        if self.packets.is_empty() {
            if now.saturating_sub(self.progress_at) > self.time.time_out() {
                self.congestion.restart();
            }
            self.progress_at = now;
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        let (state, sent, sent_at, order) = (State::Queued, 0, now, 0);
        self.packets.push_back(Packet { bytes, state, is_control, sent, sent_at, order });
        self.queue.push_back(number);
        self.queued += 1;
        number
    }

    fn place(&self, number: u32) -> usize {
        number.wrapping_sub(self.base) as usize
    }

    /// How many packets are to be sent next together: as the window allows, no more than `most` and
    /// `most_bytes`, all of one length but the last, which may be shorter.
    pub(in crate::net) fn batch(&mut self, most: usize, most_bytes: usize) -> usize {
        // Packets may have been acknowledged meanwhile.
        while let Some(number) = self.queue.front().copied()
            && self.packets.get(self.place(number)).is_none_or(|p| p.state != State::Queued)
        {
            self.queue.pop_front();
        }
        let window = self.congestion.window().saturating_sub(self.in_flight) as usize;
        let (mut count, mut bytes, mut length) = (0, 0, usize::MAX);
        for number in self.queue.iter().take(most.min(window)) {
            let Some(packet) = self.packets.get(self.place(*number)) else { break };
            let own = packet.bytes.len();
            let is_whole = count == 0 || own <= length && bytes + own <= most_bytes;
            if packet.state != State::Queued || !is_whole {
                break;
            }
            let is_shorter = own < length && count > 0;
            (count, bytes, length) = (count + 1, bytes + own, own);
            if is_shorter {
                break;
            }
        }
        count
    }

    /// Number and bytes of a packet of the batch, and whether nothing is queued behind it.
    pub(in crate::net) fn queued(&mut self, at: usize) -> Option<(u32, &mut Vec<u8>, bool)> {
        let number = *self.queue.get(at)?;
        let (place, is_last) = (self.place(number), at + 1 == self.queue.len());
        self.packets.get_mut(place).map(|packet| (number, &mut packet.bytes, is_last))
    }

    /// The bytes of a packet of the batch.
    pub(in crate::net) fn queued_bytes(&self, at: usize) -> &[u8] {
        let packet = self.queue.get(at).and_then(|number| self.packets.get(self.place(*number)));
        packet.map_or(&[], |packet| &packet.bytes)
    }

    /// The first packet of the batch was sent.
    pub(in crate::net) fn sent(&mut self, now: u64) {
        let Some(number) = self.queue.pop_front() else { return };
        let place = self.place(number);
        if let Some(packet) = self.packets.get_mut(place) {
            self.order += 1;
            self.retransmitted += u64::from(packet.sent > 0);
            packet.sent += 1;
            (packet.state, packet.sent_at, packet.order) = (State::InFlight, now, self.order);
            self.in_flight += 1;
            self.queued -= 1;
        }
    }

    /// The peer acknowledged packets. `bits` has those behind the first one that it misses.
    pub(in crate::net) fn acknowledged(&mut self, now: u64, ack: Ack, bits: &[u8]) {
        let count = ack.next.wrapping_sub(self.base);
        if count > self.next.wrapping_sub(self.base) {
            // Older than what is known already, or of packets that were never sent.
            return;
        }
        let credit = ack.next.wrapping_add(u32::from(ack.window.min(self.limits.window)));
        if credit.wrapping_sub(self.credit).cast_signed() > 0 {
            self.credit = credit;
        }
        let was_full = self.in_flight >= self.congestion.window() / 2;
        let mut arrived = 0;
        for _ in 0..count {
            self.base = self.base.wrapping_add(1);
            let Some(packet) = self.packets.pop_front() else { break };
            arrived += self.arrived(now, packet.state, packet.sent, packet.sent_at, packet.order);
            if self.spare.len() < SPARE_MAX {
                self.spare.push(packet.bytes);
            }
        }
        if self.is_reliable {
            arrived += self.arrived_out_of_order(now, bits);
            self.find_lost();
        } else if count > 0 {
            let received = ack.received.wrapping_sub(self.received);
            self.received = ack.received;
            if received < count {
                self.congestion.lose(self.base.wrapping_sub(1), self.next);
            }
        }
        if arrived > 0 {
            self.progress_at = now;
            self.time.progress();
            if was_full {
                self.congestion.grow(arrived);
            }
        }
    }

    /// A packet was acknowledged: 1, if it was not known before.
    fn arrived(&mut self, now: u64, state: State, sent: u32, sent_at: u64, order: u64) -> u32 {
        match state {
            State::Arrived => return 0,
            State::InFlight => self.in_flight -= 1,
            State::Queued => self.queued -= 1,
        }
        // Of one that was sent twice nobody knows which time it arrived.
        if sent == 1 {
            self.time.sample(now.saturating_sub(sent_at));
        }
        self.latest = self.latest.max(Some(order));
        1
    }

    fn arrived_out_of_order(&mut self, now: u64, bits: &[u8]) -> u32 {
        let mut count = 0;
        for place in 0..bits.len() * 8 {
            if bits[place / 8] & 1 << (place % 8) == 0 {
                continue;
            }
            let Some(packet) = self.packets.get_mut(place + 1) else { break };
            if packet.sent == 0 {
                continue;
            }
            let Packet { state, sent, sent_at, order, .. } = *packet;
            packet.state = State::Arrived;
            count += self.arrived(now, state, sent, sent_at, order);
        }
        count
    }

    fn find_lost(&mut self) {
        let Some(latest) = self.latest else { return };
        for (place, packet) in (0..).zip(&mut self.packets) {
            let number = self.base.wrapping_add(place);
            if packet.state == State::InFlight && packet.order + REORDERING <= latest {
                packet.state = State::Queued;
                self.in_flight -= 1;
                self.queued += 1;
                self.queue.push_back(number);
                self.congestion.lose(number, self.next);
            }
        }
    }

    /// When [`Sender::on_timer`] has something to do.
    pub(in crate::net) fn deadline(&self) -> Option<u64> {
        let oldest = self.packets.iter().filter(|packet| packet.state == State::InFlight);
        let sent_at = oldest.map(|packet| packet.sent_at).next()?;
        Some(sent_at + self.time.time_out())
    }

    /// Queues what was in flight for too long. False: nothing was acknowledged for so long that the
    /// connection is broken.
    pub(in crate::net) fn on_timer(&mut self, now: u64) -> bool {
        if self.packets.is_empty() {
            return true;
        }
        if now.saturating_sub(self.progress_at) > self.limits.time_out_ns {
            return false;
        }
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return true;
        }
        self.time.back_off();
        self.congestion.time_out(self.next);
        if !self.is_reliable {
            self.repeat_control(now);
            return true;
        }
        self.queue.clear();
        (self.queued, self.in_flight) = (0, 0);
        for (place, packet) in (0..).zip(&mut self.packets) {
            if packet.state != State::Arrived {
                packet.state = State::Queued;
                self.queued += 1;
                self.queue.push_back(self.base.wrapping_add(place));
            }
        }
        true
    }

    /// Forgets what was in flight, but for control packets: they are sent as new ones.
    fn repeat_control(&mut self, now: u64) {
        let progress_at = self.progress_at;
        let packets = core::mem::take(&mut self.packets);
        (self.base, self.in_flight, self.queued) = (self.next, 0, 0);
        self.queue.clear();
        let mut has_control = false;
        for packet in packets.into_iter().filter(|packet| packet.is_control) {
            self.push(now, packet.bytes, true);
            has_control = true;
        }
        if has_control {
            self.progress_at = progress_at;
        }
        // The receiver's window moves with what it sees.
        self.credit = self.next.wrapping_add(self.limits.window.into());
    }

    /// Forgets everything: the peer takes nothing any more.
    pub(in crate::net) fn clear(&mut self) {
        self.packets.clear();
        self.queue.clear();
        (self.base, self.in_flight, self.queued) = (self.next, 0, 0);
    }
}
