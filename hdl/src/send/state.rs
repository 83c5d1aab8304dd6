//! States of the send engine.

use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum SendState {
    /// Waits for work, a message or a fence.
    Idle,
    /// Takes a VI from the ring.
    Take,
    /// Reads its context.
    Get,
    /// Chooses what to do for it.
    Choose,
    /// Waits for the descriptor engine.
    Resolve,
    /// Waits for the check of the length.
    Check,
    /// Acts on it; waits for the frame's length.
    Size,
    /// Waits for flags and word; asks the pool.
    Header,
    /// Waits for the pool and the payload.
    Frame,
    /// Waits for the pop before the last frame.
    Pop,
    /// Waits until the channel has the frame.
    Commit,
    /// Waits until its chunks are given back.
    Abort,
    /// Stays with the VI if there is nothing else to do.
    Stay,
    /// Reads its context again.
    Again,
    /// Acts on it.
    Compare,
    /// Gives the VI back to the ring.
    Save,
    /// Waits for the bus address of the acknowledged descriptor.
    Reach,
    /// Chooses how to end a failed descriptor.
    Fail,
    /// Waits for the end of the descriptor.
    Retire,
    /// Clears an owed frame.
    Sent,
    /// Waits for the end of a message.
    Message,
}
