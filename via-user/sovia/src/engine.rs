//! One side of a connection, without input and output: what is to be sent, and what has come. Bytes are
//! elsewhere; here are their numbers and the receives in which they lie.
//!
//! ```text
//!   offer ──► how bytes of the program go       receive ◄── a packet that has come
//!   transmit ──► a packet to send now           front, consume ──► bytes that the program may read
//! ```
//!
//! Time is an argument, in nanoseconds.

use core::ops::Range;
use std::collections::VecDeque;

use crate::flow::Flow;
use crate::packet::{Header, Kind};
use crate::policy::{FlowControl, Policy};
use crate::state::{Event, State};

/// How bytes of the program go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Into the buffer in which small messages wait for each other, at this place; all of them.
    Combine(u32),
    /// As a packet of `bytes` now.
    Send {
        /// Its immediate data.
        header: Header,
        /// Its length.
        bytes: u32,
        /// They are few, and better copied.
        copied: bool,
    },
    /// There is no room: first transmit, and handle what comes.
    Wait,
    /// This side has ended.
    Ended,
}

/// A packet that is to be sent, beside those of [`Offer::Send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its immediate data.
    pub header: Header,
    /// Its bytes: the first of the combining buffer, which is empty afterwards.
    pub combined: u32,
}

/// What becomes of the receive in which a packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It holds bytes, until [`Engine::consume`] gives it back.
    Kept,
    /// It can be posted again.
    Free,
}

/// The other side broke the protocol. The connection is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// No packet of this protocol.
    #[error("immediate data {0:#010x} is of no packet")]
    Header(u32),
    /// A packet of data without data, or longer than agreed; another one with data.
    #[error("a packet {0:?} has {1} bytes")]
    Length(Kind, u32),
    /// More data than it may send.
    #[error("there is more data than the window has room for")]
    Window,
    /// More acknowledgements than there was data.
    #[error("{0} packets are acknowledged, which is more than were sent")]
    Acknowledged(u16),
    /// A packet that cannot come now.
    #[error("a packet {0:?} comes in state {1:?}")]
    Order(Kind, State),
}

/// Bytes in a receive.
#[derive(Clone, Copy, Debug)]
struct Part {
    receive: usize,
    at: u32,
    end: u32,
}

/// See the module.
#[derive(Debug)]
pub struct Engine {
    policy: Policy,
    state: State,
    flow: Flow,
    /// What has come and was not read.
    parts: VecDeque<Part>,
    /// Their bytes.
    unread: usize,
    /// The program has ended; Fin goes behind what it has sent.
    closing: bool,
    fin_ack: bool,
    /// Bytes in the combining buffer, since when, and whether they are to go now.
    combined: u32,
    since: u64,
    flush: bool,
    /// The program wants each message sent at once (`TCP_NODELAY`).
    no_delay: bool,
    /// Somebody waits for room.
    waits: bool,
}

