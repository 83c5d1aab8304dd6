//! Why there is no such node.

use std::io;

use super::address::Address;

/// Result of opening a node.
pub type Result<T> = core::result::Result<T, Error>;

/// Why a node cannot be opened.
#[derive(Debug, thiserror::Error)]
#[expect(clippy::error_impl_error, reason = "the module's one error type, see its Result")]
pub enum Error {
    /// The address is none that a node can have.
    #[error("{address} is no address of a node: {why}")]
    Address {
        /// It.
        address: Address,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another program has the address.
    #[error(
        "UDP address {address} is in use by another program: give another port (udp:IP:PORT), or port 0 for a free one"
    )]
    InUse {
        /// It.
        address: Address,
    },
    /// No interface of this computer has the address.
    #[error(
        "no interface of this computer has the address {address}: `ip address` lists those that there are"
    )]
    NotHere {
        /// It.
        address: Address,
    },
    /// There is no such interface.
    #[error("there is no network interface `{name}`: `ip link` lists those that there are")]
    NoInterface {
        /// Its name.
        name: String,
    },
    /// The interface is not Ethernet, or down.
    #[error("network interface `{name}` is of no use: {why}")]
    BadInterface {
        /// Its name.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// There is no file of packets; the text names it.
    #[error("no file of packets: {0}")]
    Capture(#[source] io::Error),
    /// The program may not send raw frames.
    #[error(
        "raw Ethernet frames on `{name}` need the capability CAP_NET_RAW ({why}): run the program as root, or give it \
         to it (`setcap cap_net_raw+ep PROGRAM`), or use udp:"
    )]
    NoRights {
        /// The interface.
        name: String,
        /// What the kernel says.
        why: io::Error,
    },
    /// The system lacks something.
    #[error("{what}: {why}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        why: io::Error,
    },
}

impl Error {
    /// Of a system call.
    pub(super) fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |why| Self::System { what, why }
    }
}

/// Why a node is not reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReachable {
    /// The bytes are none of its network's.
    #[error("{0:02x?} is no host address of this network")]
    NoAddress(Vec<u8>),
    /// There is no path.
    #[error("{0} cannot be reached: {1}")]
    NoPath(Address, io::Error),
}
