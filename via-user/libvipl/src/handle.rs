//! Handles: an index, the kind of object, and a generation. A handle is looked up and compared, never
//! followed, so a stale or made-up one is found out.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use port::fork;
use port::slab::Slab;
use port::sync::lock;
use vipl::VipReturn;

/// What a program holds: `void *` in the header. Zero is none.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(pub usize);

impl Handle {
    /// NULL.
    pub const NULL: Self = Self(0);

    /// Number of its slot.
    #[must_use]
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 & ((1 << INDEX_BITS) - 1)
    }

    /// Whether it is NULL.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// Kinds of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `VIP_NIC_HANDLE`
    Nic = 1,
    /// `VIP_VI_HANDLE`
    Vi = 2,
    /// `VIP_CQ_HANDLE`
    Cq = 3,
    /// `VIP_PROTECTION_HANDLE`
    Tag = 4,
    /// `VIP_CONN_HANDLE`
    Connection = 5,
    /// `clan_port_t`
    ClanPort = 6,
    /// `clan_region_t`
    ClanRegion = 7,
    /// `clan_remote_t`
    ClanRemote = 8,
    /// `clan_queue_t`
    ClanQueue = 9,
    /// `clan_dma_t`
    ClanDma = 10,
    /// `clan_tripwire_t`
    ClanTripwire = 11,
}

const INDEX_BITS: u32 = 16;
const KIND_BITS: u32 = 8;
const GENERATION_LSB: u32 = INDEX_BITS + KIND_BITS;
const _: () = assert!(Slab::<()>::LIMIT == 1 << INDEX_BITS && usize::BITS == 64);

/// Two threads that use two objects write to no common cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Slot<T> {
    /// The handle that is good now, or 0.
    handle: AtomicUsize,
    /// How many handles it has had: 40 bits never wrap around.
    generation: AtomicUsize,
    /// [`fork::generation`] of the process that made the handle.
    process: AtomicU32,
    value: Mutex<Option<Arc<T>>>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        let (handle, generation) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { handle, generation, process: AtomicU32::new(0), value: Mutex::new(None) }
    }
}

/// The objects of one kind.
#[derive(Debug)]
pub struct Table<T> {
    kind: Kind,
    slots: Slab<Slot<T>>,
}

