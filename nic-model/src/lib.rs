//! The behavioural model of the NIC: the contract of `docs/contract.md`, written as software.
//!
//! [`Model`] is the whole device behind the trait [`Device`](device::Device). It is a reading of
//! the contract that is independent of the RTL: order and final state are those of the contract,
//! cycles are only plausible. One call of `step` is one cycle: every engine does at most one unit
//! of work (a command, a frame, a beat), host reads answer at once. It has no thread, clock or
//! randomness of its own.
//!
//! The engines are structs that can be used one by one, each with what it needs as arguments; a
//! block's testbench takes one as its reference. They are layers: a module uses those above it in
//! this table, and [`Model`] only joins them.
//!
//! | module | contract | what |
//! |---|---|---|
//! | [`device`] | | the seams: `Device`, `HostBus`, `Link` |
//! | [`frame`] | | frames to beats and back, CRC-32 |
//! | [`trace`] | | what a test can watch |
//! | [`link`] | | a wire between two devices, with faults |
//! | [`counter`], [`context`] | 9 | counters, error log, stamps, observer; the services of a cycle |
//! | [`tpt`], [`desc`] | 3 | the region table; descriptors as values |
//! | [`vi`] | 6 | VI states, work queues, pending control frames, the ready ring |
//! | [`event`], [`vector`] | 10, 7.8 | event queues, messages to them; MSI-X vectors, moderation |
//! | [`work_queue`] | 2, 3, 6 | descriptors posted, fetched, checked, completed; VIs stopped |
//! | [`doorbell`] | 2 | token, event and push doorbells |
//! | [`send`] | 4, 11, 12 | frames out of descriptors, pending control frames, answers to reads |
//! | [`staging`], [`recv`] | 5, 11, 12 | accepted frames into descriptors and regions |
//! | `channel` | 7 | opening, acceptance, retransmission, credits, pool, keepalive |
//! | [`admin`] | 1 | commands as values; the admin ring |
//! | `csr` | 1, 9 | registers, reset |
//! | `nic` | | [`Model`]: the step, the order of the engines |
#![forbid(unsafe_code)]

pub mod admin;
pub mod context;
pub mod counter;
pub mod desc;
pub mod device;
pub mod doorbell;
pub mod event;
pub mod frame;
pub mod link;
pub mod recv;
pub mod send;
pub mod staging;
pub mod tpt;
pub mod trace;
pub mod vector;
pub mod vi;
pub mod work_queue;

mod bits;
mod channel;
mod csr;
mod nic;

pub use nic::Model;

#[cfg(test)]
mod tests;
