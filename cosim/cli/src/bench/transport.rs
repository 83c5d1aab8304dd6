//! Ways for two processes to exchange messages: VIPL on a device, and what it is compared with.
//!
//! | module | transport |
//! |---|---|
//! | `vipl` | VIPL on any device: polling, or blocking; one VI, or many on a completion queue |
//! | `clan` | many connections directly on `ClanPort`, each with a tripwire into one event queue |
//! | `queue` | the bare distributed message queue on `shm:` (CLAN paper, figure 4) |
//! | `ring` | a ring in shared memory, without any system, to which a message is copied and from which it is copied |
//! | `word` | one word in shared memory, polled, or slept on: the time of a cache line, and of a wake-up |
//! | `sovia` | SOVIA's streams on any device |
//! | `rpc` | calls of `via-rpc` on any device |
//! | `socket` | TCP, UNIX and UDP sockets, polling or blocking |
//! | `scratch` | no messages: the end that measures writes into a file, and reads it |
//! | `connection` | no messages: a round is a connection, made and ended |
//!
//! `node` is what those on `ClanPort` have in common, `choice` what those with many connections have.
//!
//! A message is a number of bytes from a buffer of the transport's own, the first four of which are a
//! stamp, if there are so many.

mod choice;
mod clan;
mod connection;
mod node;
mod queue;
mod ring;
mod rpc;
mod scratch;
mod socket;
mod sovia;
mod vipl;
mod word;

use core::fmt;
use core::str::FromStr;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use port::DmaMemory;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::Failure;

/// Longest wait for the other end.
pub(super) const BOUND: Duration = Duration::from_secs(20);

/// One end.
pub(crate) trait Transport: Send {
    /// Sends a message. May wait until there is room for it.
    fn send(&mut self, length: usize, stamp: u32) -> Result<(), Failure>;

    /// Sends what waits for other messages, if any does.
    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Receives a message of known length; its stamp.
    fn receive(&mut self, length: usize) -> Result<u32, Failure>;

    /// Sends bytes of a file, as many as a message has or up to its end; how many.
    fn send_file(&mut self, _file: &File, _length: usize) -> Result<usize, Failure> {
        Err("it carries no files".into())
    }

    /// Receives as many bytes, and writes them into a file.
    fn receive_file(&mut self, _file: &File, _length: usize) -> Result<(), Failure> {
        Err("it carries no files".into())
    }

    /// Receives a message if it has come; its stamp. Those that cannot look wait for it.
    fn poll_receive(&mut self, length: usize) -> Result<Option<u32>, Failure> {
        self.receive(length).map(Some)
    }
}

/// The stamp of a message: its first four bytes, if there are so many.
fn stamp_of(message: &[u8]) -> u32 {
    message.first_chunk().copied().map_or(0, u32::from_le_bytes)
}

/// A transport by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Vipl {
        device: String,
        blocking: bool,
    },
    /// Streams with one of SOVIA's policies.
    Sovia {
        device: String,
        policy: String,
        blocking: bool,
    },
    /// Calls: a message and its answer.
    Rpc {
        device: String,
        blocking: bool,
    },
    /// Calls of several clients of one server, of which any thread answers any.
    RpcClients {
        device: String,
    },
    /// Many VIs on a completion queue, of which each message takes one by chance.
    Cq {
        device: String,
        vis: usize,
    },
    /// Many connections on `shm:` without VIA, of which each message takes one by chance.
    Clan {
        connections: usize,
    },
    Queue,
    Ring,
    Word {
        blocking: bool,
    },
    Tcp {
        blocking: bool,
    },
    Unix {
        blocking: bool,
    },
    Udp,
    /// A file of the end that measures, instead of messages.
    Scratch,
    /// Connections with `tcp`, `unix` or a device, instead of messages.
    Connect {
        target: String,
    },
}

