//! The probe of the RTL: what its pins show in each cycle.

use super::{LinkStreams, Probe, Record, Stream, What};
use crate::root_complex::{DevicePins, HostPins, byte_range};
use nic_model::device::Beat;
use nic_regs::frame::HEADER_BEATS;
use nic_regs::tlp::{self, Completion, Request};

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
    fn segments_of_an_answer_are_distinguished_from_its_end() {
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
}
