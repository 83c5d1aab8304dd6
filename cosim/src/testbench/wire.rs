//! The wire between two nodes, with what they sent, and frames that nobody sent.

use std::collections::VecDeque;

use crate::simulation::network::Network;
use nic_model::device::Beat;
use nic_model::link::Wire;
use nic_regs::frame::{Header, Type};

/// A frame seen on the wire.
pub type Frame = Vec<u64>;

/// A wire, and what the nodes sent.
#[derive(Debug)]
pub(super) struct ObservedWire {
    wire: Wire,
    /// Whole frames, by node.
    pub(super) sent: [Vec<Frame>; 2],
    /// Beats of the frame that a node has sent in part.
    pub(super) current: [Frame; 2],
    /// Beats that nobody sent, for each node.
    pub(super) forged: [VecDeque<Beat>; 2],
    /// First beat of the frame that a node has received a part of.
    arriving: [Option<u64>; 2],
    /// A beat was sent or received, of a frame that is more than an acknowledgement: those go on for ever, if
    /// there is keepalive.
    busy: bool,
}

impl ObservedWire {
    pub(super) fn new(wire: Wire) -> Self {
        Self {
            wire,
            sent: Default::default(),
            current: Default::default(),
            forged: Default::default(),
            arriving: [None; 2],
            busy: false,
        }
    }
}

/// Whether the first beat of a frame is that of an acknowledgement.
const fn is_ack(first: u64) -> bool {
    Header::from_beats([first, 0, 0]).kind == Type::Ack as u8
}

impl Network for ObservedWire {
    fn ready(&self, port: usize, now: u64) -> bool {
        self.wire.ready(port, now)
    }

    fn send(&mut self, port: usize, now: u64, beat: Beat) {
        self.current[port].push(beat.data);
        self.busy |= !is_ack(self.current[port][0]);
        if beat.last {
            self.sent[port].push(std::mem::take(&mut self.current[port]));
        }
        Network::send(&mut self.wire, port, now, beat);
    }

    fn receive(&mut self, port: usize, now: u64) -> Option<Beat> {
        // A forged frame does not begin within another one.
        if self.arriving[port].is_none()
            && let Some(beat) = self.forged[port].pop_front()
        {
            self.busy = true;
            return Some(beat);
        }
        let beat = Network::receive(&mut self.wire, port, now)?;
        let first = self.arriving[port].unwrap_or(beat.data);
        self.busy |= !is_ack(first);
        self.arriving[port] = (!beat.last).then_some(first);
        Some(beat)
    }

    fn take_busy(&mut self) -> bool {
        std::mem::take(&mut self.busy)
    }
}