impl Kind {
    /// Whether its messages have this length. A byte stream has no empty ones.
    pub(crate) const fn carries(&self, length: usize) -> bool {
        match self {
            Self::Tcp { .. } | Self::Unix { .. } | Self::Sovia { .. } => length > 0,
            Self::Queue | Self::Clan { .. } => length <= queue::BODY,
            Self::Word { .. } => length <= 4,
            _ => true,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = |blocking: &bool| if *blocking { "blocking" } else { "polling" };
        match self {
            Self::Vipl { device, blocking } => write!(f, "vipl {} {device}", how(blocking)),
            Self::Sovia { device, policy, blocking } => {
                write!(f, "sovia {} {policy} {device}", how(blocking))
            }
            Self::Rpc { device, blocking } => write!(f, "rpc {} {device}", how(blocking)),
            Self::RpcClients { device } => write!(f, "rpc clients {device}"),
            Self::Cq { device, vis } => write!(f, "cq {vis} {device}"),
            Self::Clan { connections } => write!(f, "clan {connections}"),
            Self::Queue => write!(f, "queue"),
            Self::Ring => write!(f, "ring"),
            Self::Word { blocking: false } => write!(f, "line"),
            Self::Word { blocking: true } => write!(f, "futex"),
            Self::Tcp { blocking } => write!(f, "tcp {}", how(blocking)),
            Self::Unix { blocking } => write!(f, "unix {}", how(blocking)),
            Self::Udp => write!(f, "udp"),
            Self::Scratch => write!(f, "file"),
            Self::Connect { target } => write!(f, "connect {target}"),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.splitn(3, ' ').collect();
        let blocking = words.get(1) == Some(&"blocking");
        Ok(match words[..] {
            ["vipl", _, device] => Self::Vipl { device: device.to_owned(), blocking },
            ["sovia", _, rest] => {
                let (policy, device) = rest.split_once(' ').ok_or("a stream has a policy")?;
                let (device, policy) = (device.to_owned(), policy.to_owned());
                Self::Sovia { device, policy, blocking }
            }
            ["rpc", "clients", device] => Self::RpcClients { device: device.to_owned() },
            ["rpc", _, device] => Self::Rpc { device: device.to_owned(), blocking },
            ["cq", vis, device] => {
                let vis = vis.parse().map_err(|_| format!("`{vis}` is no number of VIs"))?;
                Self::Cq { device: device.to_owned(), vis }
            }
            ["clan", connections] => {
                let wrong = |_| format!("`{connections}` is no number of connections");
                Self::Clan { connections: connections.parse().map_err(wrong)? }
            }
            ["queue"] => Self::Queue,
            ["ring"] => Self::Ring,
            ["line"] => Self::Word { blocking: false },
            ["futex"] => Self::Word { blocking: true },
            ["tcp", _] => Self::Tcp { blocking },
            ["unix", _] => Self::Unix { blocking },
            ["udp"] => Self::Udp,
            ["file"] => Self::Scratch,
            ["connect", target] => Self::Connect { target: target.to_owned() },
            _ => return Err(format!("there is no transport `{text}`")),
        })
    }
}

/// An end that waits for the other one.
pub(crate) struct Offered {
    /// Where it waits: a line of text, for [`join`].
    pub(crate) place: String,
    /// Waits until the other one is there.
    pub(crate) accept: Box<dyn FnOnce() -> Result<Box<dyn Transport>, Failure>>,
}

/// Offers an end for messages of up to `largest` bytes.
pub(crate) fn offer(kind: &Kind, largest: usize) -> Result<Offered, Failure> {
    match kind {
        Kind::Vipl { device, blocking } => vipl::offer(device, *blocking, largest),
        Kind::Sovia { device, policy, blocking } => {
            sovia::offer(device, policy, *blocking, largest)
        }
        Kind::Rpc { device, blocking } => rpc::offer(device, *blocking, rpc::Servers::One),
        Kind::RpcClients { device } => rpc::offer(device, true, rpc::Servers::Shared),
        Kind::Cq { device, vis } => vipl::offer_many(device, *vis, largest),
        Kind::Clan { connections } => clan::offer(*connections),
        Kind::Queue => queue::offer(),
        Kind::Ring => ring::offer(largest),
        Kind::Word { blocking } => word::offer(*blocking),
        Kind::Tcp { blocking } => socket::offer_tcp(*blocking, largest),
        Kind::Unix { blocking } => socket::offer_unix(*blocking, largest),
        Kind::Udp => socket::offer_udp(largest),
        Kind::Scratch => scratch::offer(largest),
        Kind::Connect { target } => connection::offer(target),
    }
}

/// Connects with the end that waits at a place.
pub(crate) fn join(
    kind: &Kind,
    largest: usize,
    place: &str,
) -> Result<Box<dyn Transport>, Failure> {
    match kind {
        Kind::Vipl { device, blocking } => vipl::join(device, *blocking, largest, place),
        Kind::Sovia { device, policy, blocking } => {
            sovia::join(device, policy, *blocking, largest, place)
        }
        Kind::Rpc { device, blocking } => rpc::join(device, *blocking, place, rpc::Servers::One),
        Kind::RpcClients { device } => rpc::join(device, true, place, rpc::Servers::Shared),
        Kind::Cq { device, vis } => vipl::join_many(device, *vis, largest, place),
        Kind::Clan { connections } => clan::join(*connections, place),
        Kind::Queue => queue::join(place),
        Kind::Ring => ring::join(largest, place),
        Kind::Word { blocking } => word::join(*blocking, place),
        Kind::Tcp { blocking } => socket::join_tcp(*blocking, largest, place),
        Kind::Unix { blocking } => socket::join_unix(*blocking, largest, place),
        Kind::Udp => socket::join_udp(largest, place),
        Kind::Scratch => Ok(scratch::join()),
        Kind::Connect { target } => connection::join(target, place),
    }
}

/// Calls `attempt` until it has something.
fn poll<T>(mut attempt: impl FnMut() -> Result<Option<T>, Failure>) -> Result<T, Failure> {
    /// Attempts between two looks at the clock.
    const TURNS: u32 = 1 << 16;
    let mut end = None;
    loop {
        for _ in 0..TURNS {
            if let Some(found) = attempt()? {
                return Ok(found);
            }
            core::hint::spin_loop();
        }
        let now = Instant::now();
        if now > *end.get_or_insert(now + BOUND) {
            return Err("the other process is silent".into());
        }
    }
}

/// An empty file in memory.
pub(super) fn empty() -> Result<File, Failure> {
    Ok(memfd_create("viaduct bench", MemfdFlags::CLOEXEC)?.into())
}

/// Memory that the other process can map, and where it finds it.
fn shared(length: usize) -> Result<(DmaMemory, String), Failure> {
    let memory = DmaMemory::shared(length)?;
    let (file, _) = memory.file().ok_or("no memory file")?;
    let place = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Ok((memory, place))
}

/// Maps it there.
fn map(length: usize, place: &str) -> Result<DmaMemory, Failure> {
    use std::os::fd::AsFd;
    let file = File::options().read(true).write(true).open(place)?;
    Ok(DmaMemory::map_file(file.as_fd(), 0, length.next_multiple_of(port::memory::PAGE_BYTES))?)
}
