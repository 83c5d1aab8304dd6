//! States and outcomes of the descriptor engine.

use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum DescState {
    /// Waits for `start`.
    Idle,
    /// Asks the region table for the bus address.
    Reach,
    /// Cuts the first read to the region.
    Size,
    /// Asks for bytes of the descriptor.
    Read,
    /// Takes them.
    Data,
    /// Computes how many bytes SegCount needs.
    Need,
    /// Registers the format checks.
    Format,
    /// Acts on them.
    Rules,
    /// Any segment left?
    Segment,
    /// Waits for the segment's address.
    Beat0,
    /// Registers the address.
    Beat1,
    /// Registers handle and length.
    Beat2,
    /// Passes over a segment of length 0.
    Skip,
    /// Asks the region table for the segment.
    Lookup,
    /// Checks whether Next is of use.
    NextCheck,
    /// Asks the region table for Next.
    NextLookup,
    /// Tells the engine.
    Done,
}

/// How resolving ended; the order is that of the field `outcome`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All checks passed.
    Ok = 0,
    /// The descriptor cannot be reached.
    Descriptor = 1,
    /// The host port failed to read it.
    HostRead = 2,
    /// It is malformed.
    Format = 3,
    /// A segment's handle, bounds, tag or domain is wrong.
    Protection = 4,
}
