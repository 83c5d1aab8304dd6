//! The behavioural model of the NIC: the contract of `docs/contract.md`, written as software.
//!
//! [`Model`] is the whole device behind the trait [`Device`](device::Device). It is a reading of
//! the contract that is independent of the RTL: order and final state are those of the contract,
//! cycles are only plausible. One call of `step` is one cycle: every engine does at most one unit
//! of work (a command, a frame, a beat), host reads answer at once. It has no thread, clock or
//! randomness of its own.
//!
//! | module | contract | what |
//! |---|---|---|
//! | [`device`] | | the seams: `Device`, `HostBus`, `Link` |
//! | `nic` | | [`Model`]: the step, the order of the engines |
//! | `csr`, `counter` | 1, 9 | registers, MSI-X table, reset; counters and the error log |
//! | `admin` | 1 | the admin ring and its commands |
//! | `doorbell`, `push` | 2 | token, event and push doorbells |
//! | `desc`, `tpt` | 3 | descriptors: reached, checked, popped, completed; the region table |
//! | `send` | 4 | the ready ring, frames out of descriptors, owed control frames |
//! | `recv` | 5 | staged frames into descriptors |
//! | `rdma` | 11, 12 | RDMA writes and reads, at their target and at the asker |
//! | `vi` | 6 | VI states, stopping |
//! | `channel` | 7 | opening, acceptance, retransmission, credits, pool, keepalive |
//! | `message` | 7.8 | out-of-band messages |
//! | `event`, `vector` | 10 | event queues; MSI-X vectors and their moderation |
//! | `host_bus` | 9 | host reads and writes, with their counters |
//! | [`frame`] | | frames to beats and back, CRC-32 |
//! | [`link`] | | a wire between two devices, with faults |
//! | [`trace`] | | what a test or lockstep can watch |
#![forbid(unsafe_code)]

pub mod device;
pub mod frame;
pub mod link;
pub mod trace;

mod admin;
mod bits;
mod channel;
mod counter;
mod csr;
mod desc;
mod doorbell;
mod event;
mod host_bus;
mod message;
mod nic;
mod push;
mod rdma;
mod recv;
mod send;
mod tpt;
mod vector;
mod vi;

pub use nic::Model;

#[cfg(test)]
mod tests;
