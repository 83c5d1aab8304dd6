//! Leaves: parts written by hand in Verilog (`Verilog::Custom`), each with a Rust model of the same
//! cycle behaviour.
//!
//! A leaf exists only where RustHDL expresses the thing badly: memories that must infer to a
//! certain kind of RAM, wide XOR equations, carry-chain priority logic. Each stays under 60 lines
//! of Verilog, and the differential test compares every output with the model on every cycle,
//! including outputs that carry no meaning at that time.
//!
//! | leaf | what | state |
//! |---|---|---|
//! | [`SdpRam`] | block RAM, one write port, one registered read port | contents |
//! | [`SdpRam2`] | the same with two read ports (two copies) | contents |
//! | [`LutRam`] | LUT RAM, combinational read | contents |
//! | [`Fifo`] | first-word-fall-through FIFO, LUT RAM or block RAM by depth | yes |
//! | [`Skid`] | two-entry valid/ready buffer, both directions registered | yes |
//! | [`RoundRobin`] | fair arbiter | last winner |
//! | [`FirstOne`] | index of the lowest set bit | none |
//! | [`Number`] | a constant whose value is in its type | none |
//! | [`Crc32Step`] | CRC-32 over one 64-bit beat | none |

mod arbiter;
mod crc32;
mod fifo;
mod number;
mod priority;
mod ram;
mod skid;

pub use arbiter::RoundRobin;
pub use crc32::Crc32Step;
pub use fifo::Fifo;
pub use number::Number;
pub use priority::FirstOne;
pub use ram::{LutRam, SdpRam, SdpRam2};
pub use skid::Skid;
