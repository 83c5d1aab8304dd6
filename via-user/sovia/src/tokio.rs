//! Streams for tasks, in the manner of `tokio::net`.
//!
//! A call that would wait has its task woken by a thread of the library, one for each device, which sleeps
//! until the NIC has something. Nothing that a task has waited for is lost if it stops waiting: reads and
//! writes do all or nothing when they are polled.
//!
//! Not with [`crate::Policy::HANDLER`], whose thread for each stream would take the packets.

mod io;
mod listener;
mod split;
mod stream;

pub use listener::TcpListener;
pub use split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
pub use stream::TcpStream;
