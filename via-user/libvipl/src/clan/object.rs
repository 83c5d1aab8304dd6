//! What the handles of `clan.h` stand for.
//!
//! Every function looks its handles up here first: one that is stale, of another kind or made up is a
//! [`Fault`], and so is one that a child has from its parent. No lock is taken for that, so a child
//! does not wait for threads that it does not have.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use port::DmaMemory;
use port::clan::{
    ClanPeer, ClanPort, Cookie, DmaError, DmaQueue, EventQueue, RegionNumber, Remote,
    TripwireNumber,
};
use port::sync::lock;

use super::fault::{Code, Fault, Outcome, Result};
use crate::handle::{Handle, Kind, Table};

/// Open ports.
pub static PORTS: Table<PortObject> = Table::new(Kind::ClanPort);
/// Regions.
pub static REGIONS: Table<RegionObject> = Table::new(Kind::ClanRegion);
/// Regions of others.
pub static REMOTES: Table<RemoteObject> = Table::new(Kind::ClanRemote);
/// Event queues.
pub static QUEUES: Table<QueueObject> = Table::new(Kind::ClanQueue);
/// DMA queues.
pub static DMAS: Table<DmaObject> = Table::new(Kind::ClanDma);
/// Tripwires.
pub static TRIPWIRES: Table<TripwireObject> = Table::new(Kind::ClanTripwire);

/// An open port.
#[derive(Debug)]
pub struct PortObject {
    /// It.
    pub port: Arc<dyn ClanPort>,
    /// Handles of what belongs to it; None once it is closed.
    children: Mutex<Option<BTreeSet<Handle>>>,
    /// Held while a tripwire is set or cleared, whose number another one may have afterwards.
    pub tripwires: Mutex<()>,
}

/// A region.
#[derive(Debug)]
pub struct RegionObject {
    /// Its port.
    pub owner: Arc<PortObject>,
    /// Its number.
    pub number: RegionNumber,
    /// What it consists of: freed with the region if it was allocated for it.
    pub memory: DmaMemory,
}

/// A region of another domain. Each handle has it to itself ([`Table::with_mut`]).
#[derive(Debug)]
pub struct RemoteObject {
    /// Its port.
    pub owner: Arc<PortObject>,
    /// It.
    pub remote: Mutex<Box<dyn Remote>>,
    /// Whose it is.
    pub peer: ClanPeer,
    /// The right by which it is accessed.
    pub cookie: Cookie,
}

/// An event queue.
#[derive(Debug)]
pub struct QueueObject {
    /// Its port.
    pub owner: Arc<PortObject>,
    /// It.
    pub queue: Arc<dyn EventQueue>,
    /// It exists no more: who waits for its events is to give up.
    pub is_destroyed: AtomicBool,
}

/// A DMA queue. Each handle has it to itself.
#[derive(Debug)]
pub struct DmaObject {
    /// Its port.
    pub owner: Arc<PortObject>,
    /// It.
    pub queue: Mutex<Box<dyn DmaQueue>>,
}

/// A tripwire.
#[derive(Debug)]
pub struct TripwireObject {
    /// Its port.
    pub owner: Arc<PortObject>,
    /// Its number.
    pub number: TripwireNumber,
    /// Handle of its region.
    pub region: Handle,
    /// Handle of its event queue.
    pub queue: Handle,
}

/// Why a handle is of no use, if it is of none.
fn check<T>(table: &Table<T>, handle: Handle, what: &str) -> Outcome {
    if table.is_inherited(handle) {
        let text = format!("{what} is its parent's: a child after fork opens a port of its own");
        return Err(Fault::new(Code::Forked, text));
    }
    Ok(())
}

fn no_handle(handle: Handle, what: &str) -> Fault {
    Fault::invalid(if handle.is_null() {
        format!("{what} is NULL")
    } else {
        format!("{what} {:#x} is no such handle, or none any more", handle.0)
    })
}

/// What a handle stands for. `what` is the name of the argument.
///
/// # Errors
/// The handle is of no use.
pub fn get<T>(table: &Table<T>, handle: Handle, what: &str) -> Result<Arc<T>> {
    check(table, handle, what)?;
    table.get(handle).map_err(|_| no_handle(handle, what))
}

/// Does something with what a handle stands for, which nobody uses or removes meanwhile.
///
/// # Errors
/// As [`get`]; those of `f`.
#[inline]
pub fn with<T, R>(
    table: &Table<T>,
    handle: Handle,
    what: &str,
    f: impl FnOnce(&mut T) -> Result<R>,
) -> Result<R> {
    check(table, handle, what)?;
    table.with_mut(handle, f).map_err(|_| no_handle(handle, what))?
}

/// Removes a handle. Only one of several callers gets the object.
///
/// # Errors
/// As [`get`].
pub fn remove<T>(table: &Table<T>, handle: Handle, what: &str) -> Result<Arc<T>> {
    check(table, handle, what)?;
    table.remove(handle).map_err(|_| no_handle(handle, what))
}

