//! States of the receive engine.

use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum RecvState {
    /// Waits for a frame or a fence.
    Idle,
    /// Chooses by the frame's type.
    Kind,
    /// Reads the VI's context.
    Get,
    /// Registers the comparisons of frame and VI.
    Match,
    /// Acts on them.
    Choose,
    /// Waits for the descriptor engine.
    Resolve,
    /// Registers the checks of the lengths.
    Check,
    /// Acts on them.
    Place,
    /// Waits for the payload.
    Scatter,
    /// The payload is placed.
    Placed,
    /// Call: SAVE.
    Save,
    /// Call: ACKED.
    Acked,
    /// Chooses how to end a failed descriptor or VI.
    Fail,
    /// Waits for the end of the descriptor.
    Retire,
    /// The frame does not continue its message: drops the rest of it.
    Gap,
    /// Waits until the event queue has the message.
    Message,
    /// Has the channel refuse the message.
    Refuse,
    /// Gives the frame's memory back.
    Release,
}
