//! States of the loader.

use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum LoadState {
    /// Waits for a read.
    Idle,
    /// Waits for the resolver; puts the descriptor in the descriptor cache, and goes on to the next one.
    Parse,
    /// Waits for Next, read again.
    Renewed,
    /// Waits for the end of the read, and until what it brought is offered.
    End,
    /// Waits for the end of a read that was in vain.
    Drop,
}
