//! Grants: what other nodes let this one access, until they revoke it.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, Weak};

use port::clan::{AccessRights, DmaError};
use port::own::OwnFd;
use port::sync::lock;
use port::{DmaMemory, fork};

use super::control::Control;
use super::fence;
use super::packet::{self, Packet, Socket};

/// Packets that may wait until a node takes them. One that takes none gets no more, and misses
/// confirmations that it has to ask for again.
const OUTBOX_LIMIT: usize = 65_536;

/// What accesses need of the node that owns a region.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) control: Control,
    /// The address space of its process.
    pub(super) space: OwnFd,
    pub(super) socket: Socket,
    /// Packets for which the socket had no room; the service sends them.
    outbox: Mutex<VecDeque<Packet>>,
    /// Wakes the service.
    nudge: Arc<OwnFd>,
    generation: u32,
}

impl Owner {
    pub(super) fn new(control: Control, space: OwnFd, socket: Socket, nudge: Arc<OwnFd>) -> Self {
        let (outbox, generation) = (Mutex::default(), fork::generation());
        Self { control, space, socket, outbox, nudge, generation }
    }

    fn is_own(&self) -> bool {
        self.generation == fork::generation()
    }

    /// Sends a packet that has no answer: at once, or as soon as the node takes more.
    pub(super) fn send(&self, packet: Packet) {
        // In a child after fork a thread of its parent may hold the lock for good.
        if !self.is_own() {
            return;
        }
        let mut outbox = lock(&self.outbox);
        if outbox.is_empty() && !self.is_full_for(&packet) {
            return;
        }
        if outbox.len() < OUTBOX_LIMIT {
            outbox.push_back(packet);
        }
        drop(outbox);
        // It fails when the count is full, and then the service looks anyway.
        let _ = rustix::io::write(&*self.nudge, &1_u64.to_ne_bytes());
    }

    /// Sends a packet, unless the socket has no room for it. A node that exists no more needs none.
    fn is_full_for(&self, packet: &Packet) -> bool {
        let sent = packet::send(self.socket.as_fd(), packet, &[]);
        sent.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// Whether packets wait.
    pub(super) fn has_outbox(&self) -> bool {
        !lock(&self.outbox).is_empty()
    }

    /// Sends packets that wait.
    pub(super) fn flush(&self) {
        let mut outbox = lock(&self.outbox);
        while let Some(packet) = outbox.front() {
            if self.is_full_for(packet) {
                return;
            }
            outbox.pop_front();
        }
    }
}

/// Whether an access by one handle is under way, and whether there may be any more.
///
/// The handle marks its accesses by plain stores; who voids the grant has all processors execute a
/// fence, and then waits for the access that is under way. A child after fork finds all gates closed:
/// it has its parent's mappings, and nobody could take them from it.
#[derive(Debug)]
pub(super) struct Gate {
    busy: AtomicBool,
    closed: AtomicU8,
    generation: u32,
}

const OPEN: u8 = 0;
const REVOKED: u8 = 1;
const LOST: u8 = 2;

/// An access that is under way.
#[derive(Debug)]
pub(super) struct Entered<'a>(&'a Gate);

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

impl Gate {
    #[inline]
    pub(super) fn enter(&self) -> Result<Entered<'_>, DmaError> {
        self.busy.store(true, Ordering::Relaxed);
        let entered = Entered(self);
        fence::light();
        match self.closed.load(Ordering::Acquire) {
            OPEN if self.generation == fork::generation() => Ok(entered),
            REVOKED => Err(DmaError::Refused),
            _ => Err(DmaError::Lost),
        }
    }
}

/// A cookie that an owner has confirmed.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) number: u32,
    pub(super) region: u16,
    pub(super) rights: AccessRights,
    pub(super) length: u64,
    /// Where the region starts in the owner's address space, if it is not mapped.
    pub(super) start: u64,
    /// The region, if it is.
    pub(super) memory: Option<DmaMemory>,
    /// It is, and double words of it are double words in memory.
    pub(super) has_words: bool,
    pub(super) owner: Arc<Owner>,
    gates: Mutex<(u8, Vec<Weak<Gate>>)>,
}

impl Grant {
    pub(super) fn new(
        (number, region, rights): (u32, u16, AccessRights),
        (start, length): (u64, u64),
        memory: Option<DmaMemory>,
        owner: Arc<Owner>,
    ) -> Self {
        let gates = Mutex::new((OPEN, Vec::new()));
        let has_words = memory.as_ref().is_some_and(|memory| memory.address().is_multiple_of(8));
        Self { number, region, rights, length, start, memory, has_words, owner, gates }
    }

    /// A gate for one more handle.
    pub(super) fn gate(&self) -> Arc<Gate> {
        let generation = self.owner.generation;
        let gate = |closed| Arc::new(Gate { busy: AtomicBool::new(false), closed, generation });
        if !self.owner.is_own() {
            return gate(AtomicU8::new(LOST));
        }
        let mut gates = lock(&self.gates);
        let gate = gate(AtomicU8::new(gates.0));
        gates.1.retain(|gate| gate.strong_count() > 0);
        gates.1.push(Arc::downgrade(&gate));
        gate
    }

    /// Has all later accesses fail.
    fn close(&self, reason: u8) -> Vec<Arc<Gate>> {
        let mut gates = lock(&self.gates);
        if gates.0 != OPEN {
            return Vec::new();
        }
        gates.0 = reason;
        let all: Vec<Arc<Gate>> = gates.1.drain(..).filter_map(|gate| gate.upgrade()).collect();
        all.iter().for_each(|gate| gate.closed.store(reason, Ordering::SeqCst));
        all
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.owner.send(Packet::Detach { grant: self.number });
    }
}

/// Accesses that were under way when their grants became void. The service must not wait for them:
/// their threads may have to wait for a processor, or be stopped by a debugger.
#[derive(Debug)]
pub(super) struct Closing(Vec<Arc<Gate>>);

impl Closing {
    /// Ends all accesses by grants: those that begin later fail.
    pub(super) fn of(grants: impl Iterator<Item = Arc<Grant>>, is_lost: bool) -> Self {
        let reason = if is_lost { LOST } else { REVOKED };
        let gates: Vec<Arc<Gate>> = grants.flat_map(|grant| grant.close(reason)).collect();
        if !gates.is_empty() {
            // It cannot fail: this process has registered.
            let _ = fence::on_all();
        }
        Self(gates)
    }

    /// All of several.
    pub(super) fn all(several: impl Iterator<Item = Self>) -> Self {
        Self(several.flat_map(|closing| closing.0).collect())
    }

    /// Whether none is under way any more.
    pub(super) fn is_done(&mut self) -> bool {
        self.0.retain(|gate| gate.busy.load(Ordering::Acquire));
        self.0.is_empty()
    }
}
