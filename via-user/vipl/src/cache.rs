//! A cache of registrations, for layers that are given other people's buffers.
//!
//! Registering memory costs commands to the NIC, so a layer that sends straight from its caller's
//! buffers keeps what it has registered. An entry is a registration; a [`Lease`] holds it in use. Entries
//! that nobody uses stay until there is no room (the one that was released the longest ago goes first),
//! or until their memory is to be unmapped ([`RegistrationCache::invalidate`]). What is in use is never
//! taken away: if everything is, a registration is made for that one lease and not kept.
//!
//! No lock is held while the NIC is asked, so look-ups of other threads go on meanwhile. Two threads that
//! miss the same memory at once both register it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use port::DmaMemory;
use port::sync::lock;

use crate::attributes::MemAttributes;
use crate::descriptor::Segment;
use crate::error::{Error, Result, VipReturn};
use crate::memory::Region;
use crate::objects::Nic;

/// Bounds of a cache. Leases that are not kept come on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Most registrations.
    pub entries: usize,
    /// Most bytes of all registrations together.
    pub bytes: u64,
}

/// What a cache has seen since it was made, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Look-ups that found a registration.
    pub hits: u64,
    /// Look-ups that made one.
    pub misses: u64,
    /// Registrations that were given up to make room.
    pub evictions: u64,
    /// Registrations that were given up by [`RegistrationCache::invalidate`].
    pub invalidations: u64,
    /// Misses that were not kept, because everything was in use or the memory is larger than the cache.
    pub not_kept: u64,
    /// Registrations that the cache holds now.
    pub entries: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// A cache of registrations with one NIC. Clones are the same cache.
#[derive(Clone, Debug)]
pub struct RegistrationCache {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    nic: Nic,
    limits: CacheLimits,
    state: Mutex<State>,
}

#[derive(Debug)]
struct Entry {
    region: Region,
    attributes: MemAttributes,
    uses: usize,
    /// When it was released last; its place among the idle ones.
    idle_since: u64,
    /// Its memory is to be unmapped: nobody gets it any more.
    stale: bool,
}

impl Entry {
    fn length(&self) -> u64 {
        self.region.memory().len() as u64
    }

    fn range(&self) -> Range<u64> {
        let start = self.region.memory().address();
        start..start.saturating_add(self.length())
    }
}

/// First address, and a number that distinguishes entries with the same one.
type Key = (u64, u64);

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<Key, Entry>,
    /// Entries that nobody uses, the oldest first.
    idle: BTreeSet<(u64, Key)>,
    /// No entry is longer, so a look-up need not go further back.
    longest: u64,
    /// Counts whatever needs an order.
    ticks: u64,
    counters: CacheCounters,
}

impl State {
    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    /// An entry with these attributes that covers a range.
    fn find(&self, range: &Range<u64>, attributes: MemAttributes) -> Option<Key> {
        let first = range.end.saturating_sub(self.longest).min(range.start);
        let candidates = self.entries.range((first, 0)..=(range.start, u64::MAX)).rev();
        let fits = |entry: &Entry| {
            !entry.stale && entry.attributes == attributes && entry.range().end >= range.end
        };
        candidates.filter(|(_, entry)| fits(entry)).map(|(key, _)| *key).next()
    }

    /// Somebody uses an entry.
    fn hold(&mut self, key: Key) -> Option<Region> {
        let entry = self.entries.get_mut(&key)?;
        if entry.uses == 0 {
            self.idle.remove(&(entry.idle_since, key));
        }
        entry.uses += 1;
        Some(entry.region.clone())
    }

    /// Takes an idle entry out of the cache.
    fn take_out(&mut self, key: Key) -> Option<Region> {
        let entry = self.entries.remove(&key)?;
        self.idle.remove(&(entry.idle_since, key));
        self.give_room(entry.length());
        Some(entry.region)
    }

    fn give_room(&mut self, bytes: u64) {
        self.counters.entries -= 1;
        self.counters.bytes -= bytes;
    }

    /// Takes out the entry that is idle for the longest time.
    fn evict(&mut self) -> Option<Region> {
        let (_, key) = *self.idle.first()?;
        self.counters.evictions += 1;
        self.take_out(key)
    }

    /// Reserves room for one entry, and gives those that had to go. None if there is none to be had.
    fn reserve(&mut self, bytes: u64, limits: CacheLimits) -> Option<Vec<Region>> {
        let idle: u64 =
            self.idle.iter().filter_map(|(_, key)| self.entries.get(key)).map(Entry::length).sum();
        let (kept_entries, kept_bytes) =
            (self.counters.entries - self.idle.len(), self.counters.bytes - idle);
        if kept_entries >= limits.entries || kept_bytes.checked_add(bytes)? > limits.bytes {
            return None;
        }
        let mut evicted = Vec::new();
        while self.counters.entries >= limits.entries || self.counters.bytes + bytes > limits.bytes
        {
            evicted.push(self.evict()?);
        }
        self.counters.entries += 1;
        self.counters.bytes += bytes;
        Some(evicted)
    }
}

/// A registration in use. It stays valid until this is dropped, whatever happens to the cache.
#[derive(Debug)]
pub struct Lease {
    cache: Arc<Inner>,
    region: Region,
    /// The memory that was asked for.
    memory: DmaMemory,
    /// None: it is not kept.
    key: Option<Key>,
}

