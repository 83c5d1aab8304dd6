//! The vfio-user protocol, version 0.0, for both ends: the messages ([`protocol`]) and their way over
//! a UNIX socket ([`socket`]).
//!
//! The client is `host_driver::bus::vfio_user`, the server `cosim::serve`. What only one end needs
//! is there. Source: the vfio-user specification of QEMU 10.1 (`docs/interop/vfio-user.rst`);
//! `docs/simulator.md` section 6 has what this server adds.

pub mod protocol;
pub mod socket;
