//! Packets between two nodes, over a UNIX socket that keeps their bounds (`SOCK_SEQPACKET`).
//!
//! The node that connects asks, the other one answers; for questions the other way there is a
//! connection the other way. Little-endian; the first byte is the kind.
//!
//! Set-up takes three packets: `Hello`, `Welcome`, `Ready`. Before `Ready`, or another packet in its
//! place, the end of the connection means nothing to the node that was dialled. So a node that gave up
//! waiting for a `Welcome`, or that had two threads connect at the same time, does not count as lost.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use port::address::HOST_ADDRESS_MAX;
use port::clan::{Cookie, Message};
use port::fork;
use port::own::{self, OwnFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, recvmsg, sendmsg,
};

/// Raised with every change of these packets or of the control segment.
pub(super) const VERSION: u32 = 5;
/// Longest packet.
const PACKET_MAX: usize = 256;
/// Most descriptors of a packet.
const FDS_MAX: usize = 3;

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// 'I am the node of this name.' The identity distinguishes it from other nodes of that
    /// name.
    Hello { version: u32, identity: u64, name: Vec<u8> },
    /// 'So am I.' With the control segment, the address space of the process, and its waker.
    Welcome { identity: u64 },
    /// 'I will not talk to you', and why.
    Refused { why: String },
    /// 'Domain `domain` of mine has this cookie.'
    Attach { request: u32, domain: u16, cookie: Cookie },
    /// 'Good: this is its grant', of a region of `length` bytes. If `is_file`, its memory file comes
    /// with it, in which it starts at `start`; otherwise it starts at that address. The descriptor
    /// alone does not show which: the kernel drops it if the receiver may have no more of them.
    Attached { request: u32, grant: u32, region: u16, is_file: bool, start: u64, length: u64 },
    /// 'There is no such cookie for you', or there are too many.
    NotAttached { request: u32 },
    /// 'I no longer use that grant.'
    Detach { grant: u32 },
    /// 'That grant is void.'
    Revoke { grant: u32 },
    /// 'I do not use it any more.'
    Revoked { grant: u32 },
    /// 'I use this connection.'
    Ready,
    /// A message of a program.
    Message { from: u16, to: u16, message: Message },
}

/// What a process must have received to be a packet.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) packet: Packet,
    pub(super) fds: Vec<OwnFd>,
    /// Descriptors were dropped: this process may have no more of them.
    pub(super) is_cut: bool,
}

/// A socket that children after fork do not have. Dropping it ends the connection, even if another
/// thread forks at the same time and its child gets a copy.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

impl Socket {
    /// Makes one, by a call that does not wait.
    ///
    /// # Errors
    /// Those of `make`; no memory for the handlers of forks.
    pub(super) fn create(make: impl FnOnce() -> rustix::io::Result<OwnedFd>) -> io::Result<Self> {
        fork::create(|| Ok(make()?)).map(Self)
    }

    /// Ends the connection: both sides find it so, now.
    pub(super) fn shut_down(&self) {
        // It fails only if there is no connection.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.shut_down();
        fork::remove(self.0.as_fd());
    }
}

/// Reads fields from a packet's front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.bytes()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn rest(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.0).to_vec()
    }
}

impl Packet {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PACKET_MAX);
        let mut put = |part: &[u8]| bytes.extend_from_slice(part);
        match self {
            Self::Hello { version, identity, name } => {
                put(&[1]);
                put(&version.to_le_bytes());
                put(&identity.to_le_bytes());
                put(name);
            }
            Self::Welcome { identity } => {
                put(&[2]);
                put(&identity.to_le_bytes());
            }
            Self::Refused { why } => {
                put(&[3]);
                put(why.as_bytes());
            }
            Self::Attach { request, domain, cookie } => {
                put(&[4]);
                put(&request.to_le_bytes());
                put(&cookie.to_bits().to_le_bytes());
                put(&domain.to_le_bytes());
            }
            Self::Attached { request, grant, region, is_file, start, length } => {
                put(&[5]);
                put(&request.to_le_bytes());
                put(&grant.to_le_bytes());
                put(&region.to_le_bytes());
                put(&[u8::from(*is_file)]);
                put(&start.to_le_bytes());
                put(&length.to_le_bytes());
            }
            Self::NotAttached { request } => {
                put(&[6]);
                put(&request.to_le_bytes());
            }
            Self::Detach { grant } => {
                put(&[7]);
                put(&grant.to_le_bytes());
            }
            Self::Revoke { grant } => {
                put(&[8]);
                put(&grant.to_le_bytes());
            }
            Self::Revoked { grant } => {
                put(&[9]);
                put(&grant.to_le_bytes());
            }
            Self::Message { from, to, message } => {
                put(&[10]);
                put(&from.to_le_bytes());
                put(&to.to_le_bytes());
                put(message);
            }
            Self::Ready => put(&[11]),
        }
        bytes.truncate(PACKET_MAX);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let [kind] = fields.bytes()?;
        let packet = match kind {
            1 => match fields.u32()? {
                VERSION => Self::Hello {
                    version: VERSION,
                    identity: fields.u64()?,
                    name: Some(fields.rest()).filter(|name| name.len() <= HOST_ADDRESS_MAX)?,
                },
                // The rest may be of another form, and the answer is that it is another version.
                version => {
                    fields.rest();
                    Self::Hello { version, identity: 0, name: Vec::new() }
                }
            },
            2 => Self::Welcome { identity: fields.u64()? },
            3 => {
                // It is shown to people: a peer's escape sequences are not for their terminals.
                let why = String::from_utf8_lossy(&fields.rest()).replace(char::is_control, " ");
                Self::Refused { why }
            }
            4 => {
                let (request, cookie) = (fields.u32()?, Cookie::from_bits(fields.u64()?)?);
                Self::Attach { request, domain: fields.u16()?, cookie }
            }
            5 => Self::Attached {
                request: fields.u32()?,
                grant: fields.u32()?,
                region: fields.u16()?,
                is_file: fields.flag()?,
                start: fields.u64()?,
                length: fields.u64()?,
            },
            6 => Self::NotAttached { request: fields.u32()? },
            7 => Self::Detach { grant: fields.u32()? },
            8 => Self::Revoke { grant: fields.u32()? },
            9 => Self::Revoked { grant: fields.u32()? },
            10 => {
                Self::Message { from: fields.u16()?, to: fields.u16()?, message: fields.bytes()? }
            }
            11 => Self::Ready,
            _ => return None,
        };
        fields.0.is_empty().then_some(packet)
    }
}

