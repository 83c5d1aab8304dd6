//! A connection to another node: what this one asks it, and what it may touch of it.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use port::DmaMemory;
use port::clan::Cookie;
use port::sync::{Signal, lock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::claim::{dial, socket_path};
use super::control::{Control, REGIONS};
use super::error::{Error, Result};
use super::grant::{Grant, Owner};
use super::packet::{self, Packet, Socket, VERSION};

/// Longest wait for an answer of another node's service.
pub(super) const ANSWER_BOUND: Duration = Duration::from_secs(2);

/// Who this node is.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) folder: PathBuf,
    pub(super) name: String,
    pub(super) identity: u64,
}

/// A connection to a node.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: String,
    /// Of the node, which another one of that name does not have.
    pub(super) identity: u64,
    pub(super) owner: Arc<Owner>,
    lost: AtomicBool,
    requests: Mutex<Requests>,
    answered: Signal,
}

#[derive(Debug, Default)]
struct Requests {
    last: u32,
    /// Rights that were asked for, and the answer.
    pending: BTreeMap<u32, (Cookie, Option<Answer>)>,
    grants: BTreeMap<u32, Weak<Grant>>,
}

/// None: there is no such cookie.
type Answer = Option<Arc<Grant>>;

fn silent(name: &str) -> Error {
    Error::Silent { node: name.to_owned() }
}