impl Engine {
    /// One side of a new connection, whose other side has the same policy.
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        Self {
            policy,
            state: State::Normal,
            flow: Flow::new(policy.flow, policy.window),
            parts: VecDeque::new(),
            unread: 0,
            closing: false,
            fin_ack: false,
            combined: 0,
            since: 0,
            flush: false,
            no_delay: false,
            waits: false,
        }
    }

    /// Its settings.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Packets of data that may be sent, and how many that is at most.
    #[must_use]
    pub const fn credits(&self) -> [u16; 2] {
        self.flow.credits()
    }

    /// Sends each message at once, or lets small ones wait for each other as the policy says.
    pub const fn set_no_delay(&mut self, no_delay: bool) {
        self.no_delay = no_delay;
        self.flush |= no_delay;
    }

    /// How the next bytes of a message go, of which `rest` are left of `message`.
    pub fn offer(&mut self, rest: u32, message: u32, now: u64) -> Offer {
        if self.closing || !self.state.sends() {
            return Offer::Ended;
        }
        let copied = message <= self.policy.copy_limit;
        if copied && self.policy.combine.is_some() && !self.no_delay {
            if self.combined + rest <= self.policy.mtu {
                if self.combined == 0 {
                    self.since = now;
                }
                let at = self.combined;
                self.combined += rest;
                return Offer::Combine(at);
            }
            self.flush = true;
        }
        // What the program sent before goes before.
        self.flush |= self.combined > 0;
        if self.combined > 0 || !self.flow.may_send() {
            self.waits = true;
            return Offer::Wait;
        }
        self.waits = false;
        let header = Header { kind: Kind::Data, acknowledged: self.flow.send() };
        Offer::Send { header, bytes: rest.min(self.policy.mtu), copied }
    }

    /// Small messages do not wait any longer: the program waits itself, or has ended (SOVIA, 3.2.3).
    pub const fn flush(&mut self) {
        self.flush |= self.combined > 0;
    }

    /// The program sends no more.
    pub const fn close(&mut self) {
        if self.state.sends() {
            self.closing = true;
        }
    }

    /// Whether this side has sent its Fin.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        !self.state.sends()
    }

    /// Whether an offer would not have to wait.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        let ended = self.closing || !self.state.sends();
        ended || self.combined == 0 && self.flow.may_send()
    }

    /// Whether small messages wait.
    #[must_use]
    pub const fn is_combining(&self) -> bool {
        self.combined > 0
    }

    /// Until when small messages wait.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        let wait = self.policy.combine.filter(|_| self.combined > 0 && !self.flush)?;
        let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        Some(self.since.saturating_add(wait))
    }

    /// The next packet that is to be sent.
    pub fn transmit(&mut self, now: u64) -> Option<Packet> {
        let alone = |kind, acknowledged| {
            let header = Header { kind, acknowledged };
            Some(Packet { header, combined: 0 })
        };
        if core::mem::take(&mut self.fin_ack) {
            return alone(Kind::FinAck, self.piggyback());
        }
        self.flush |= self.deadline().is_some_and(|deadline| deadline <= now);
        let goes = self.combined > 0 && (self.flush || self.closing);
        if goes && self.flow.may_send() {
            let header = Header { kind: Kind::Data, acknowledged: self.flow.send() };
            self.flush = false;
            return Some(Packet { header, combined: core::mem::take(&mut self.combined) });
        }
        if self.closing && self.combined == 0 {
            self.closing = false;
            self.state = self.state.next(Event::Close).unwrap_or(self.state);
            return alone(Kind::Fin, self.piggyback());
        }
        if self.flow.is_due(0) {
            return match self.policy.flow {
                FlowControl::Window { .. } => alone(Kind::Ack, self.flow.take()),
                FlowControl::Credits { .. } => alone(Kind::CreditResponse, self.flow.respond()),
            };
        }
        if (goes || self.waits) && self.flow.lacks() {
            self.flow.ask();
            return alone(Kind::CreditRequest, 0);
        }
        None
    }

    /// Acknowledgements that go with a packet without data.
    const fn piggyback(&mut self) -> u16 {
        match self.policy.flow {
            FlowControl::Window { .. } => self.flow.take(),
            FlowControl::Credits { .. } => 0,
        }
    }

    /// A packet has come, of `length` bytes, in a receive.
    ///
    /// # Errors
    /// What the other side must not do.
    pub fn receive(
        &mut self,
        bits: u32,
        length: u32,
        receive: usize,
    ) -> Result<Received, Violation> {
        let header = Header::from_bits(bits).ok_or(Violation::Header(bits))?;
        let kind = header.kind;
        let is_data = kind == Kind::Data;
        let longest = if is_data { self.policy.mtu } else { 0 };
        if length > longest || is_data && length == 0 {
            return Err(Violation::Length(kind, length));
        }
        if !self.flow.acknowledge(header.acknowledged) {
            return Err(Violation::Acknowledged(header.acknowledged));
        }
        let order = Violation::Order(kind, self.state);
        let is_expected = match kind {
            Kind::Data => self.state.receives(),
            Kind::Fin | Kind::FinAck => true,
            Kind::Ack => matches!(self.policy.flow, FlowControl::Window { .. }),
            Kind::CreditRequest => self.is_credits() && self.flow.note_request(),
            Kind::CreditResponse => self.is_credits() && self.flow.note_response(),
            // It came before there was an engine.
            Kind::Wakeup => false,
        };
        if !is_expected {
            return Err(order);
        }
        match kind {
            Kind::Data => {
                if !self.flow.arrive() {
                    return Err(Violation::Window);
                }
                self.parts.push_back(Part { receive, at: 0, end: length });
                self.unread += length as usize;
                return Ok(Received::Kept);
            }
            Kind::Fin => {
                self.state = self.state.next(Event::Fin).ok_or(order)?;
                self.fin_ack = true;
            }
            Kind::FinAck => self.state = self.state.next(Event::FinAck).ok_or(order)?,
            _ => {}
        }
        Ok(Received::Free)
    }

    const fn is_credits(&self) -> bool {
        matches!(self.policy.flow, FlowControl::Credits { .. })
    }

    /// The bytes that the program reads next: the receive, and where in it they are.
    #[must_use]
    pub fn front(&self) -> Option<(usize, Range<u32>)> {
        self.fronts().next()
    }

    /// All bytes that have come and were not read, in order.
    pub fn fronts(&self) -> impl Iterator<Item = (usize, Range<u32>)> + '_ {
        self.parts.iter().map(|part| (part.receive, part.at..part.end))
    }

    /// How many these are.
    #[must_use]
    pub const fn available(&self) -> usize {
        self.unread
    }

    /// The program has read so many of them. Gives a receive that holds nothing any more; when it is
    /// posted again, [`Engine::posted`] is to know.
    pub fn consume(&mut self, bytes: u32) -> Option<usize> {
        let part = self.parts.front_mut()?;
        let bytes = bytes.min(part.end - part.at);
        part.at += bytes;
        self.unread -= bytes as usize;
        if part.at < part.end {
            return None;
        }
        self.parts.pop_front().map(|part| part.receive)
    }

    /// Whether the other side may wait for so many receives to be posted again.
    #[must_use]
    pub fn is_waited_for(&self, receives: usize) -> bool {
        self.flow.is_due(u16::try_from(receives).unwrap_or(u16::MAX))
    }

    /// A receive that held bytes was posted again.
    pub const fn posted(&mut self) {
        self.flow.repost();
    }

    /// The other side sends no more, and all that it sent was read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.parts.is_empty() && !self.state.receives()
    }
}
