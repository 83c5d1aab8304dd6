//! RPC directly on VIPL: requests and answers of any bytes, between a server at a named endpoint and any
//! number of clients ("High Performance Sockets and RPC over Virtual Interface Architecture", 4).
//!
//! The parts, each above the one before:
//!
//! | | |
//! |---|---|
//! | [`header`] | the immediate data of packets, and what is in front of a message |
//! | [`credits`] | flow control of one side, without input and output |
//! | [`settings`] | credits, MTU, longest message |
//! | [`negotiate`] | the three trips that begin a connection, without input and output |
//! | [`error`] | what can go wrong |
//! | [`Device`] | a NIC |
//! | [`buffers`] | the cache of registered buffers in which messages are marshalled |
//! | `slots` | descriptors and receive buffers of a connection |
//! | `inbound` | a message that arrives in fragments |
//! | `connection` | all of these, and a VI |
//! | [`Client`] | a call: a send, and ReceiveDirect |
//! | [`Peer`], [`Request`], [`Server`] | ReceiveAny: one completion queue for all clients |
//! | `tarpc` | both ends as transports of the crate `tarpc`, behind the feature of that name |
//!
//! It needs nothing of a device but VIPL, so it runs on each. See `docs/rpc.md`.
#![forbid(unsafe_code)]

mod accept;
pub mod buffers;
mod client;
mod connection;
pub mod credits;
mod device;
pub mod error;
pub mod header;
mod inbound;
pub mod negotiate;
mod peer;
mod request;
mod server;
pub mod settings;
mod slots;
#[cfg(feature = "tarpc")]
pub mod tarpc;
mod waiting;

pub use buffers::{Buffer, BufferCounters};
pub use client::Client;
pub use device::Device;
pub use error::{Error, Result, Violation};
pub use negotiate::Disagreement;
pub use peer::Peer;
pub use request::Request;
pub use server::{Event, Server};
pub use settings::Settings;
