//! Bad input on one connection while another one goes on.

use nic_regs::desc::status::DESC_FLUSHED_ERROR;
use tests::{Buffer, DeviceKind, LONG, Node, Pair, error_bits};
use vipl::{Descriptor, ErrorCode, Reliability, Vi, ViState};

/// A pair, two VIs under test, and two that must go on whatever happens to the others.
pub(crate) struct Case {
    pub(crate) pair: Pair,
    pub(crate) a: Vi,
    pub(crate) b: Vi,
    pub(crate) bystanders: (Vi, Vi),
    pub(crate) level: Reliability,
}

impl Case {
    pub(crate) fn new(kind: DeviceKind, level: Reliability) -> Self {
        let pair = Pair::new(kind);
        let bystanders = pair.connected(Reliability::Reception);
        let (a, b) = pair.connected(level);
        Self { pair, a, b, bystanders, level }
    }

    pub(crate) const fn reliable(&self) -> bool {
        !matches!(self.level, Reliability::Unreliable)
    }

    /// The VIs are as they must be at the end, the bystanders work, and so do the VIs after a new
    /// connection.
    pub(crate) fn finish(self, a_errors: &[ErrorCode], b_errors: &[ErrorCode]) {
        let pair = &self.pair;
        pair.settle();
        let codes = |node: &Node, vi: &Vi| {
            let errors = node.errors();
            assert!(errors.iter().all(|(number, _)| *number == vi.number()));
            errors.into_iter().map(|(_, code)| code).collect::<Vec<_>>()
        };
        assert_eq!(codes(&pair.a, &self.a), a_errors, "{:?} a", self.level);
        assert_eq!(codes(&pair.b, &self.b), b_errors, "{:?} b", self.level);
        let (c, d) = &self.bystanders;
        pair.assert_works(c, d);
        let state = if self.reliable() { ViState::Error } else { ViState::Connected };
        assert_eq!(
            (self.a.query().state, self.b.query().state),
            (state, state),
            "{:?}",
            self.level
        );
        for vi in [&self.a, &self.b] {
            vi.disconnect().unwrap();
            while let Err(e) = vi.recv_done() {
                let Some(descriptor) = e.descriptor else { break };
                assert_eq!(descriptor.status().errors(), DESC_FLUSHED_ERROR);
            }
        }
        pair.settle();
        pair.connect(&self.a, &self.b);
        pair.assert_works(&self.a, &self.b);
        pair.assert_no_stray_access();
    }

    /// Posts a bad send before a good one, with two receives there.
    pub(crate) fn bad_send(self, bad: &Descriptor, bits: u32) {
        let good = Buffer::new(&self.pair.a, 16);
        let recvs = [0, 1].map(|_| Buffer::new(&self.pair.b, 16));
        recvs.iter().for_each(|buffer| self.b.post_recv(&buffer.descriptor).unwrap());
        self.a.post_send(bad).unwrap();
        self.a.post_send(&good.descriptor).unwrap();
        assert_eq!(error_bits(&self.a.send_wait(LONG)), bits, "{:?}", self.level);
        if self.reliable() {
            // The descriptor's own status says it; the peer learns that it was refused.
            assert_eq!(error_bits(&self.a.send_wait(LONG)), DESC_FLUSHED_ERROR);
            self.pair.settle();
            assert_eq!(error_bits(&self.b.recv_wait(LONG)), DESC_FLUSHED_ERROR);
            assert_eq!(error_bits(&self.b.recv_wait(LONG)), DESC_FLUSHED_ERROR);
            self.finish(&[], &[ErrorCode::ConnectionLost]);
        } else {
            self.a.send_wait(LONG).unwrap();
            self.b.recv_wait(LONG).unwrap();
            self.finish(&[], &[]);
        }
    }
}