impl Lease {
    /// The registration; it may be of more memory than was asked for.
    #[must_use]
    pub const fn region(&self) -> &Region {
        &self.region
    }

    /// The memory that was asked for, as a segment of a descriptor.
    #[must_use]
    pub fn segment(&self) -> Segment {
        let length = u32::try_from(self.memory.len()).unwrap_or(u32::MAX);
        Segment { address: self.memory.address(), handle: self.region.handle(), length }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let unused = match self.key {
            None => Some(self.region.clone()),
            Some(key) => self.cache.give_back(key),
        };
        self.cache.deregister(unused);
    }
}

impl Inner {
    /// Deregisters what is not in the cache any more. A NIC that fails or is closed touches nothing.
    fn deregister(&self, regions: impl IntoIterator<Item = Region>) {
        for region in regions {
            let _ = self.nic.deregister_mem(&region);
        }
    }

    /// Ends one use of an entry; gives it if it is to be deregistered.
    fn give_back(&self, key: Key) -> Option<Region> {
        let mut state = lock(&self.state);
        let now = state.tick();
        let entry = state.entries.get_mut(&key)?;
        entry.uses -= 1;
        if entry.uses > 0 {
            return None;
        }
        entry.idle_since = now;
        if entry.stale {
            return state.take_out(key);
        }
        state.idle.insert((now, key));
        None
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let entries = core::mem::take(&mut lock(&self.state).entries);
        self.deregister(entries.into_values().map(|entry| entry.region));
    }
}

impl RegistrationCache {
    /// An empty cache of registrations with `nic`.
    #[must_use]
    pub fn new(nic: &Nic, limits: CacheLimits) -> Self {
        let inner = Inner { nic: nic.clone(), limits, state: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// What the cache has seen, and what it holds.
    #[must_use]
    pub fn counters(&self) -> CacheCounters {
        lock(&self.inner.state).counters
    }

    /// A registration of `memory` with these attributes: one that covers it, or a new one.
    ///
    /// # Errors
    /// As [`Nic::register_mem`]. If the NIC has no region left, entries that nobody uses are given up
    /// first.
    pub fn register(&self, memory: &DmaMemory, attributes: MemAttributes) -> Result<Lease> {
        let inner = &self.inner;
        let lease =
            |region, key| Lease { cache: Arc::clone(inner), region, memory: memory.clone(), key };
        let bytes = memory.len() as u64;
        let range = memory.address()..memory.address().saturating_add(bytes);
        let room = {
            let mut state = lock(&inner.state);
            if let Some(key) = state.find(&range, attributes)
                && let Some(region) = state.hold(key)
            {
                state.counters.hits += 1;
                return Ok(lease(region, Some(key)));
            }
            state.counters.misses += 1;
            let room = state.reserve(bytes, inner.limits);
            state.counters.not_kept += u64::from(room.is_none());
            room
        };
        let kept = room.is_some();
        inner.deregister(room.into_iter().flatten());
        let region = match self.register_new(memory, attributes) {
            Ok(region) => region,
            Err(error) => {
                if kept {
                    lock(&inner.state).give_room(bytes);
                }
                return Err(error);
            }
        };
        if !kept {
            return Ok(lease(region, None));
        }
        let mut state = lock(&inner.state);
        let key = (range.start, state.tick());
        let (uses, idle_since, stale) = (1, 0, false);
        let entry = Entry { region: region.clone(), attributes, uses, idle_since, stale };
        state.longest = state.longest.max(bytes);
        state.entries.insert(key, entry);
        Ok(lease(region, Some(key)))
    }

    /// Registers memory; entries that nobody uses make room in the NIC.
    fn register_new(&self, memory: &DmaMemory, attributes: MemAttributes) -> Result<Region> {
        loop {
            match self.inner.nic.register_mem(memory, attributes) {
                Err(Error { code: VipReturn::ErrorResource, source }) => {
                    let evicted = lock(&self.inner.state).evict();
                    if evicted.is_none() {
                        return Err(Error { code: VipReturn::ErrorResource, source });
                    }
                    self.inner.deregister(evicted);
                }
                registered => return registered,
            }
        }
    }

    /// Forgets every registration of which a byte lies in `range` (virtual addresses), because that
    /// memory is to be unmapped or used for something else. Those that nobody uses are deregistered
    /// when this returns. The others are not found any more, and are deregistered when they are given
    /// back; how many these are is returned, and unless it is 0 the memory must not go yet.
    pub fn invalidate(&self, range: Range<u64>) -> usize {
        if range.is_empty() {
            return 0;
        }
        let (unused, in_use) = {
            let mut state = lock(&self.inner.state);
            // Longer ones begin nowhere before this.
            let first = range.start.saturating_sub(state.longest);
            let candidates = state.entries.range((first, 0)..(range.end, 0));
            let meets = |entry: &Entry| entry.range().end > range.start;
            let met: Vec<Key> =
                candidates.filter(|(_, entry)| meets(entry)).map(|(key, _)| *key).collect();
            let (mut unused, mut in_use) = (Vec::new(), 0);
            for key in met {
                let Some(entry) = state.entries.get_mut(&key) else { continue };
                let first_time = !core::mem::replace(&mut entry.stale, true);
                if entry.uses > 0 {
                    in_use += 1;
                } else {
                    unused.extend(state.take_out(key));
                }
                state.counters.invalidations += u64::from(first_time);
            }
            (unused, in_use)
        };
        self.inner.deregister(unused);
        in_use
    }
}
