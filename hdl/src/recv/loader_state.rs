//! States of the loader.

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
