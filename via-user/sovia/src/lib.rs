//! SOVIA: stream sockets over VIA, at user level (Kim et al., 2003; Shah et al., 1999).
//!
//! The parts, each above the one before:
//!
//! | | |
//! |---|---|
//! | [`packet`] | what a packet is for |
//! | [`policy`] | the settings: windows, acknowledgements, combining |
//! | [`state`] | the states of a connection |
//! | [`engine`] | one side of a connection, without input and output |
#![forbid(unsafe_code)]

pub mod engine;
mod flow;
pub mod packet;
pub mod policy;
pub mod state;

pub use engine::{Engine, Offer, Packet, Received, Violation};
pub use packet::{Header, Kind};
pub use policy::{FlowControl, Policy};
pub use state::State;