/// Makes a handle of an object of a port.
///
/// # Errors
/// There are too many; the port is closed.
pub fn insert<T>(table: &Table<T>, owner: &PortObject, object: T) -> Result<Handle> {
    let inserted = table.insert_with(|_| Ok(Arc::new(object)));
    let handle = inserted
        .map_err(|_| Fault::new(Code::Exhausted, "no free handle: all 65536 are in use".into()))?;
    if let Some(children) = &mut *lock(&owner.children) {
        children.insert(handle);
        return Ok(handle);
    }
    drop(table.remove(handle));
    Err(Fault::invalid("the port was closed meanwhile".to_owned()))
}

impl PortObject {
    /// An open port.
    #[must_use]
    pub fn new(port: Arc<dyn ClanPort>) -> Self {
        Self { port, children: Mutex::new(Some(BTreeSet::new())), tripwires: Mutex::default() }
    }

    /// Forgets what was released.
    pub fn disown(&self, child: Handle) {
        if let Some(children) = &mut *lock(&self.children) {
            children.remove(&child);
        }
    }

    /// Fails unless two things are of one port. `what` names both.
    ///
    /// # Errors
    /// They are not.
    pub fn check_same(self: &Arc<Self>, other: &Arc<Self>, what: &str) -> Outcome {
        if Arc::ptr_eq(self, other) {
            return Ok(());
        }
        Err(Fault::invalid(format!("{what} are of two ports")))
    }

    /// Whether it is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        lock(&self.children).is_none()
    }

    /// Clears tripwires, such as those of a region, and their handles.
    pub fn clear_tripwires(&self, which: impl Fn(&TripwireObject) -> bool) {
        let _setting = lock(&self.tripwires);
        for tripwire in self.take_tripwires(which) {
            // It may have been cleared with its region.
            let _ = self.port.clear_tripwire(tripwire.number);
        }
    }

    /// Removes the handles of tripwires that the port has cleared by itself.
    pub fn forget_tripwires(&self, which: impl Fn(&TripwireObject) -> bool) {
        drop(self.take_tripwires(which));
    }

    fn take_tripwires(&self, which: impl Fn(&TripwireObject) -> bool) -> Vec<Arc<TripwireObject>> {
        let children: Vec<Handle> = lock(&self.children).iter().flatten().copied().collect();
        let is_meant = |child: &Handle| TRIPWIRES.with(*child, &which).is_ok_and(|is| is);
        let take = |child: Handle| {
            self.disown(child);
            TRIPWIRES.remove(child).ok()
        };
        children.into_iter().filter(is_meant).filter_map(take).collect()
    }

    /// Closes it, and all that belongs to it. Its handle is removed already.
    pub fn close(&self) {
        let children = lock(&self.children).take().unwrap_or_default();
        // Those that wait look whether it is closed.
        self.port.wake();
        self.port.close();
        for child in children {
            drop(TRIPWIRES.remove(child));
            drop(DMAS.remove(child));
            drop(REMOTES.remove(child));
            drop(QUEUES.remove(child));
            drop(REGIONS.remove(child));
        }
    }
}

impl RemoteObject {
    /// It, for an access.
    pub fn access(&mut self) -> &mut dyn Remote {
        let remote = self.remote.get_mut();
        &mut **remote.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Why an access failed.
    #[cold]
    pub fn fault(&mut self, error: DmaError, (offset, bytes): (u64, usize), writes: bool) -> Fault {
        let (length, rights) = (self.access().length(), self.cookie.rights);
        let owner = String::from_utf8_lossy(&self.peer.host);
        let owner = owner.trim_end_matches('\0');
        let verb = if writes { "write" } else { "read" };
        let access = format!("{bytes} bytes at offset {offset:#x}");
        let text = if error == DmaError::Lost {
            format!(
                "{access} of a region of node '{owner}': the node, or that memory, exists no more"
            )
        } else if offset.checked_add(bytes as u64).is_none_or(|end| end > length) {
            format!(
                "{access} lie outside the region of node '{owner}', which has {length:#x} bytes"
            )
        } else if !(if writes { rights.write } else { rights.read }) {
            format!(
                "cookie {:#x} of node '{owner}' gives no right to {verb}",
                self.cookie.to_bits()
            )
        } else {
            format!("cookie {:#x} of node '{owner}' was revoked", self.cookie.to_bits())
        };
        Fault::new(Fault::code_of(error), text)
    }
}

impl DmaObject {
    /// It, for a request.
    pub fn queue(&mut self) -> &mut dyn DmaQueue {
        let queue = self.queue.get_mut();
        &mut **queue.unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl QueueObject {
    /// Fails once its events will never come.
    ///
    /// # Errors
    /// It was destroyed, or its port closed.
    pub fn check(&self) -> Outcome {
        if self.is_destroyed.load(Ordering::Acquire) || self.owner.is_closed() {
            return Err(Fault::invalid("the queue was destroyed meanwhile".to_owned()));
        }
        Ok(())
    }
}
