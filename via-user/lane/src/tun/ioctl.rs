//! The ioctls that make and set up a TUN device (Linux's `netdevice(7)` and `tuntap.txt`). Their numbers
//! and their structures belong together: each is here with its structure, and nowhere else.
#![allow(unsafe_code, reason = "numbers of ioctls and structures that belong to them")]

use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;

use rustix::io::{Errno, Result};
use rustix::ioctl::{Opcode, Setter, Updater, ioctl};

/// A number of the C library, which has another type there.
#[expect(clippy::cast_possible_truncation, reason = "numbers of ioctls have 32 bits")]
const fn opcode(number: libc::Ioctl) -> Opcode {
    number as Opcode
}

/// Bytes of a name, with the zero at its end.
pub(super) const NAME_BYTES: usize = libc::IFNAMSIZ;
/// Bytes behind the name in Linux's `struct ifreq`: as many as its longest form has.
const DATA_BYTES: usize = 24;

/// `struct ifreq`.
#[repr(C, align(8))]
struct Request {
    name: [u8; NAME_BYTES],
    data: [u8; DATA_BYTES],
}

const _: () = assert!(size_of::<Request>() >= size_of::<libc::ifreq>());

impl Request {
    fn new(name: &str, data: &[u8]) -> Result<Self> {
        let mut request = Self { name: [0; NAME_BYTES], data: [0; DATA_BYTES] };
        let place = request.name.get_mut(..name.len()).filter(|place| place.len() < NAME_BYTES);
        place.ok_or(Errno::NAMETOOLONG)?.copy_from_slice(name.as_bytes());
        request.data[..data.len()].copy_from_slice(data);
        Ok(request)
    }
}

/// Makes a file of `/dev/net/tun` that of a device for IP packets without any header of its own. Gives its
/// name, of which the kernel chooses the number that stands in the place of `%d`.
///
/// # Errors
/// The system's.
pub(super) fn make(file: impl AsFd, name: &str) -> Result<String> {
    const MAKE: Opcode = opcode(libc::TUNSETIFF);
    let flags = u16::try_from(libc::IFF_TUN | libc::IFF_NO_PI).map_err(|_| Errno::INVAL)?;
    let mut request = Request::new(name, &flags.to_ne_bytes())?;
    // SAFETY: TUNSETIFF reads and writes an `ifreq`, which `Request` is at least as long as.
    let make = unsafe { Updater::<'_, MAKE, Request>::new(&mut request) };
    // SAFETY: as above; the structure lives until the call returns.
    unsafe { ioctl(file, make) }?;
    let end = request.name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
    Ok(String::from_utf8_lossy(&request.name[..end]).into_owned())
}

fn set<const OPCODE: Opcode>(socket: impl AsFd, name: &str, data: &[u8]) -> Result<()> {
    let request = Request::new(name, data)?;
    // SAFETY: the callers below name ioctls that read an `ifreq`, which `Request` is at least as long as.
    let set = unsafe { Setter::<OPCODE, Request>::new(request) };
    // SAFETY: as above; the structure is in `set`.
    unsafe { ioctl(socket, set) }
}

/// `struct sockaddr_in`, up to the address.
fn socket_address(address: Ipv4Addr) -> [u8; 8] {
    let family = rustix::net::AddressFamily::INET.as_raw().to_ne_bytes();
    let [a, b, c, d] = address.octets();
    [family[0], family[1], 0, 0, a, b, c, d]
}

/// Gives a device an IPv4 address and the mask of its network. A name with `:1` at its end gives it one
/// more.
///
/// # Errors
/// The system's.
pub(super) fn set_v4(socket: impl AsFd, name: &str, own: Ipv4Addr, mask: Ipv4Addr) -> Result<()> {
    const ADDRESS: Opcode = opcode(libc::SIOCSIFADDR);
    const MASK: Opcode = opcode(libc::SIOCSIFNETMASK);
    set::<ADDRESS>(&socket, name, &socket_address(own))?;
    set::<MASK>(&socket, name, &socket_address(mask))
}

/// Sets the longest packet of a device.
///
/// # Errors
/// The system's.
pub(super) fn set_mtu(socket: impl AsFd, name: &str, mtu: u32) -> Result<()> {
    const MTU: Opcode = opcode(libc::SIOCSIFMTU);
    set::<MTU>(socket, name, &mtu.to_ne_bytes())
}

/// Brings a device up.
///
/// # Errors
/// The system's.
pub(super) fn set_up(socket: impl AsFd, name: &str) -> Result<()> {
    const FLAGS: Opcode = opcode(libc::SIOCSIFFLAGS);
    // All that can be set of a TUN device: multicast too, which it has from the start.
    let flags = libc::IFF_UP | libc::IFF_RUNNING | libc::IFF_MULTICAST | libc::IFF_NOARP;
    set::<FLAGS>(socket, name, &flags.to_ne_bytes())
}

/// `struct in6_ifreq`.
#[repr(C)]
struct V6Request {
    address: [u8; 16],
    prefix: u32,
    index: u32,
}

const _: () = assert!(size_of::<V6Request>() == size_of::<libc::in6_ifreq>());

/// Gives a device, by its index, an IPv6 address. The socket is one of IPv6.
///
/// # Errors
/// The system's.
pub(super) fn add_v6(socket: impl AsFd, index: u32, own: Ipv6Addr, prefix: u8) -> Result<()> {
    const ADDRESS: Opcode = opcode(libc::SIOCSIFADDR);
    let request = V6Request { address: own.octets(), prefix: prefix.into(), index };
    // SAFETY: on a socket of IPv6, SIOCSIFADDR reads an `in6_ifreq`. A socket of another family reads an
    // `ifreq`, which is longer: hence the check.
    let set = unsafe { Setter::<ADDRESS, V6Request>::new(request) };
    let family = rustix::net::sockopt::socket_domain(&socket)?;
    if family != rustix::net::AddressFamily::INET6 {
        return Err(Errno::AFNOSUPPORT);
    }
    // SAFETY: as above; the structure is in `set`.
    unsafe { ioctl(socket, set) }
}
