//! A connection to another node: what this one asks it, and what it may touch of it.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use port::DmaMemory;
use port::clan::Cookie;
use port::own::OwnFd;
use port::sync::{Signal, lock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::claim::{dial, socket_path};
use super::control::{Control, REGIONS};
use super::error::{Error, Result};
use super::grant::{Closing, Grant, Owner};
use super::packet::{self, Packet, Received, VERSION};

/// Longest wait for an answer of another node's service.
pub(super) const ANSWER_BOUND: Duration = Duration::from_secs(2);
/// Time between two attempts to send to a node that is busy.
const AGAIN: Duration = Duration::from_millis(1);
/// Fewest grants among which it is worth to look for those that the program has dropped.
const PRUNE_FROM: usize = 64;
/// Type of the file system of `/proc` (Linux's `linux/magic.h`).
const PROC_MAGIC: rustix::fs::FsWord = 0x9fa0;

/// A node among all that are, and were: a node that takes the name of another one later has another
/// identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Who {
    pub(super) name: String,
    pub(super) identity: u64,
}

/// This node, as its connections need it.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) folder: PathBuf,
    pub(super) who: Who,
    /// Wakes its service.
    pub(super) nudge: Arc<OwnFd>,
}

/// A connection to a node.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) who: Who,
    /// Number of its process.
    pub(super) process: u32,
    pub(super) owner: Arc<Owner>,
    requests: Mutex<Requests>,
    answered: Signal,
    is_lost: AtomicBool,
    /// Grants that were revoked while accesses were under way.
    closing: Mutex<Vec<(u32, Closing)>>,
}

#[derive(Debug, Default)]
struct Requests {
    last: u32,
    /// Rights that were asked for, and the answer.
    pending: BTreeMap<u32, (Cookie, Option<Answer>)>,
    grants: BTreeMap<u32, Weak<Grant>>,
    /// Grants from which on dropped ones are looked for.
    prune_at: usize,
}

/// None: there is no such cookie.
type Answer = Result<Option<Arc<Grant>>>;

fn silent(name: &str) -> Error {
    Error::Silent { node: name.to_owned() }
}

fn no_node(name: &str) -> Error {
    Error::NoNode { node: name.to_owned() }
}

fn refused(name: &str, why: impl ToString) -> Error {
    Error::Refused { node: name.to_owned(), why: why.to_string() }
}

fn no_descriptor() -> Error {
    let why = io::Error::from(rustix::io::Errno::MFILE);
    Error::System { what: "a descriptor of another node's memory", why }
}

/// Waits for a packet on a new connection.
fn first_packet(name: &str, socket: BorrowedFd<'_>) -> Result<Received> {
    let end = Instant::now() + ANSWER_BOUND;
    loop {
        match packet::receive(socket) {
            Ok(Some(received)) => return Ok(received),
            Ok(None) => {}
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(misunderstood(name));
            }
            Err(_) => return Err(no_node(name)),
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(silent(name));
        }
        let bound = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        // A signal makes it no longer.
        let _ = poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)], Some(&bound));
    }
}

fn misunderstood(name: &str) -> Error {
    refused(name, "its answer is not understood")
}

/// Fails for a file that is no address space. Any other might keep a read or a write waiting for
/// ever; a file of `/proc` does not.
fn check_space(space: BorrowedFd<'_>) -> io::Result<()> {
    if rustix::fs::fstatfs(space)?.f_type == PROC_MAGIC {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::InvalidData, "it is no file of /proc"))
}

impl Link {
    /// Connects to a node. The node's own service answers, so its locks must not be held. To the
    /// other node the connection counts for nothing before [`Packet::Ready`] is sent.
    ///
    /// # Errors
    /// No such node; it does not answer, or refuses; it is another user's.
    pub(super) fn connect(own: &Own, name: &str) -> Result<Arc<Self>> {
        let socket = match dial(&socket_path(&own.folder, name)) {
            Ok(socket) => socket,
            Err(why) => {
                return Err(match why.kind() {
                    ErrorKind::WouldBlock => silent(name),
                    ErrorKind::NotFound | ErrorKind::ConnectionRefused => no_node(name),
                    _ => Error::System { what: "a connection to another node", why },
                });
            }
        };
        let process = port::trust::check_peer(&socket).map_err(|error| refused(name, error))?;
        let (identity, from) = (own.who.identity, own.who.name.clone().into_bytes());
        let hello = Packet::Hello { version: VERSION, identity, name: from };
        packet::send(socket.as_fd(), &hello, &[]).map_err(|_| no_node(name))?;
        let Received { packet, mut fds, is_cut } = first_packet(name, socket.as_fd())?;
        let identity = match packet {
            Packet::Welcome { .. } if is_cut => return Err(no_descriptor()),
            Packet::Welcome { identity } if fds.len() == 3 => identity,
            Packet::Refused { why } => return Err(refused(name, why)),
            _ => return Err(misunderstood(name)),
        };
        let (waker, space, control) = (fds.pop(), fds.pop(), fds.pop());
        let (Some(waker), Some(space), Some(control)) = (waker, space, control) else {
            return Err(no_node(name));
        };
        let useless = |what| move |why| refused(name, format!("its {what} is of no use: {why}"));
        check_space(space.as_fd()).map_err(useless("address space"))?;
        let control =
            Control::of_peer(control.as_fd(), waker).map_err(useless("control segment"))?;
        Ok(Arc::new(Self {
            who: Who { name: name.to_owned(), identity },
            process,
            owner: Arc::new(Owner::new(control, space, socket, Arc::clone(&own.nudge))),
            requests: Mutex::default(),
            answered: Signal::default(),
            is_lost: AtomicBool::new(false),
            closing: Mutex::default(),
        }))
    }