impl<T> Table<T> {
    /// An empty table.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self { kind, slots: Slab::new() }
    }

    /// The slot whose handle this is, or was a moment ago.
    fn slot(&self, handle: Handle) -> Option<&Slot<T>> {
        let slot = self.slots.get(handle.index())?;
        let good = handle.0 != 0 && slot.handle.load(Ordering::Acquire) == handle.0;
        good.then_some(slot)
    }

    /// What the handle stands for.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if it is not, or no longer, a handle of this kind.
    pub fn get(&self, handle: Handle) -> Result<Arc<T>, VipReturn> {
        let slot = self.slot(handle).ok_or(VipReturn::InvalidParameter)?;
        let value = lock(&slot.value);
        // The slot may have been released, and even taken again, meanwhile.
        if slot.handle.load(Ordering::Acquire) != handle.0 {
            return Err(VipReturn::InvalidParameter);
        }
        value.clone().ok_or(VipReturn::InvalidParameter)
    }

    /// Does something short with what the handle stands for, which nobody can remove meanwhile.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn with<R>(&self, handle: Handle, f: impl FnOnce(&T) -> R) -> Result<R, VipReturn> {
        let slot = self.slot(handle).ok_or(VipReturn::InvalidParameter)?;
        let value = lock(&slot.value);
        if slot.handle.load(Ordering::Acquire) != handle.0 {
            return Err(VipReturn::InvalidParameter);
        }
        value.as_deref().map(f).ok_or(VipReturn::InvalidParameter)
    }

    /// The same with the object to itself. Only for tables whose objects nobody gets by
    /// [`Table::get`].
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn with_mut<R>(&self, handle: Handle, f: impl FnOnce(&mut T) -> R) -> Result<R, VipReturn> {
        let slot = self.slot(handle).ok_or(VipReturn::InvalidParameter)?;
        let mut value = lock(&slot.value);
        if slot.handle.load(Ordering::Acquire) != handle.0 {
            return Err(VipReturn::InvalidParameter);
        }
        let object = value.as_mut().and_then(Arc::get_mut);
        object.map(f).ok_or(VipReturn::InvalidParameter)
    }

    /// Whether the handle is good, and an ancestor of this process made it before it forked. Takes no
    /// lock, which a thread might hold that the child does not have.
    #[must_use]
    pub fn is_inherited(&self, handle: Handle) -> bool {
        let made_in = |slot: &Slot<T>| slot.process.load(Ordering::Relaxed);
        self.slot(handle).is_some_and(|slot| made_in(slot) != fork::generation())
    }

    /// Makes a handle. `make` gets it, and is called before anybody else can use it.
    ///
    /// # Errors
    /// [`VipReturn::ErrorResource`] if there are too many; what `make` says.
    pub fn insert_with(
        &self,
        make: impl FnOnce(Handle) -> Result<Arc<T>, VipReturn>,
    ) -> Result<Handle, VipReturn> {
        // A child may open devices of its own.
        let taken = fork::without_forks(|| self.slots.take().map(|(index, _)| index));
        let index = taken.ok_or(VipReturn::ErrorResource)?;
        let inserted = self.insert_at(index, make);
        inserted.inspect_err(|_| self.release(index))
    }

    /// The same with an index that the caller chooses, which no object has; such a table makes
    /// none itself.
    ///
    /// # Errors
    /// As [`Table::insert_with`].
    pub fn insert_at(
        &self,
        index: usize,
        make: impl FnOnce(Handle) -> Result<Arc<T>, VipReturn>,
    ) -> Result<Handle, VipReturn> {
        let slot = self.slots.at(index).ok_or(VipReturn::ErrorResource)?;
        let generation = slot.generation.fetch_add(1, Ordering::Relaxed) + 1;
        let bits = index | (self.kind as usize) << INDEX_BITS | generation << GENERATION_LSB;
        let value = make(Handle(bits))?;
        *lock(&slot.value) = Some(value);
        slot.process.store(fork::generation(), Ordering::Relaxed);
        slot.handle.store(bits, Ordering::Release);
        Ok(Handle(bits))
    }

    /// Removes a handle. Only one of several callers gets the object.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn remove(&self, handle: Handle) -> Result<Arc<T>, VipReturn> {
        let slot = self.slot(handle).ok_or(VipReturn::InvalidParameter)?;
        let mut value = lock(&slot.value);
        if slot.handle.load(Ordering::Acquire) != handle.0 {
            return Err(VipReturn::InvalidParameter);
        }
        slot.handle.store(0, Ordering::Release);
        let object = value.take().ok_or(VipReturn::InvalidParameter);
        drop(value);
        self.release(handle.index());
        object
    }

    fn release(&self, index: usize) {
        fork::without_forks(|| self.slots.release(index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<u32> {
        Table::new(Kind::Vi)
    }

    #[test]
    fn a_stale_handle_is_found_out() {
        let table = table();
        let first = table.insert_with(|_| Ok(Arc::new(1))).unwrap();
        assert_eq!(*table.get(first).unwrap(), 1);
        assert_eq!(*table.remove(first).unwrap(), 1);
        let second = table.insert_with(|_| Ok(Arc::new(2))).unwrap();
        assert_ne!(first, second);
        for bad in [first, Handle::NULL, Handle(usize::MAX), Handle(second.0 ^ 1 << INDEX_BITS)] {
            assert_eq!(table.get(bad).unwrap_err(), VipReturn::InvalidParameter);
            assert_eq!(table.remove(bad).unwrap_err(), VipReturn::InvalidParameter);
        }
        assert_eq!(*table.get(second).unwrap(), 2);
    }

    #[test]
    fn a_failure_to_make_gives_the_place_back() {
        let table = table();
        let code = table.insert_with(|_| Err(VipReturn::InvalidMtu)).unwrap_err();
        assert_eq!(code, VipReturn::InvalidMtu);
        let handles: Vec<_> =
            (0..200).map(|n| table.insert_with(|_| Ok(Arc::new(n))).unwrap()).collect();
        for (n, handle) in (0..).zip(&handles) {
            assert_eq!(*table.get(*handle).unwrap(), n);
        }
    }

    #[test]
    fn one_of_two_removers_wins() {
        let table = table();
        let handle = table.insert_with(|_| Ok(Arc::new(7))).unwrap();
        let wins: usize = std::thread::scope(|scope| {
            let hands: Vec<_> =
                (0..4).map(|_| scope.spawn(|| usize::from(table.remove(handle).is_ok()))).collect();
            hands.into_iter().map(|hand| hand.join().unwrap()).sum()
        });
        assert_eq!(wins, 1);
    }
}
