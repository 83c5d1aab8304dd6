//! LANE: IP over VIA, the papers' way for programs that use the kernel's TCP (Figure 2(b) of "SOVIA:
//! a user-level Sockets layer over Virtual Interface Architecture").
//!
//! ```text
//!   program ─ socket ─ kernel's TCP/IP ─ TUN device       TUN device ─ kernel's TCP/IP ─ program
//!                                            │                │
//!                                          Lane ─── VIPL ─── Lane
//! ```
//! The parts, each above the one before:
//!
//! | | |
//! |---|---|
//! | [`network`] | the addresses of a node, and what is broadcast |
//! | [`packet`] | what is read of an IP packet |
//! | [`hello`] | the first message of each side of a connection |
//! | [`sequence`] | numbers of packets, which show lost ones |
//! | [`counters`] | what was carried, and dropped why |
//! | [`table`] | which nodes there are, connected or not, and their addresses |
//! | `link` | a connection: VI and memory |
//! | [`Lane`], `carry`, `connect` | the threads: packets and completions; connections |
//! | [`Tun`] | the network device of the kernel |
//!
//! A lane needs nothing of a device but VIPL, so it runs on each.

mod carry;
mod connect;
pub mod counters;
mod error;
pub mod hello;
mod lane;
mod link;
pub mod network;
pub mod packet;
pub mod sequence;
pub mod table;
mod tun;

pub use counters::{Counters, Drop};
pub use error::{Error, Result};
pub use lane::{Config, Event, Lane, Report};
pub use network::{BadNetwork, Network, Networks};
pub use table::{Conflict, Host};
pub use tun::{Tun, TunError};
