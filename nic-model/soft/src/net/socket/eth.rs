//! Raw Ethernet frames of an interface, as M-VIA sends them.

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use port::fork;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with, sockopt,
};

use super::{Outcome, enlarge};
use crate::net::address::parse_mac;
use crate::net::error::{Error, Result};
use crate::net::format::{PACKET_MAX, length_of};

/// Type of the frames: for experiments on a local network (IEEE 802).
pub(in crate::net) const ETHER_TYPE: u16 = 0x88b5;
/// Both addresses and the type.
const HEADER_BYTES: usize = 14;
/// Every interface of the local network.
pub(in crate::net) const BROADCAST: [u8; 6] = [0xff; 6];
/// Where the kernel describes interfaces.
const CLASS: &str = "/sys/class/net";
/// What Linux calls an Ethernet interface.
const ARPHRD_ETHER: &str = "1";
/// Bit of an interface's flags: it is up.
const IFF_UP: u32 = 1;
/// Longest name of an interface.
const NAME_MAX: usize = 15;

/// An Ethernet interface, whose frames of the type are this node's alone.
#[derive(Debug)]
pub(in crate::net) struct Eth {
    fd: OwnedFd,
    folder: PathBuf,
    own: [u8; 6],
    kept: usize,
    /// Another node on the interface would answer for this one. The name lies in the network
    /// namespace, as the interface does.
    lock: UnixListener,
}

impl Drop for Eth {
    fn drop(&mut self) {
        fork::remove(self.fd.as_fd());
        fork::remove(self.lock.as_fd());
    }
}

impl AsFd for Eth {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A line that the kernel says of an interface.
fn line(folder: &Path, file: &str) -> io::Result<String> {
    Ok(fs::read_to_string(folder.join(file))?.trim().to_owned())
}

/// Names of the Ethernet interfaces that are up, in order.
#[must_use]
pub fn interfaces() -> Vec<String> {
    let entries = fs::read_dir(CLASS).into_iter().flatten().flatten();
    let is_usable = |name: &String| {
        let folder = Path::new(CLASS).join(name);
        line(&folder, "type").is_ok_and(|kind| kind == ARPHRD_ETHER) && is_up(&folder)
    };
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(is_usable);
    names.sort();
    names
}

fn is_up(folder: &Path) -> bool {
    let flags = line(folder, "flags").unwrap_or_default();
    u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(0) & IFF_UP != 0
}

impl Eth {
    /// Opens an interface.
    ///
    /// # Errors
    /// It does not exist, is not Ethernet, is down, or another node has it; the program may not send
    /// raw frames.
    pub(super) fn open(name: &str) -> Result<Self> {
        let none = || Error::NoInterface { name: name.to_owned() };
        let is_name = !name.is_empty()
            && name.len() <= NAME_MAX
            && !name.contains('/')
            && ![".", ".."].contains(&name);
        let folder = Path::new(CLASS).join(name);
        if !is_name || !folder.exists() {
            return Err(none());
        }
        let bad = |why| Error::BadInterface { name: name.to_owned(), why };
        let read = |file| line(&folder, file).map_err(|_| none());
        if read("type")? != ARPHRD_ETHER {
            return Err(bad("it is no Ethernet interface"));
        }
        let own = parse_mac(&read("address")?).ok_or_else(|| bad("it has no MAC address"))?;
        if !is_up(&folder) {
            return Err(bad("it is down; `ip link set NAME up` starts it"));
        }
        let fd = Self::bind(name)?;
        let lock_name = SocketAddr::from_abstract_name(format!("viaduct/eth/{name}"));
        let lock = lock_name.and_then(|name| fork::create(|| UnixListener::bind_addr(&name)));
        let lock = lock.map_err(|why| {
            fork::remove(fd.as_fd());
            match why.kind() {
                ErrorKind::AddrInUse => bad("another program is the node of it"),
                _ => Error::System { what: "a name for the interface", why },
            }
        })?;
        enlarge(fd.as_fd());
        let kept = sockopt::socket_recv_buffer_size(&fd).unwrap_or(0);
        Ok(Self { fd, folder, own, kept, lock })
    }

    /// A socket for the frames of an interface.
    fn bind(name: &str) -> Result<OwnedFd> {
        let protocol = core::num::NonZeroU32::new(ETHER_TYPE.to_be().into());
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let make = || {
            let protocol = protocol.map(Protocol::from_raw);
            Ok(socket_with(AddressFamily::PACKET, SocketType::RAW, flags, protocol)?)
        };
        let fd = fork::create(make).map_err(|why| match why.kind() {
            ErrorKind::PermissionDenied => Error::NoRights { name: name.to_owned(), why },
            _ => Error::System { what: "a socket for raw frames", why },
        })?;
        let addresses = nix::ifaddrs::getifaddrs().map_err(io::Error::from);
        let mut addresses = addresses.map_err(Error::system("the list of interfaces"))?;
        let of_link = addresses.find_map(|found| {
            let link = found.address.filter(|_| found.interface_name == name)?;
            link.as_link_addr().copied()
        });
        let bound = match of_link {
            Some(link) => nix::sys::socket::bind(fd.as_raw_fd(), &link).map_err(io::Error::from),
            None => Err(ErrorKind::NotFound.into()),
        };
        match bound {
            Ok(()) => Ok(fd),
            Err(why) => {
                fork::remove(fd.as_fd());
                Err(Error::System { what: "a socket on the interface", why })
            }
        }
    }

    pub(super) const fn own(&self) -> [u8; 6] {
        self.own
    }

    pub(super) const fn kept(&self) -> usize {
        self.kept
    }

    /// Bytes of the longest packet that the interface carries.
    pub(super) fn path(&self) -> io::Result<usize> {
        let mtu = line(&self.folder, "mtu")?;
        let mtu = mtu.parse::<usize>().map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        Ok(mtu.min(PACKET_MAX))
    }

    /// Sends a packet.
    pub(super) fn send(&self, to: [u8; 6], packet: &[u8]) -> Outcome {
        let mut header = [0; HEADER_BYTES];
        header[..6].copy_from_slice(&to);
        header[6..12].copy_from_slice(&self.own);
        header[12..].copy_from_slice(&ETHER_TYPE.to_be_bytes());
        let parts = [io::IoSlice::new(&header), io::IoSlice::new(packet)];
        let mut control = rustix::net::SendAncillaryBuffer::default();
        match rustix::net::sendmsg(&self.fd, &parts, &mut control, SendFlags::empty()) {
            Ok(_) => Outcome::Sent,
            Err(why) => Outcome::of(Some(why)),
        }
    }

    /// Takes a packet that arrived: where it is in the buffer, and where it is from.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Option<(Range<usize>, [u8; 6])> {
        loop {
            let length = match rustix::net::recv(&self.fd, &mut *buffer, RecvFlags::empty()) {
                Ok((_, length)) => length.min(buffer.len()),
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            let frame = &buffer[..length];
            let Some((header, packet)) = frame.split_first_chunk::<HEADER_BYTES>() else {
                continue;
            };
            // The interface may receive what is for others. Behind a short packet a frame is filled up.
            let is_own = header[..6] == self.own || header[..6] == BROADCAST;
            let end = HEADER_BYTES + length_of(packet).unwrap_or(packet.len());
            if let (true, Ok(from)) = (is_own, header[6..12].try_into()) {
                return Some((HEADER_BYTES..end, from));
            }
        }
    }
}
