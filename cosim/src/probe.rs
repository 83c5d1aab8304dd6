//! What crosses the pins of a NIC, as TLPs and frames with the cycles of their first and last
//! beats.
//!
//! A probe is off unless somebody asks for it: [`crate::rtl::RtlNic::attach_probe`] for the RTL,
//! [`tap::Tap`] for a device without pins.

pub mod tap;

use crate::root_complex::{DevicePins, HostPins, byte_range};
use nic_model::device::Beat;
use nic_regs::frame::{HEADER_BEATS, Header};
use nic_regs::tlp::{self, Completion, Request};
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

/// Watches the pins of the RTL.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    probe: Probe,
    cq: Stream,
    cc: Stream,
    rq: Stream,
    rc: Stream,
    link: LinkStreams,
}

impl Watch {
    pub(crate) fn probe(&self) -> Probe {
        self.probe.clone()
    }

    /// The host port in one cycle.
    pub(crate) fn host(&mut self, now: u64, host: &HostPins, device: &DevicePins) {
        if host.cq_valid
            && device.cq_ready
            && let Some((head, first)) = self.cq.beat(now, host.cq_data, host.cq_last)
        {
            let request = Request::from_beats([head[0], head[1]]);
            let offset = byte_range(&request).0;
            let write = What::BarWrite { bar: host.cq_bar, offset };
            let what = if request.write { write } else { What::BarRead };
            self.probe.add(Record { first, last: now, what });
        }
        if device.cc_valid
            && let Some((_, first)) = self.cc.beat(now, device.cc_data, device.cc_last)
        {
            self.probe.add(Record { first, last: now, what: What::BarCompletion });
        }
        if device.rq_valid
            && host.rq_ready
            && let Some((head, first)) = self.rq.beat(now, device.rq_data, device.rq_last)
        {
            self.probe.add(Record { first, last: now, what: request(head) });
        }
        if host.rc_valid
            && let Some((head, first)) = self.rc.beat(now, host.rc_data, host.rc_last)
        {
            self.probe.add(Record { first, last: now, what: completion(head) });
        }
    }

    /// The link in one cycle.
    pub(crate) fn link(&mut self, now: u64, sent: Option<Beat>, received: Option<Beat>) {
        if let Some(beat) = received {
            self.link.received(&self.probe, now, beat);
        }
        if let Some(beat) = sent {
            self.link.sent(&self.probe, now, beat);
        }
    }
}

fn request(head: [u64; HEADER_BEATS]) -> What {
    let request = Request::from_beats([head[0], head[1]]);
    let (address, end) = byte_range(&request);
    let bytes = end.saturating_sub(address);
    if request.write {
        What::Write { address, bytes }
    } else {
        What::Read { tag: request.tag, bytes }
    }
}

fn completion(head: [u64; HEADER_BEATS]) -> What {
    let header = Completion::from_beats([head[0], head[1]]);
    let carried = (4 * header.length_dw).saturating_sub(u16::from(header.lower_address & 3));
    let end = header.status != tlp::STATUS_OK || header.byte_count <= carried;
    What::Completion { tag: header.tag, end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_an_answer_are_told_from_its_end() {
        let whole = Completion {
            data: true,
            length_dw: 16,
            byte_count: 64,
            tag: 3,
            ..Completion::default()
        };
        let head = |c: Completion| [c.to_beats()[0], c.to_beats()[1], 0];
        assert_eq!(completion(head(whole)), What::Completion { tag: 3, end: true });
        let piece = Completion { byte_count: 128, ..whole };
        assert_eq!(completion(head(piece)), What::Completion { tag: 3, end: false });
        let failed = Completion { data: false, status: tlp::STATUS_ABORT, ..piece };
        assert_eq!(completion(head(failed)), What::Completion { tag: 3, end: true });
    }

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
