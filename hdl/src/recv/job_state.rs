//! States of the prefetcher's jobs.

use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum JobState {
    /// Empties a row a cycle.
    Clear,
    /// The engine is at a fence.
    Paused,
    /// Waits for work.
    Idle,
    /// Finds the VI's row.
    Find,
    /// If it is still its own: is something to be fetched?
    Row,
    /// Takes a row, if it may; else looks at the next one.
    Claim,
    /// Reads the VI's context.
    Look,
    /// Compares it with what is cached.
    Weigh,
    /// Orders a read.
    Order,
    /// Waits for the frame's.
    Run,
}
