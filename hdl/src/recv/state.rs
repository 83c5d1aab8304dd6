//! States of the receive engine.

use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum RecvState {
    /// Waits for a frame or a fence; a frame's GET starts here.
    Idle,
    /// Reads the VI's context.
    Get,
    /// Waits for the RDMA header, if there is one, until the status before is in the queue, and for
    /// the descriptor cache's answer; the comparisons of frame, VI and descriptor are registered.
    Match,
    /// Acts on them; the payload starts.
    Choose,
    /// Asks whether the range of an RDMA may be touched; the payload starts.
    Range,
    /// Waits until the data of RDMA writes is accepted: one is over, or the peer reads.
    Over,
    /// Waits for the descriptor of a read whose answer this is; the payload starts.
    Reply,
    /// Waits for the descriptor.
    Resolve,
    /// ACKED or ANSWER is under way.
    Acked,
    /// Waits until the message, the descriptor or the VI is dealt with; gives the frame's memory back.
    Close,
    /// Waits until the message is delivered or refused.
    Message,
    /// Gives the memory of a frame back that nothing has to be closed for.
    Release,
}
