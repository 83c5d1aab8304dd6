//! What can go wrong below VIPL.

use std::path::PathBuf;
use std::sync::Arc;

use nic_regs::admin::AdminStatus;

use crate::obstacle::Obstacle;

/// Result of the driver's operations.
pub type Result<T> = core::result::Result<T, Error>;

/// An error of the driver, of a bus or of a port.
#[expect(clippy::error_impl_error, reason = "the crate's one error type, see its Result")]
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// What is not this driver's alone: arguments, numbers, memory.
    #[error(transparent)]
    Port(#[from] port::Error),
    /// Reads return all ones: there is no card, or it fell off the bus.
    #[error("the card {device} is absent: register {register} reads as all ones")]
    Absent {
        /// Which card, see [`crate::bus::Bus::name`].
        device: String,
        /// Register that was read.
        register: String,
    },
    /// The device is something else.
    #[error("not a Viaduct NIC: its identity is {found:#06x}, expected {expected:#06x}")]
    WrongDevice {
        /// `ID.MAGIC` as read.
        found: u16,
        /// `ID.MAGIC` of this driver.
        expected: u16,
    },
    /// The device has other layouts than this driver.
    #[error("the device has ABI revision {device}, this driver has {driver}; use matching ones")]
    WrongAbi {
        /// `ID.ABI` as read.
        device: u16,
        /// Revision of this driver.
        driver: u16,
    },
    /// A simulator cannot be used, or not any more.
    #[error("vfio-user:{}: {why}; `viaduct cosim serve` starts a simulator", path.display())]
    Connect {
        /// Its socket.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A device serves one program, and another one has it.
    #[error("vfio-user:{}: another program uses this device{}", path.display(), holder(*by))]
    InUse {
        /// Its socket.
        path: PathBuf,
        /// Number of the process that has it, if the simulator knows.
        by: Option<u32>,
    },
    /// A simulator refused something.
    #[error("vfio-user:{}: {what} was refused with errno {errno}", path.display())]
    Served {
        /// Its socket.
        path: PathBuf,
        /// What was asked for.
        what: &'static str,
        /// Its answer.
        errno: u32,
    },
    /// A card cannot be used.
    #[error("vfio:{address}: {obstacle}")]
    Vfio {
        /// Its address.
        address: String,
        /// Why, and what to do.
        obstacle: Obstacle,
    },
    /// The device was asked for an interrupt, and none came.
    #[error(
        "no interrupt came from the card {device} within {bound_ns} ns; docs/vfio.md, section 3, says what to look at"
    )]
    NoInterrupt {
        /// Which device.
        device: String,
        /// Bound of the wait.
        bound_ns: u64,
    },
    /// A register read was not answered.
    #[error("register {register} of BAR{bar} was not answered within {cycles} cycles")]
    ReadTimeout {
        /// Name of the register, or its offset.
        register: String,
        /// Number of the BAR.
        bar: u8,
        /// Bound of the wait.
        cycles: u64,
    },
    /// Something that the device must do in bounded time did not happen.
    #[error("{what} {index} was not done within {bound_ns} ns")]
    TimedOut {
        /// What was waited for.
        what: &'static str,
        /// Which one.
        index: u32,
        /// Bound of the wait.
        bound_ns: u64,
    },
    /// An admin command ended with another status than Ok.
    #[error("admin command {command} of {index} failed: {status:?}")]
    Command {
        /// Name of the command.
        command: &'static str,
        /// Its object.
        index: u32,
        /// The device's answer.
        status: AdminStatus,
    },
    /// The admin ring gave something that is not a completion.
    #[error(
        "admin command {command} of {index}: completion is malformed (status {status:#x}, cookie {cookie:#x})"
    )]
    BadCompletion {
        /// Name of the command.
        command: &'static str,
        /// Its object.
        index: u32,
        /// Status word as read.
        status: u32,
        /// Cookie as read.
        cookie: u32,
    },
    /// The device was reset, because it did not carry out a command in time or by somebody else:
    /// nothing that it had is valid.
    #[error("the card {device} {why}; close it and open it again")]
    Failed {
        /// Which device.
        device: String,
        /// What happened.
        why: &'static str,
    },
    /// A host address does not belong to this network.
    #[error("address {address:02x?} is not on this network")]
    NotReachable {
        /// Host part of the address.
        address: Vec<u8>,
    },
    /// The link of a node does not bring back what it sends to itself.
    #[error("node {node} cannot reach itself: its link does not bring its frames back")]
    NoEcho {
        /// The node.
        node: u8,
    },
    /// The simulation did not come to rest.
    #[error("the simulation is still busy after {cycles} cycles (nodes {nodes:?})")]
    StillBusy {
        /// Cycles run.
        cycles: u64,
        /// Nodes whose device has work under way.
        nodes: Vec<usize>,
    },
}

impl Error {
    /// Whether this is the device's 'no room now'.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Command { status: AdminStatus::Busy, .. })
    }

    /// Whether this is the device's 'peer down'.
    #[must_use]
    pub const fn is_peer_down(&self) -> bool {
        matches!(self, Self::Command { status: AdminStatus::PeerDown, .. })
    }
}

impl From<Error> for port::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Port(error) => error,
            Error::NotReachable { .. } | Error::NoEcho { .. } => {
                Self::NotReachable(Arc::new(error))
            }
            error if error.is_peer_down() => Self::PeerDown(Arc::new(error)),
            error => Self::device(error),
        }
    }
}

/// Says which process has a device: its number and, if the system knows it, its name.
fn holder(process: Option<u32>) -> String {
    let Some(process) = process else { return String::new() };
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    match name.trim() {
        "" => format!(": process {process}"),
        name => format!(": process {process} ({name})"),
    }
}
