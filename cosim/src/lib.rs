//! Co-simulation: the RTL, Verilated, beside the behavioural model.
//!
//! | module | what |
//! |---|---|
//! | [`root_complex`] | the host's end of the TLP stream, with seeded delays, splitting, reordering and errors |
//! | [`lockstep`] | the same random program on two kinds of device, compared |
//! | [`coverage`] | what the suites run of the Verilog |
//! | [`probe`] | what crosses the pins of a device, with cycles |
//! | [`serve`] | NICs that other programs reach over sockets |
//! | [`simulation`] | nodes, hosts, network and clock; its schedulers |
//! | [`testbench`] | two nodes without software, driven register by register |
//! | [`reference`](mod@reference) | the model's engines as the reference of a block's testbench |
//! | [`random`] | the seeded generator behind every random choice |
//! | `verilated` | any block of the RTL under Verilator (feature `rtl`) |
//! | `rtl` | the whole NIC as a [`nic_model::device::Device`] (feature `rtl`) |
//!
//! The RTL is here only with the feature `rtl`, which needs Verilator and a C++ compiler: `cargo
//! xtask setup`.

pub mod coverage;
pub mod lockstep;
pub mod probe;
pub mod random;
pub mod reference;
pub mod root_complex;
#[cfg(viaduct_nic)]
pub mod rtl;
pub mod serve;
pub mod simulation;
pub mod testbench;
#[cfg(feature = "rtl")]
pub mod verilated;
