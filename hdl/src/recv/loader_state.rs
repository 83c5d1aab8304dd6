//! States and outcomes of the loader.

use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum LoadState {
    /// Waits for `start`.
    Idle,
    /// Goes to the successor of the last descriptor.
    Follow,
    /// Tells the reader where, or has Next read again.
    Seek,
    /// Waits until the read is out.
    Open,
    /// Waits for the resolver and the end of the read; puts the descriptor on the shelf.
    Parse,
    /// The renewed Next is known.
    Renewed,
}

/// How resolving ended; the order is that of the output `outcome`.
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
