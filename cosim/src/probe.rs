//! What crosses the pins of a NIC, as TLPs and frames with the cycles of their first and last
//! beats.
//!
//! A probe is off unless somebody asks for it: `rtl::RtlNic::attach_probe` for the RTL,
//! [`tap::Tap`] for a device without pins.

#[cfg(viaduct_nic)]
pub(crate) mod pins;
pub mod tap;

use nic_model::device::Beat;
use nic_regs::frame::{HEADER_BEATS, Header};
use std::sync::{Arc, Mutex, PoisonError};

/// A TLP or a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The host writes to a BAR.
    BarWrite {
        /// BAR.
        bar: u8,
        /// Offset of the first byte.
        offset: u64,
    },
    /// The host reads from a BAR.
    BarRead,
    /// The device answers such a read.
    BarCompletion,
    /// The device asks for host memory.
    Read {
        /// Names the request in its completions.
        tag: u8,
        /// Bytes asked for.
        bytes: u64,
    },
    /// Host memory arrives (the whole answer, or a piece of it).
    Completion {
        /// Of the request.
        tag: u8,
        /// Nothing of that request is to come any more.
        end: bool,
    },
    /// The device writes host memory.
    Write {
        /// First byte.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// A frame leaves.
    FrameOut(Header),
    /// A frame arrives.
    FrameIn(Header),
}

/// A TLP or a frame that crossed the pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Cycle of its first beat.
    pub first: u64,
    /// Cycle of its last beat.
    pub last: u64,
    /// What it was.
    pub what: What,
}

/// What a probe has seen. Clones are the same probe.
#[derive(Clone, Debug, Default)]
pub struct Probe(Arc<Mutex<Vec<Record>>>);

impl Probe {
    /// What was seen since the last call, in the order of the last beats.
    #[must_use]
    pub fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, record: Record) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }
}

/// The beats of one stream since the last packet ended.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    beats: usize,
    head: [u64; HEADER_BEATS],
    first: u64,
}

impl Stream {
    /// Takes a beat; with the last one, gives the packet's head and first cycle.
    fn beat(&mut self, now: u64, data: u64, last: bool) -> Option<([u64; HEADER_BEATS], u64)> {
        if self.beats == 0 {
            self.first = now;
        }
        if let Some(slot) = self.head.get_mut(self.beats) {
            *slot = data;
        }
        self.beats += 1;
        last.then(|| {
            let done = std::mem::take(self);
            (done.head, done.first)
        })
    }
}

/// The two directions of a link, from one end.
#[derive(Debug, Default)]
struct LinkStreams {
    out: Stream,
    incoming: Stream,
}

impl LinkStreams {
    fn sent(&mut self, probe: &Probe, now: u64, beat: Beat) {
        if let Some((head, first)) = self.out.beat(now, beat.data, beat.last) {
            probe.add(Record { first, last: now, what: What::FrameOut(Header::from_beats(head)) });
        }
    }

    fn received(&mut self, probe: &Probe, now: u64, beat: Beat) {
        if let Some((head, first)) = self.incoming.beat(now, beat.data, beat.last) {
            probe.add(Record { first, last: now, what: What::FrameIn(Header::from_beats(head)) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_the_cycles_of_its_ends() {
        let probe = Probe::default();
        let mut link = LinkStreams::default();
        let header = Header { kind: 1, length: 8, ..Header::default() };
        for (i, data) in header.to_beats().into_iter().chain([7, 8]).enumerate() {
            let beat = Beat { data, last: i == 4 };
            link.sent(&probe, 10 + 2 * i as u64, beat);
        }
        let record = Record { first: 10, last: 18, what: What::FrameOut(header) };
        assert_eq!((probe.take(), probe.take()), (vec![record], vec![]));
    }
}