/// Sends a packet, without waiting for room.
///
/// # Errors
/// The socket's; [`io::ErrorKind::WouldBlock`] if there is no room.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    packet: &Packet,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let bytes = packet.to_bytes();
    loop {
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::other("more descriptors than a packet may carry"));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, flags) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The next packet, if one is there.
///
/// # Errors
/// The socket's; [`io::ErrorKind::UnexpectedEof`] if the other side has closed it;
/// [`io::ErrorKind::InvalidData`] for what is no packet.
pub(super) fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Received>> {
    own::undisturbed(|| receive_one(socket))
}

fn receive_one(socket: BorrowedFd<'_>) -> io::Result<Option<Received>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut bytes = [0; PACKET_MAX];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            // The other side has closed it and not read everything. Reported once; what it has sent
            // before, and the end, come behind it.
            Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
            Err(rustix::io::Errno::AGAIN) => return Ok(None),
            received => break received?,
        }
    };
    let fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let fds: Vec<OwnFd> = fds.flatten().map(OwnFd::new).collect();
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let whole = !received.flags.contains(ReturnFlags::TRUNC);
    let packet = Packet::from_bytes(&bytes[..received.bytes]).filter(|_| whole);
    let is_cut = received.flags.contains(ReturnFlags::CTRUNC);
    let received = packet.map(|packet| Received { packet, fds, is_cut });
    received.map(Some).ok_or(io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use port::clan::{AccessRights, RegionNumber};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn packets_survive_their_bytes() {
        let cookie = Cookie {
            region: RegionNumber(7),
            rights: AccessRights::WRITE,
            generation: 0x8001_0002,
        };
        let packets = [
            Packet::Hello { version: VERSION, identity: u64::MAX - 1, name: b"node0".to_vec() },
            Packet::Welcome { identity: 5 },
            Packet::Refused { why: "no".to_owned() },
            Packet::Attach { request: 9, domain: 0x8002, cookie },
            Packet::Attached {
                request: 1,
                grant: 2,
                region: 3,
                is_file: true,
                start: 1 << 63,
                length: 5,
            },
            Packet::NotAttached { request: 8 },
            Packet::Detach { grant: 1 },
            Packet::Revoke { grant: 2 },
            Packet::Revoked { grant: 3 },
            Packet::Message { from: 1, to: 0x8000, message: [7; 48] },
            Packet::Ready,
        ];
        for packet in packets {
            let bytes = packet.to_bytes();
            assert_eq!(Packet::from_bytes(&bytes), Some(packet.clone()));
            let is_text = matches!(packet, Packet::Hello { .. } | Packet::Refused { .. });
            let short = Packet::from_bytes(&bytes[..bytes.len() - 1]);
            assert!(is_text || short.is_none(), "{packet:?} without its last byte");
        }
    }

    #[test]
    fn hello_of_another_version_is_understood_whatever_follows() {
        let mut bytes = vec![1, 9, 0, 0, 0];
        bytes.extend([0xff; 100]);
        let hello = Packet::Hello { version: 9, identity: 0, name: Vec::new() };
        assert_eq!(Packet::from_bytes(&bytes), Some(hello.clone()));
        assert_eq!(Packet::from_bytes(&bytes[..5]), Some(hello));
    }

    #[test]
    fn escape_sequences_of_a_peer_are_not_shown() {
        let bytes = [&[3], &b"no\x1b[2J\n\xff"[..]].concat();
        let Some(Packet::Refused { why }) = Packet::from_bytes(&bytes) else { panic!() };
        assert_eq!(why, "no [2J \u{fffd}");
    }

    proptest! {
        #[test]
        fn bytes_from_strangers_are_a_packet_or_none(bytes: Vec<u8>) {
            if let Some(packet) = Packet::from_bytes(&bytes) {
                let again = Packet::from_bytes(&packet.to_bytes());
                prop_assert_eq!(again, Some(packet));
            }
        }
    }
}
