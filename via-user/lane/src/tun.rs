//! The network device of the kernel that a lane is behind: a TUN device, for IP packets.

mod ioctl;

use std::fs;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::network::Networks;

/// Where TUN devices are made.
const DEVICE: &str = "/dev/net/tun";

/// A TUN device, up, with its addresses. It ends with its file.
#[derive(Debug)]
pub struct Tun {
    file: OwnedFd,
    name: String,
}

/// Why there is none.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TunError {
    /// The name cannot be one of a network device.
    #[error(
        "'{0}' cannot be the name of a network device: 1 to 15 letters, digits, '-', '_' and '.'"
    )]
    Name(String),
    /// The kernel has none.
    #[error("{DEVICE}: {0}; the kernel needs its TUN driver (`modprobe tun`)")]
    Absent(Errno),
    /// The program may not.
    #[error("{what}: {why}; it needs CAP_NET_ADMIN: run it as root, or in a namespace of your own")]
    Denied {
        /// What was wanted.
        what: String,
        /// The system's answer.
        why: Errno,
    },
    /// Another device has the name.
    #[error("there is a network device '{0}' already: choose another name")]
    Taken(String),
    /// Something else.
    #[error("{what}: {why}")]
    System {
        /// What was wanted.
        what: String,
        /// The system's answer.
        why: Errno,
    },
}

fn failed(what: String) -> impl FnOnce(Errno) -> TunError {
    move |why| match why {
        Errno::PERM | Errno::ACCESS => TunError::Denied { what, why },
        _ => TunError::System { what, why },
    }
}

/// Whether this can be the name of a network device. `%d` at its end is a number that the kernel chooses.
fn is_name(name: &str) -> bool {
    let plain = name.strip_suffix("%d").unwrap_or(name);
    (1..ioctl::NAME_BYTES).contains(&name.len())
        && !plain.is_empty()
        && ![".", ".."].contains(&plain)
        && plain.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

impl Tun {
    /// Makes a device with these addresses and this MTU, and brings it up. A name that ends with `%d` gets
    /// the first number that is free.
    ///
    /// # Errors
    /// Why it cannot be had; nothing of it is left then.
    pub fn create(name: &str, networks: &Networks, mtu: u32) -> Result<Self, TunError> {
        if !is_name(name) {
            return Err(TunError::Name(name.to_owned()));
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open(DEVICE, flags, Mode::empty()).map_err(|why| match why {
            Errno::NOENT | Errno::NODEV | Errno::NXIO => TunError::Absent(why),
            _ => failed(DEVICE.to_owned())(why),
        })?;
        let name = ioctl::make(&file, name).map_err(|why| match why {
            Errno::BUSY | Errno::EXIST => TunError::Taken(name.to_owned()),
            _ => failed(format!("a TUN device {name}"))(why),
        })?;
        let made = Self { file, name };
        made.set_up(networks, mtu)?;
        Ok(made)
    }

    fn set_up(&self, networks: &Networks, mtu: u32) -> Result<(), TunError> {
        let name = &self.name;
        let socket = |family| {
            socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
                .map_err(failed("a socket to set a network device up".to_owned()))
        };
        let v4 = socket(AddressFamily::INET)?;
        ioctl::set_mtu(&v4, name, mtu).map_err(failed(format!("an MTU of {mtu} for {name}")))?;
        // No address that nobody asked for: its packets would be dropped. Where it is not to be set, they
        // are.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/addr_gen_mode"), "1");
        ioctl::set_up(&v4, name).map_err(failed(format!("to bring {name} up")))?;
        let index = netdevice::name_to_index(&v4, name);
        let index = index.map_err(failed(format!("the index of {name}")))?;
        let mut labels = (0..).map(|number| match number {
            0 => name.clone(),
            _ => format!("{name}:{number}"),
        });
        for network in networks.iter() {
            let set = match (network.address(), network.netmask()) {
                (IpAddr::V4(own), IpAddr::V4(mask)) => {
                    let label = labels.next().unwrap_or_default();
                    ioctl::set_v4(&v4, &label, own, mask)
                }
                (IpAddr::V6(own), _) => {
                    let v6 = socket(AddressFamily::INET6)?;
                    ioctl::add_v6(v6, index, own, network.prefix())
                }
                (IpAddr::V4(_), IpAddr::V6(_)) => Err(Errno::INVAL),
            };
            set.map_err(failed(format!("the address {network} for {name}")))?;
        }
        Ok(())
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file: each read gives a packet, each write takes one, and neither waits.
    #[must_use]
    pub fn into_file(self) -> OwnedFd {
        self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices() {
        for good in ["viaduct%d", "viaduct0", "a", "a-b_c.d", "123456789012345"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "1234567890123456", "a/b", "a b", "..", "%d", "a%db", "a:1", "é"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
