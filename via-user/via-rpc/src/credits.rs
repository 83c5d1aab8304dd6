//! Flow control of one side of a connection, without input and output.
//!
//! ```text
//!   sender                                         receiver
//!   next, limit ──Data(next), until next = limit──► expected += 1, a receive less
//!               ◄──any packet: expected, credits──  limit = expected + credits
//!   fewer than `low` left ──────RTS───────────────►
//!               ◄───────────────CTS───────────────  when `low` receives are free
//! ```
//!
//! A packet names the first number that may not be sent, not how many more may be: what one packet
//! reports, every later one repeats. The answer of a call thus returns the credit of its request, and
//! RTS and CTS are for long messages.

use crate::header::{Header, Kind, Sequence};

/// How the other side breaks the rules of flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreditViolation {
    /// The number of a packet is not the one that is due.
    #[error("packet {found} of data instead of packet {due}")]
    Sequence {
        /// Modulo 1,024.
        found: u16,
        /// Modulo 1,024.
        due: u16,
    },
    /// A packet of data for which there were no credits.
    #[error("a packet of data without a credit")]
    NoCredit,
    /// It has got more packets of data than were sent, or fewer than it had.
    #[error("it reports {0} packets in flight that are not")]
    Expected(u16),
    /// It has more receives than were negotiated, or withdraws credits.
    #[error("it grants {found} credits where {least} to {most} are possible")]
    Grant {
        /// What it grants.
        found: u8,
        /// What it has granted before.
        least: u16,
        /// What was negotiated.
        most: u8,
    },
    /// A second RTS before the CTS.
    #[error("an RTS before the CTS of the last one")]
    Rts,
    /// A CTS that was not asked for.
    #[error("a CTS without an RTS")]
    Cts,
}

/// The windows of both directions. Credits are packets of data.
#[derive(Clone, Copy, Debug)]
pub struct Credits {
    /// Number of the next packet of data.
    next: Sequence,
    /// The next one that the other side expects, as far as it is known.
    acknowledged: Sequence,
    /// The first one that may not be sent.
    limit: Sequence,
    /// Below so many credits, more are requested.
    low: u16,
    /// The other side's receives for data.
    theirs: u8,
    /// An RTS is sent whose CTS has not come.
    requested: bool,
    /// Number of the next packet of data of the other side.
    expected: Sequence,
    /// Receives for it that are posted.
    free: u8,
    /// Most of them.
    own: u8,
    /// A CTS is to be sent when enough receives are free.
    responds: bool,
}

impl Credits {
    /// For sides that have `own` and `theirs` receives posted for data.
    #[must_use]
    pub fn new(own: u8, theirs: u8) -> Self {
        let start = Sequence::default();
        Self {
            next: start,
            acknowledged: start,
            limit: start.plus(theirs.into()),
            low: Self::watermark(theirs),
            theirs,
            requested: false,
            expected: start,
            free: own,
            own,
            responds: false,
        }
    }

    /// The low watermark: a quarter of the window.
    fn watermark(window: u8) -> u16 {
        u16::from(window / 4).max(1)
    }

    /// Packets of data that may be sent.
    #[must_use]
    pub const fn available(&self) -> u16 {
        self.limit.since(self.next)
    }

    /// The header of the next packet of data. None: there are no credits.
    #[must_use]
    pub fn send(&mut self) -> Option<Header> {
        if self.available() == 0 {
            return None;
        }
        let header = self.header(Kind::Data);
        self.next = self.next.plus(1);
        Some(header)
    }

    /// A packet that is to be sent for the sake of flow control: CTS or RTS.
    #[must_use]
    pub fn control(&mut self) -> Option<Header> {
        if self.responds && u16::from(self.free) >= Self::watermark(self.own) {
            self.responds = false;
            return Some(self.header(Kind::Cts));
        }
        if self.available() < self.low && !self.requested {
            self.requested = true;
            return Some(self.header(Kind::Rts));
        }
        None
    }

    /// The header of a packet that is not data.
    #[must_use]
    pub const fn header(&self, kind: Kind) -> Header {
        Header { kind, sequence: self.next, expected: self.expected, credits: self.free }
    }

    /// A packet has come: data takes a receive, which is to be posted again ([`Credits::posted`]).
    ///
    /// # Errors
    /// The other side breaks the rules.
    pub fn receive(&mut self, header: Header) -> Result<(), CreditViolation> {
        if header.sequence != self.expected {
            let (found, due) = (header.sequence, self.expected);
            let number = |sequence: Sequence| sequence.since(Sequence::default());
            return Err(CreditViolation::Sequence { found: number(found), due: number(due) });
        }
        match header.kind {
            Kind::Data if self.free == 0 => return Err(CreditViolation::NoCredit),
            Kind::Data => {
                self.free -= 1;
                self.expected = self.expected.plus(1);
            }
            Kind::Rts if self.responds => return Err(CreditViolation::Rts),
            Kind::Rts => self.responds = true,
            Kind::Cts if !self.requested => return Err(CreditViolation::Cts),
            Kind::Cts => self.requested = false,
            Kind::Hello | Kind::Accept | Kind::Refuse | Kind::Ready => {}
        }
        self.update(header)
    }

    /// Takes over what a packet reports of the other side's receives.
    fn update(&mut self, header: Header) -> Result<(), CreditViolation> {
        let in_flight = self.next.since(header.expected);
        if in_flight > self.next.since(self.acknowledged) {
            return Err(CreditViolation::Expected(in_flight));
        }
        // It was granted up to `limit` before, and may not take that back.
        let least = self.limit.since(header.expected);
        let found = header.credits;
        if u16::from(found) < least || found > self.theirs {
            return Err(CreditViolation::Grant { found, least, most: self.theirs });
        }
        self.acknowledged = header.expected;
        self.limit = header.expected.plus(found.into());
        Ok(())
    }

    /// The receive of a packet of data is posted again.
    pub fn posted(&mut self) {
        self.free = self.free.saturating_add(1).min(self.own);
    }
}

#[cfg(test)]
mod tests;
