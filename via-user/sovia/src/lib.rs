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
//! | [`Address`], [`ToAddress`], `ports` | hosts and ports, what names them, who has which port |
//! | [`Device`], [`TcpListener`], [`TcpStream`] | what programs use, in the manner of `std::net` |
//! | `reactor` | wakes tasks whose streams have something |
//! | `tokio` | the same for tasks, in the manner of `tokio::net`; with the feature `tokio` |
//!
//! A stream needs nothing of a device but VIPL, so it runs on each.
#![forbid(unsafe_code)]

mod address;
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
mod ports;
pub mod preload;
#[cfg(feature = "tokio")]
mod reactor;
mod slots;
pub mod state;
mod stream;
mod to_address;
#[cfg(feature = "tokio")]
pub mod tokio;
pub mod wakeup;

pub use address::Address;
pub use connection::{Credits, Ready};
pub use device::Device;
pub use engine::{Engine, Offer, Packet, Received, Violation};
pub use error::{Error, Result};
pub use listener::{Incoming, TcpListener};
pub use packet::{Header, Kind};
pub use policy::{FlowControl, Policy};
pub use state::State;
pub use stream::TcpStream;
pub use to_address::ToAddress;
