//! A full-duplex wire: a beat a cycle each way, and a latency.

use std::collections::VecDeque;

use super::fault::{FaultCounts, Faults, Injector};
use crate::device::{Beat, Link};

/// An end of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one end.
    A = 0,
    /// The other end.
    B = 1,
}

impl Side {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// What is under way in one direction.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Beats with the cycles in which they arrive.
    flying: VecDeque<(u64, Beat)>,
    /// First cycle in which another beat may be put on the wire.
    free_at: u64,
    injector: Option<Injector>,
    /// The frame that a wire with faults has not got whole yet.
    partial: Vec<Beat>,
}

/// A point-to-point wire. A device gets its end with [`Wire::end`] for each step.
///
/// A wire with faults keeps each frame until it is whole, so its latency is longer by the frame.
#[derive(Clone, Debug)]
pub struct Wire {
    latency: u64,
    /// By the side that sends.
    lanes: [Lane; 2],
}

impl Wire {
    /// A wire with a latency in cycles.
    #[must_use]
    pub fn new(latency: u64) -> Self {
        Self { latency, lanes: [Lane::default(), Lane::default()] }
    }

    /// A wire with faults. Index 0 of each list is the direction from A to B.
    #[must_use]
    pub fn with_faults(latency: u64, faults: &Faults) -> Self {
        let mut wire = Self::new(latency);
        if faults.any() {
            for (direction, lane) in wire.lanes.iter_mut().enumerate() {
                lane.injector = Some(Injector::new(faults.clone(), direction));
            }
        }
        wire
    }

    /// An end of the wire.
    #[must_use]
    pub fn end(&mut self, side: Side) -> WireEnd<'_> {
        WireEnd { wire: self, side }
    }

    /// Whether the end takes a beat in this cycle.
    #[must_use]
    pub const fn is_ready(&self, side: Side, now: u64) -> bool {
        self.lanes[side as usize].free_at <= now
    }

    /// What went wrong with frames that `from` sent.
    #[must_use]
    pub fn fault_counts(&self, from: Side) -> FaultCounts {
        let injector = self.lanes[from as usize].injector.as_ref();
        injector.map_or_else(FaultCounts::default, Injector::counts)
    }

    /// Whether nothing is on the wire.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.lanes.iter().all(|lane| lane.flying.is_empty() && lane.partial.is_empty())
    }
}

/// One device's end of a [`Wire`].
#[derive(Debug)]
pub struct WireEnd<'a> {
    wire: &'a mut Wire,
    side: Side,
}

impl Link for WireEnd<'_> {
    fn ready(&self, now: u64) -> bool {
        self.wire.is_ready(self.side, now)
    }

    fn send(&mut self, now: u64, beat: Beat) {
        let latency = self.wire.latency;
        let lane = &mut self.wire.lanes[self.side as usize];
        let Some(injector) = &mut lane.injector else {
            lane.depart(now, latency, beat);
            return;
        };
        lane.partial.push(beat);
        if beat.last {
            let frames = injector.apply(std::mem::take(&mut lane.partial));
            for beat in frames.into_iter().flatten() {
                lane.depart(now, latency, beat);
            }
        }
    }

    fn receive(&mut self, now: u64) -> Option<Beat> {
        let lane = &mut self.wire.lanes[self.side.other() as usize];
        let &(arrival, beat) = lane.flying.front()?;
        if now < arrival {
            return None;
        }
        lane.flying.pop_front();
        Some(beat)
    }
}

impl Lane {
    fn depart(&mut self, now: u64, latency: u64, beat: Beat) {
        let at = self.free_at.max(now);
        self.free_at = at + 1;
        self.flying.push_back((at + latency, beat));
    }
}
