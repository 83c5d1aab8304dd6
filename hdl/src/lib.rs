//! The RTL of Viaduct, in RustHDL.
//!
//! Behaviour is written in RustHDL kernels; [`leaf`] holds the few parts that are hand-written
//! Verilog with a Rust model. A file has one block. `hdl/doc` has a page for each block of the NIC,
//! which describes its parts too; begin with `hdl/doc/top.md` and [`top`].
//!
//! # What is the design
//! The *emitted Verilog under Verilator* is the design. RustHDL's own simulator disagrees with it
//! on several expression classes (mixed operators without parentheses, casts of unnamed sums,
//! unsized literals), so it serves small unit tests only, and every small block runs the same random
//! stimulus in both (`cosim/tests/differential.rs`). Rules for kernels that follow from it:
//! - every sub-expression gets its own `Signal<Local, _>`; a cast takes a named signal, never an
//!   expression;
//! - shared numbers enter as `Constant<Bits<N>>` fields or [`leaf::Number`]s, never as a Rust
//!   `const`;
//! - comparisons are between equal, sized widths;
//! - field names are no Verilog or SystemVerilog keywords (`table`, `event`, `priority`, `bit`,
//!   `int`, `buf`, ...), and no port is called `next`, which RustHDL reads as the assignment half
//!   of a signal.
//!
//! # Clock and reset (decision 0003)
//! One clock, rising edge. Reset is synchronous and active high, and is sampled only by *control*
//! registers: valid and ready flags, state machines, pointers, counters, sticky faults. Data
//! registers have no reset; their valid flag guards them. A block uses plain `DFF`s, and ends its
//! kernel with
//! ```text
//! if self.reset.val() {
//!     self.state.d.next = State::Idle;
//!     self.valid.d.next = false;
//! }
//! ```
//! so that the reset overrides whatever stands above it. A flag that follows others by a cycle needs
//! none of its own where those have one: a reset lasts 16 cycles. Leaves with control registers have
//! a `reset` port and obey the same rule. Memories are zero at power-up and keep their contents over
//! a reset.
#![forbid(unsafe_code)]
// RustHDL's derives generate public methods and items without documentation.
#![allow(missing_docs)]
// RustHDL's `Signal`, `DFF` and interfaces do not all implement `Debug`, so blocks cannot derive
// it.
#![allow(missing_debug_implementations)]
// `#[hdl_gen]` re-emits kernel paths in full.
#![allow(unused_qualifications)]

pub mod admin;
pub mod anatomy;
mod blocks;
pub mod channel;
pub mod counter;
pub mod csr;
pub mod desc;
pub mod error_log;
pub mod event;
pub mod ifs;
pub mod leaf;
pub mod link;
pub mod pcie;
pub mod recv;
pub mod send;
pub mod top;
pub mod tpt;
pub mod vi;