    /// Whether the node exists no more.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Sends a message of a program.
    ///
    /// # Errors
    /// The node is lost; [`Error::Busy`], which is no loss: whoever repeats the message may have it sent.
    pub(super) fn message(&self, packet: &Packet) -> Result<()> {
        match packet::send(self.owner.socket.as_fd(), packet, &[]) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Err(Error::Busy { node: self.who.name.clone() })
            }
            Err(_) => Err(no_node(&self.who.name)),
        }
    }

    /// Asks for the region of a cookie that `domain` of this node has. None if there is no such
    /// cookie.
    ///
    /// # Errors
    /// The node does not answer, or exists no more; no descriptor, or no memory.
    pub(super) fn attach(&self, domain: u16, cookie: Cookie) -> Result<Option<Arc<Grant>>> {
        let request = {
            let mut requests = lock(&self.requests);
            requests.last = requests.last.wrapping_add(1);
            let request = requests.last;
            requests.pending.insert(request, (cookie, None));
            request
        };
        let end = Instant::now() + ANSWER_BOUND;
        let sent = loop {
            match self.message(&Packet::Attach { request, domain, cookie }) {
                Err(Error::Busy { .. }) if Instant::now() < end => std::thread::sleep(AGAIN),
                Err(Error::Busy { node }) => break Err(Error::Silent { node }),
                sent => break sent,
            }
        };
        let result = sent.and_then(|()| {
            loop {
                let seen = self.answered.count();
                let mut requests = lock(&self.requests);
                let pending = requests.pending.get_mut(&request);
                if let Some(answer) = pending.and_then(|(_, answer)| answer.take()) {
                    return answer;
                }
                drop(requests);
                if self.is_lost() {
                    return Err(no_node(&self.who.name));
                }
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(silent(&self.who.name));
                }
                self.answered.wait(seen, u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
            }
        });
        let late = lock(&self.requests).pending.remove(&request);
        // Not under the lock: an answer that came too late sends a packet when it is dropped.
        drop(late);
        result
    }

    /// The service has received a packet. False for one that makes no sense.
    pub(super) fn handle(&self, received: Received) -> bool {
        match received.packet {
            Packet::Attached { .. } => self.attached(received),
            Packet::NotAttached { request } => {
                self.answer(request, Ok(None));
                true
            }
            Packet::Revoke { grant } => {
                let revoked = lock(&self.requests).grants.remove(&grant);
                let revoked = revoked.and_then(|grant| grant.upgrade());
                let closing = Closing::of(revoked.into_iter(), false);
                {
                    let mut all = lock(&self.closing);
                    // The owner asks again if it got no answer in time. The accesses that it waits for
                    // are those of the first time.
                    if all.iter().all(|(other, _)| *other != grant) {
                        all.push((grant, closing));
                    }
                }
                self.confirm();
                true
            }
            _ => false,
        }
    }

    /// Confirms revocations whose accesses are over. False if others are left.
    pub(super) fn confirm(&self) -> bool {
        let mut closing = lock(&self.closing);
        closing.retain_mut(|(grant, closing)| {
            let is_done = closing.is_done();
            if is_done {
                self.owner.send(Packet::Revoked { grant: *grant });
            }
            !is_done
        });
        closing.is_empty()
    }

    fn answer(&self, request: u32, answer: Answer) {
        let mut late = Some(answer);
        if let Some(pending) = lock(&self.requests).pending.get_mut(&request) {
            core::mem::swap(&mut pending.1, &mut late);
        }
        self.answered.raise();
    }

    fn attached(&self, received: Received) -> bool {
        let Packet::Attached { request, grant: number, region, is_file, start, length } =
            received.packet
        else {
            return false;
        };
        let in_range = start.checked_add(length).is_some_and(|end| end <= i64::MAX as u64);
        if region >= REGIONS || !in_range {
            return false;
        }
        let cookie = lock(&self.requests).pending.get(&request).map(|(cookie, _)| *cookie);
        let memory = match received.fds.first() {
            _ if !is_file => Ok(None),
            None => Err(no_descriptor()),
            Some(file) => map(file.as_fd(), start, length).map(Some).map_err(|why| Error::System {
                what: "another node's memory cannot be mapped",
                why,
            }),
        };
        // Nobody waits any more, or nothing came of it.
        let (cookie, memory) = match (cookie, memory) {
            (Some(cookie), Ok(memory)) => (cookie, memory),
            (_, memory) => {
                self.owner.send(Packet::Detach { grant: number });
                self.answer(request, memory.map(|_| None));
                return true;
            }
        };
        let which = (number, region, cookie.rights);
        let grant = Arc::new(Grant::new(which, (start, length), memory, Arc::clone(&self.owner)));
        {
            let mut requests = lock(&self.requests);
            // What is entered now, nobody would close.
            if self.is_lost() {
                return true;
            }
            if requests.grants.len() >= requests.prune_at {
                requests.grants.retain(|_, grant| grant.strong_count() > 0);
                requests.prune_at = PRUNE_FROM.max(2 * requests.grants.len());
            }
            requests.grants.insert(number, Arc::downgrade(&grant));
        }
        self.answer(request, Ok(Some(grant)));
        true
    }

    /// The node exists no more: ends all accesses, the connection, and whoever waits for it.
    pub(super) fn lose(&self) -> Closing {
        let grants = {
            let mut requests = lock(&self.requests);
            self.is_lost.store(true, Ordering::Release);
            core::mem::take(&mut requests.grants)
        };
        let closing = Closing::of(grants.values().filter_map(Weak::upgrade), true);
        self.answered.raise();
        closing
    }
}

