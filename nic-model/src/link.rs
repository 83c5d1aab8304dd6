//! Links for a simulation: a wire between two devices, and faults on it.

mod fault;
mod wire;

pub use fault::{FaultCounts, Faults};
pub use wire::{Side, Wire, WireEnd};
