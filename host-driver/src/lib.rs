//! The driver of the Viaduct NIC, in user space.
//!
//! | module | what |
//! |---|---|
//! | [`port`] | the seam to VIPL, and its implementation on a NIC |
//! | [`nic`] | bring-up, and what all users of a NIC share |
//! | [`connection`], [`peer`] | connection management over messages; channels to other nodes |
//! | [`work_queue`], [`event`], [`doorbell`] | the data path: descriptors, completions, doorbells |
//! | [`tpt`], [`vi`] | registered memory; numbers of VIs, tags, domains |
//! | [`admin`] | the admin ring |
//! | [`presence`] | whether the card is still there |
//! | [`bus`], [`dma`] | how a device is reached: registers, memory, interrupts, time |
//!
//! Above is `vipl`; below is a PCIe device, or a simulated one in this process (`cosim`).

pub mod admin;
mod barrier;
pub mod bus;
pub mod connection;
pub mod dma;
pub mod doorbell;
pub mod error;
pub mod event;
pub mod gate;
pub mod mapped;
pub mod nic;
pub mod numbers;
pub mod peer;
pub mod port;
pub mod presence;
pub mod process;
pub mod sync;
pub mod tpt;
pub mod vi;
pub mod work_queue;

pub use error::{Error, Result};
