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
//! | [`wakeup`] | what the sides say to each other first |
//! | `pool`, `slots` | memory of connections; of one |
//! | `connection` | engine, memory and VI, for any number of threads |
//! | `keeper` | the library's thread, which ends connections |
//! | [`preload`] | how `viaduct run` and `libsovia.so` agree |
//! | [`Device`], [`Listener`], [`Stream`] | what programs use, in the manner of `std::net` |
//!
//! A stream needs nothing of a device but VIPL, so it runs on each.
#![forbid(unsafe_code)]

mod connection;
mod device;
pub mod engine;
mod error;
mod flow;
mod keeper;
mod listener;
pub mod packet;
pub mod policy;
mod pool;
pub mod preload;
mod slots;
pub mod state;
mod stream;
pub mod wakeup;

pub use connection::Ready;
pub use device::Device;
pub use engine::{Engine, Offer, Packet, Received, Violation};
pub use error::{Error, Result};
pub use listener::Listener;
pub use packet::{Header, Kind};
pub use policy::{FlowControl, Policy};
pub use state::State;
pub use stream::Stream;
