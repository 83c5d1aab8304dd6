//! The vfio-user protocol, version 0.0, for both ends: the messages ([`protocol`]), their way over
//! a UNIX socket ([`socket`]), and what makes a socket trusted ([`trust`]).
//!
//! The client is `host_driver::bus::vfio_user`, the server `cosim::serve`. What only one end needs
//! is there. Source: the vfio-user specification of QEMU 10.1 (`docs/interop/vfio-user.rst`);
//! `docs/simulator.md` section 6 has what this server adds.

pub mod protocol;
pub mod socket;
pub mod trust;

use std::path::{Path, PathBuf};

/// The folder in which a server puts its sockets and programs look for them, unless they are given
/// another: `viaduct` in `$XDG_RUNTIME_DIR`, or a folder of this user in the folder of temporary
/// files.
#[must_use]
pub fn run_time_folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => Path::new(&folder).join("viaduct"),
        None => {
            let user = rustix::process::geteuid().as_raw();
            std::env::temp_dir().join(format!("viaduct-{user}"))
        }
    }
}
