//! The driver of the Viaduct NIC, in user space.
//!
//! | module | what |
//! |---|---|
//! | [`HardwarePort`] | what VIPL is opened on: [`port::ViPort`] on a NIC |
//! | [`nic`] | bring-up, and what all users of a NIC share |
//! | [`connection`], [`peer`] | connection management over messages; channels to other nodes |
//! | [`event`], [`doorbell`] | the data path: completions, doorbells |
//! | [`tpt`], [`vi`] | registered memory; numbers of VIs, tags, domains |
//! | [`admin`] | the admin ring |
//! | [`presence`] | whether the card is still there |
//! | [`address`] | host addresses of nodes |
//! | [`bus`] | how a device is reached: registers, memory, interrupts, time |
//!
//! Above is `vipl`; below is a PCIe device, or a simulated one in this process (`cosim`).

pub mod address;
pub mod admin;
pub mod bus;
pub mod connection;
pub mod doorbell;
pub mod error;
pub mod event;
mod hardware;
pub mod mapped;
pub mod nic;
pub mod peer;
pub mod presence;
pub mod sync;
pub mod tpt;
pub mod vi;

pub use error::{Error, Result};
pub use hardware::HardwarePort;
pub use port::{memory as dma, process};
