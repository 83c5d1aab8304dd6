//! Grants: what other nodes let this one access, until they revoke it.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, Weak};

use port::DmaMemory;
use port::clan::{AccessRights, DmaError};
use port::sync::lock;

use super::control::Control;
use super::fence;
use super::packet::{self, Packet, Socket};

/// What accesses need of the node that owns a region.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) control: Control,
    /// The address space of its process.
    pub(super) space: File,
    pub(super) socket: Socket,
}

impl Owner {
    /// Sends a packet that needs no answer; a node that has no room for it is found lost soon.
    pub(super) fn send(&self, packet: &Packet) {
        let _ = packet::send(self.socket.as_fd(), packet, &[]);
    }
}

/// An access by one handle is under way, and whether there may be any more.
///
/// The handle marks its accesses by plain stores; who voids the grant has all processors execute a
/// fence, and then waits for the access that is under way.
#[derive(Debug, Default)]
pub(super) struct Gate {
    busy: AtomicBool,
    closed: AtomicU8,
}

const OPEN: u8 = 0;
const REVOKED: u8 = 1;
const LOST: u8 = 2;

impl Gate {
    #[inline]
    pub(super) fn enter(&self) -> Result<(), DmaError> {
        self.busy.store(true, Ordering::Relaxed);
        fence::light();
        match self.closed.load(Ordering::Acquire) {
            OPEN => Ok(()),
            closed => {
                self.leave();
                Err(if closed == LOST { DmaError::Lost } else { DmaError::Refused })
            }
        }
    }

    #[inline]
    pub(super) fn leave(&self) {
        self.busy.store(false, Ordering::Release);
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
    pub(super) owner: Arc<Owner>,
    gates: Mutex<(u8, Vec<Weak<Gate>>)>,
}

impl Grant {
    pub(super) const fn new(
        (number, region, rights): (u32, u16, AccessRights),
        (start, length): (u64, u64),
        memory: Option<DmaMemory>,
        owner: Arc<Owner>,
    ) -> Self {
        let gates = Mutex::new((OPEN, Vec::new()));
        Self { number, region, rights, length, start, memory, owner, gates }
    }

    /// A gate for one more handle.
    pub(super) fn gate(&self) -> Arc<Gate> {
        let mut gates = lock(&self.gates);
        let gate = Arc::new(Gate { busy: AtomicBool::new(false), closed: AtomicU8::new(gates.0) });
        gates.1.retain(|gate| gate.strong_count() > 0);
        gates.1.push(Arc::downgrade(&gate));
        gate
    }

    /// Ends all accesses; when this returns, none is under way.
    pub(super) fn close(&self, is_lost: bool) {
        let mut gates = lock(&self.gates);
        if gates.0 != OPEN {
            return;
        }
        gates.0 = if is_lost { LOST } else { REVOKED };
        let all: Vec<Arc<Gate>> = gates.1.drain(..).filter_map(|gate| gate.upgrade()).collect();
        all.iter().for_each(|gate| gate.closed.store(gates.0, Ordering::SeqCst));
        drop(gates);
        // It cannot fail: this process has registered.
        let _ = fence::on_all();
        for gate in all {
            while gate.busy.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.owner.send(&Packet::Detach { grant: self.number });
    }
}
