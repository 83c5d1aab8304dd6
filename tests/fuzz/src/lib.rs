//! Bad input, sought by coverage: what another machine, another process or a program may hand to the
//! parts of Viaduct, as bytes (`docs/verification.md`, section 3).
//!
//! Each target is a function that takes any bytes and panics if an invariant is broken. `cargo test -p
//! fuzz` runs those in the tree (`corpus`, `regressions`), and a few thousand mutations of them;
//! `cargo xtask fuzz` looks for more with libFuzzer.
//!
//! | module | what is fed | to what |
//! |---|---|---|
//! | `frames` | frames of a peer | two models that are connected |
//! | `descriptors` | descriptors, doorbells | the same |
//! | `admin` | admin entries, accesses of the BARs | the same |
//! | `tlp` | TLPs of a device, accesses of BARs | the root complex |
//! | `vfio_user` | messages of a client | the server of a NIC |
//! | `connection` | messages of connection set-up | two connection managers |
//! | `datagrams` | packets of a network | a node of `udp:` |
//! | `streams` | headers of remote calls, of SOVIA, of LANE | their state machines |
//! | `nodes` | | these models, and what holds of them |
//! | `input` | | bytes read as choices |

mod admin;
mod connection;
mod datagrams;
mod descriptors;
mod frames;
mod input;
mod nodes;
mod streams;
mod tlp;
mod vfio_user;

use std::path::{Path, PathBuf};

/// What takes inputs.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is that of its folders.
    pub name: &'static str,
    /// Takes an input; panics if something is broken.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 8] = [
    Target { name: "frames", run: frames::frames },
    Target { name: "descriptors", run: descriptors::descriptors },
    Target { name: "admin", run: admin::admin },
    Target { name: "tlp", run: tlp::tlp },
    Target { name: "vfio_user", run: vfio_user::vfio_user },
    Target { name: "connection", run: connection::connection },
    Target { name: "datagrams", run: datagrams::datagrams },
    Target { name: "streams", run: streams::streams },
];

impl Target {
    /// The target of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }

    /// The folders of its inputs in the tree: those that reach different branches, and those that once
    /// failed. Either may be missing.
    #[must_use]
    pub fn folders(&self) -> [PathBuf; 2] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        ["corpus", "regressions"].map(|kind| root.join(kind).join(self.name))
    }
}
