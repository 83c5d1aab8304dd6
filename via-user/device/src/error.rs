//! Why a device cannot be opened.

use std::path::{Path, PathBuf};

use port::trust::run_time_folder;

/// The variable that names the default device.
pub const DEVICE_VARIABLE: &str = "VIADUCT_DEVICE";

/// Result of opening.
pub type Result<T> = core::result::Result<T, Error>;

/// Why a device cannot be opened.
#[derive(Debug, thiserror::Error)]
#[expect(clippy::error_impl_error, reason = "the crate's one error type, see its Result")]
pub enum Error {
    /// The URL is not one.
    #[error("device `{url}`: {why}")]
    Malformed {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A name that is neither a URL nor a legacy name.
    #[error(
        "there is no device `{name}`: give shm:, udp:IP, eth:INTERFACE, sim:model, sim:rtl, vfio-user:PATH, \
         vfio:ADDRESS, or an empty name for the default device"
    )]
    Unknown {
        /// What was given.
        name: String,
    },
    /// `sim:rtl` without the feature.
    #[error(
        "this build has no RTL: build it with the feature `rtl` (cargo xtask install --rtl), or use sim:model"
    )]
    NoRtl,
    /// Waveforms cannot be written; the text names the file.
    #[error("no waveforms: {0}")]
    Trace(#[source] std::io::Error),
    /// Nobody serves devices.
    #[error(
        "no device: no simulator has a socket in {}; start one with `{}`, or set {DEVICE_VARIABLE} to another folder \
         or device, such as sim:model", folder.display(), serve_command(folder)
    )]
    NoDefault {
        /// Where sockets would be.
        folder: PathBuf,
    },
    /// The run-time folder is not this user's alone.
    #[error("the folder of simulators {} cannot be trusted: {why}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        why: std::io::Error,
    },
    /// Every device in a folder is another program's, or dead.
    #[error(
        "no device in {} is free: {}; `{} --nodes N` serves more", folder.display(), list(why), serve_command(folder)
    )]
    NoneFree {
        /// Where the sockets are.
        folder: PathBuf,
        /// What is wrong with each.
        why: Vec<host_driver::Error>,
    },
    /// A software NIC where hardware, or a simulation of it, was asked for.
    #[error("{url} is no hardware, which this needs: use sim:model, or a socket of a simulator")]
    NoHardware {
        /// The device.
        url: &'static str,
    },
    /// A device of another kind where a node of a CLAN network was asked for.
    #[error("`{name}` is no node of a CLAN network: use shm: or shm:?node=NAME")]
    NoClan {
        /// The device.
        name: String,
    },
    /// The software NIC says no.
    #[error(transparent)]
    Shm(#[from] soft_nic::shm::Error),
    /// The software NIC on a network says no.
    #[error(transparent)]
    Net(#[from] soft_nic::net::Error),
    /// A port says no.
    #[error(transparent)]
    Port(#[from] port::Error),
    /// The driver says no.
    #[error(transparent)]
    Driver(#[from] host_driver::Error),
}

fn list(why: &[host_driver::Error]) -> String {
    let each: Vec<String> = why.iter().map(ToString::to_string).collect();
    each.join("; ")
}

/// The command that serves sockets in a folder.
fn serve_command(folder: &Path) -> String {
    let command = "viaduct cosim serve";
    if folder == run_time_folder() {
        return command.to_owned();
    }
    format!("{command} --dir {}", folder.display())
}