/// Maps a range of a memory file, which need not begin on a page.
fn map(file: BorrowedFd<'_>, start: u64, length: u64) -> io::Result<DmaMemory> {
    let page = port::memory::PAGE_BYTES as u64;
    let range = || {
        let from = start / page * page;
        let size = start.checked_add(length)?.checked_next_multiple_of(page)? - from;
        Some((from, usize::try_from(size).ok()?))
    };
    let invalid = || io::Error::from(ErrorKind::InvalidInput);
    let (from, size) = range().ok_or_else(invalid)?;
    let memory = DmaMemory::map_file(file, from, size)?;
    let place = |offset| usize::try_from(offset).map_err(|_| invalid());
    memory.slice(place(start - from)?, place(length)?).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use port::clan::{AccessRights, RegionNumber};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::super::fence;
    use super::super::packet::Socket;
    use super::*;

    /// A link, and the end of the node that it leads to.
    fn link() -> (Link, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let socket = Socket::create(|| Ok(ours)).unwrap();
        let space = OwnFd::new(std::fs::File::open("/proc/self/mem").unwrap().into());
        let nudge = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let nudge = Arc::new(OwnFd::new(nudge));
        let owner = Owner::new(Control::new().unwrap(), space, socket, nudge);
        let link = Link {
            who: Who { name: "owner".to_owned(), identity: 1 },
            process: 1,
            owner: Arc::new(owner),
            requests: Mutex::default(),
            answered: Signal::default(),
            is_lost: AtomicBool::new(false),
            closing: Mutex::default(),
        };
        (link, theirs)
    }

    fn sent(to: &OwnedFd) -> Option<Packet> {
        packet::receive(to.as_fd()).unwrap().map(|received| received.packet)
    }

    /// An owner asks again if it got no answer, since this process was stopped.
    #[test]
    fn a_revocation_that_is_asked_for_twice_is_confirmed_when_no_access_is_under_way() {
        fence::register().unwrap();
        let (link, owner) = link();
        let cookie = Cookie { region: RegionNumber(3), rights: AccessRights::WRITE, generation: 1 };
        let memory = DmaMemory::shared(4096).unwrap();
        let which = (7, cookie.region.0, cookie.rights);
        let grant = Grant::new(which, (0, 4096), Some(memory), Arc::clone(&link.owner));
        let grant = Arc::new(grant);
        lock(&link.requests).grants.insert(7, Arc::downgrade(&grant));
        let gate = grant.gate();
        let access = gate.enter().unwrap();
        for _ in 0..2 {
            let packet = Packet::Revoke { grant: 7 };
            assert!(link.handle(Received { packet, fds: Vec::new(), is_cut: false }));
            assert_eq!(sent(&owner), None, "an access is under way");
        }
        drop(access);
        assert!(link.confirm());
        assert_eq!(sent(&owner), Some(Packet::Revoked { grant: 7 }));
        // Once more, when nothing is left of it.
        let packet = Packet::Revoke { grant: 7 };
        assert!(link.handle(Received { packet, fds: Vec::new(), is_cut: false }));
        assert_eq!(sent(&owner), Some(Packet::Revoked { grant: 7 }));
    }
}
