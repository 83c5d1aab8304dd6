//! The packets of `shm:` by hand, as a program writes them that does not use the library.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect,
    listen, recvmsg, sendmsg, socket_with,
};

pub(crate) const VERSION: u32 = 5;
pub(crate) const HELLO: u8 = 1;
pub(crate) const WELCOME: u8 = 2;
pub(crate) const REFUSED: u8 = 3;
pub(crate) const ATTACHED: u8 = 5;

/// Longest wait for a packet that comes.
const BOUND: Duration = Duration::from_secs(20);

fn socket() -> OwnedFd {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

fn address(folder: &Path, name: &str) -> SocketAddrUnix {
    SocketAddrUnix::new(folder.join(format!("{name}.sock"))).unwrap()
}

/// Connects to a node.
pub(crate) fn dial(folder: &Path, name: &str) -> OwnedFd {
    let socket = socket();
    connect(&socket, &address(folder, name)).unwrap();
    socket
}

/// A socket that looks like a node's.
pub(crate) fn listener(folder: &Path, name: &str) -> OwnedFd {
    let socket = socket();
    let _ = std::fs::create_dir(folder);
    bind(&socket, &address(folder, name)).unwrap();
    listen(&socket, 8).unwrap();
    socket
}

/// A packet of a kind and its fields.
pub(crate) fn packet(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    [&[kind], &fields.concat()[..]].concat()
}

pub(crate) fn hello(version: u32, identity: u64, name: &str) -> Vec<u8> {
    packet(HELLO, &[&version.to_le_bytes(), &identity.to_le_bytes(), name.as_bytes()])
}

/// Sends a packet. False if it cannot be: the other side has ended the connection, or has no room.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags).is_ok()
}

/// The next packet, or nothing at the end of the connection.
pub(crate) fn receive(socket: &OwnedFd) -> (Vec<u8>, Vec<OwnedFd>) {
    let end = Instant::now() + BOUND;
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let (mut bytes, mut control) = ([0; 512], RecvAncillaryBuffer::new(&mut space));
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(received) => {
                let fds = control.drain().filter_map(|message| match message {
                    RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                    _ => None,
                });
                return (bytes[..received.bytes].to_vec(), fds.flatten().collect());
            }
            Err(rustix::io::Errno::AGAIN) => {}
            Err(rustix::io::Errno::CONNRESET) => continue,
            Err(error) => panic!("{error}"),
        }
        assert!(Instant::now() < end, "no packet");
        let bound = Timespec { tv_sec: 1, tv_nsec: 0 };
        let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&bound));
    }
}

/// Connects, and is welcome: the socket, the node's identity, its control segment.
pub(crate) fn join(folder: &Path, name: &str, own: (u64, &str)) -> (OwnedFd, u64, OwnedFd) {
    let socket = dial(folder, name);
    assert!(send(&socket, &hello(VERSION, own.0, own.1), &[]));
    let (answer, mut fds) = receive(&socket);
    assert_eq!((answer[0], fds.len()), (WELCOME, 3));
    let identity = u64::from_le_bytes(answer[1..9].try_into().unwrap());
    (socket, identity, fds.swap_remove(0))
}

/// A memory file with seals, as nodes have them.
pub(crate) fn memory_file(bytes: u64, is_sealed: bool) -> OwnedFd {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create(c"by-hand", flags).unwrap();
    ftruncate(&file, bytes).unwrap();
    if is_sealed {
        fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
    }
    file
}

pub(crate) fn pipe_end() -> OwnedFd {
    rustix::pipe::pipe().unwrap().0
}

pub(crate) fn own_space() -> OwnedFd {
    std::fs::File::options().read(true).write(true).open("/proc/self/mem").unwrap().into()
}

/// Borrowed descriptors.
pub(crate) fn borrowed(fds: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    fds.iter().map(OwnedFd::as_fd).collect()
}
