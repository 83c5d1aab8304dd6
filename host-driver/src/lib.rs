//! The driver of the Viaduct NIC, in user space.
//!
//! | module | what |
//! |---|---|
//! | [`HardwarePort`] | what VIPL is opened on: [`port::ViPort`] on a NIC |
//! | [`nic`] | bring-up, and what all users of a NIC share |
//! | [`peer`] | channels to other nodes, over which connections are agreed on ([`port::connection`]) |
//! | [`event`], [`doorbell`] | the data path: completions, doorbells |
//! | [`tpt`], [`vi`] | registered memory; numbers of VIs, tags, domains |
//! | [`admin`] | the admin ring |
//! | [`observer`] | what a device says of itself, also while another program has it |
//! | [`presence`] | whether the card is still there |
//! | [`address`] | host addresses of nodes |
//! | [`obstacle`] | what keeps a program from a card |
//! | [`bus`] | how a device is reached: registers, memory, interrupts, time |
//! | [`sync`] | locks |
//!
//! Above is `vipl`; below is a [`bus::Bus`]: a simulated device of this process (`cosim`), one that
//! another process serves ([`bus::vfio_user`]), or a PCIe card ([`bus::vfio`]).

pub mod address;
pub mod admin;
pub mod bus;
pub mod doorbell;
pub mod error;
pub mod event;
mod hardware;
pub mod nic;
pub mod observer;
pub mod obstacle;
pub mod peer;
pub mod presence;
pub mod sync;
pub mod tpt;
pub mod vi;

pub use error::{Error, Result};
pub use hardware::HardwarePort;
pub use port::{memory as dma, process};
