//! The link's two ends: beats to frames and frames to beats. What the frames mean is
//! [`crate::channel`]'s business.
pub mod out;
pub mod rx;
pub mod tx;

pub use rx::LinkRx;
pub use tx::LinkTx;
