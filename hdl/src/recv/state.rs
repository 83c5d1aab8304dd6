//! States of the receive engine.

use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum RecvState {
    /// Waits for a frame or a fence; a frame's GET starts here.
    Idle,
    /// Reads the VI's context.
    Get,
    /// Registers the comparisons of frame, VI and descriptor.
    Match,
    /// Acts on them; the payload starts.
    Choose,
    /// Waits for the descriptor.
    Resolve,
    /// Compares the lengths; the last chance to take the payload back.
    Check,
    /// Call: POP.
    Pop,
    /// Waits for Next, read again.
    Reread,
    /// Call: SAVE.
    Save,
    /// Call: ACKED.
    Acked,
    /// Chooses how to end a failed descriptor or VI.
    Fail,
    /// Waits until payload and status are accepted and the completion is announced.
    Wait,
    /// Call: STOP.
    Stop,
    /// The frame does not continue its message: drops the rest of it.
    Gap,
    /// Waits until the event queue has the message.
    Message,
    /// Has the channel refuse the message.
    Refuse,
    /// Gives the frame's memory back.
    Release,
}