/// Waits for a packet on a new connection.
fn first_packet(name: &str, socket: BorrowedFd<'_>) -> Result<(Packet, Vec<OwnedFd>)> {
    let end = Instant::now() + ANSWER_BOUND;
    loop {
        match packet::receive(socket) {
            Ok(Some(received)) => return Ok(received),
            Ok(None) => {}
            Err(_) => return Err(Error::NoNode { node: name.to_owned() }),
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

impl Link {
    /// Connects to a node. The node's own service answers, so its locks must not be held.
    ///
    /// # Errors
    /// No such node; it does not answer, or refuses; it is another user's.
    pub(super) fn connect(own: &Own, name: &str) -> Result<Arc<Self>> {
        let no_node = || Error::NoNode { node: name.to_owned() };
        let socket = match dial(&socket_path(&own.folder, name)) {
            Ok(socket) => socket,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(silent(name)),
            Err(_) => return Err(no_node()),
        };
        let refused = |why: String| Error::Refused { node: name.to_owned(), why };
        port::trust::check_peer(&socket).map_err(|error| refused(error.to_string()))?;
        let (identity, from) = (own.identity, own.name.clone().into_bytes());
        let hello = Packet::Hello { version: VERSION, identity, name: from };
        packet::send(socket.as_fd(), &hello, &[]).map_err(|_| no_node())?;
        let (answer, mut fds) = first_packet(name, socket.as_fd())?;
        let identity = match answer {
            Packet::Welcome { identity } if fds.len() == 2 => identity,
            Packet::Refused { why } => return Err(refused(why)),
            _ => return Err(refused("its answer is not understood".to_owned())),
        };
        let (space, control) = (fds.pop(), fds.pop());
        let (Some(space), Some(control)) = (space, control) else { return Err(no_node()) };
        let control = Control::of_peer(control.as_fd())
            .map_err(|error| refused(format!("its control segment is of no use: {error}")))?;
        let socket = Socket::new(socket)
            .map_err(|why| Error::System { what: "a handler for forks", why })?;
        Ok(Arc::new(Self {
            name: name.to_owned(),
            identity,
            owner: Arc::new(Owner { control, space: space.into(), socket }),
            lost: AtomicBool::new(false),
            requests: Mutex::default(),
            answered: Signal::default(),
        }))
    }

    /// Whether the node exists no more.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Sends a message of a program.
    ///
    /// # Errors
    /// The node is lost, or does not take its messages.
    pub(super) fn message(&self, packet: &Packet) -> Result<()> {
        match packet::send(self.owner.socket.as_fd(), packet, &[]) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(silent(&self.name)),
            Err(_) => Err(Error::NoNode { node: self.name.clone() }),
        }
    }

    /// Asks for the region of a cookie that `domain` of this node has. None if there is no such
    /// cookie.
    ///
    /// # Errors
    /// The node does not answer, or exists no more.
    pub(super) fn attach(&self, domain: u16, cookie: Cookie) -> Result<Option<Arc<Grant>>> {
        let request = {
            let mut requests = lock(&self.requests);
            requests.last = requests.last.wrapping_add(1);
            let request = requests.last;
            requests.pending.insert(request, (cookie, None));
            request
        };
        let sent = self.message(&Packet::Attach { request, domain, cookie });
        let end = Instant::now() + ANSWER_BOUND;
        let result = sent.and_then(|()| {
            loop {
                let seen = self.answered.count();
                let answer = lock(&self.requests)
                    .pending
                    .get_mut(&request)
                    .and_then(|(_, answer)| answer.take());
                if let Some(answer) = answer {
                    return Ok(answer);
                }
                if self.is_lost() {
                    return Err(Error::NoNode { node: self.name.clone() });
                }
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(silent(&self.name));
                }
                self.answered.wait(seen, u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
            }
        });
        lock(&self.requests).pending.remove(&request);
        result
    }

    /// The service has received a packet. False for one that makes no sense.
    pub(super) fn handle(&self, packet: &Packet, fds: Vec<OwnedFd>) -> bool {
        match *packet {
            Packet::Attached { request, grant, region, start, length } => {
                self.attached(request, (grant, region), (start, length), fds)
            }
            Packet::NotAttached { request } => {
                self.answer(request, None);
                true
            }
            Packet::Revoke { grant } => {
                let revoked = lock(&self.requests).grants.remove(&grant);
                if let Some(grant) = revoked.and_then(|grant| grant.upgrade()) {
                    grant.close(false);
                }
                self.owner.send(&Packet::Revoked { grant });
                true
            }
            _ => false,
        }
    }

    fn answer(&self, request: u32, answer: Answer) {
        if let Some(pending) = lock(&self.requests).pending.get_mut(&request) {
            pending.1 = Some(answer);
        }
        self.answered.raise();
    }

    fn attached(
        &self,
        request: u32,
        (number, region): (u32, u16),
        (start, length): (u64, u64),
        fds: Vec<OwnedFd>,
    ) -> bool {
        let memory = match fds.first() {
            None => None,
            Some(file) => match map(file.as_fd(), start, length) {
                Some(memory) => Some(memory),
                None => return false,
            },
        };
        let in_range = start.checked_add(length).is_some_and(|end| end <= i64::MAX as u64);
        if region >= REGIONS || !in_range {
            return false;
        }
        let cookie = lock(&self.requests).pending.get(&request).map(|(cookie, _)| *cookie);
        let Some(cookie) = cookie else {
            // Nobody waits any more.
            self.owner.send(&Packet::Detach { grant: number });
            return true;
        };
        let which = (number, region, cookie.rights);
        let grant = Arc::new(Grant::new(which, (start, length), memory, Arc::clone(&self.owner)));
        lock(&self.requests).grants.insert(number, Arc::downgrade(&grant));
        self.answer(request, Some(grant));
        true
    }

    /// The node exists no more: ends all accesses, and whoever waits for it.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        let grants = core::mem::take(&mut lock(&self.requests).grants);
        grants.values().filter_map(Weak::upgrade).for_each(|grant| grant.close(true));
        self.answered.raise();
    }
}

/// Maps a range of a memory file, which need not begin on a page.
fn map(file: BorrowedFd<'_>, start: u64, length: u64) -> Option<DmaMemory> {
    let page = port::memory::PAGE_BYTES as u64;
    let from = start / page * page;
    let size = start.checked_add(length)?.checked_next_multiple_of(page)? - from;
    let memory = DmaMemory::map_file(file, from, usize::try_from(size).ok()?).ok()?;
    memory.slice(usize::try_from(start - from).ok()?, usize::try_from(length).ok()?).ok()
}
