//! Registered memory and protection tags.

use std::sync::Mutex;

use port::sync::lock;
use port::{DmaMemory, Error, Handle, RdmaAccess, Result};

/// Most regions.
pub(crate) const REGIONS: u32 = 32_768;
/// Most tags.
pub(crate) const TAGS: u32 = 65_535;

/// A registered region.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) memory: DmaMemory,
    pub(crate) tag: u16,
    pub(crate) rdma: RdmaAccess,
}

impl Region {
    /// Offset of a range in the region, if it lies in it.
    #[inline]
    pub(crate) fn offset(&self, address: u64, length: u64) -> Option<usize> {
        let (offset, room) = self.reach(address)?;
        (length <= room as u64).then_some(offset)
    }

    /// Offset of an address in the region, and how many bytes there are from it on.
    #[inline]
    pub(crate) fn reach(&self, address: u64) -> Option<(usize, usize)> {
        let offset = usize::try_from(address.checked_sub(self.memory.address())?).ok()?;
        Some((offset, self.memory.len().checked_sub(offset)?))
    }
}

#[derive(Debug, Default)]
struct Slot {
    region: Option<Region>,
    /// Of the handle that the slot has, or had last.
    generation: u16,
}

/// The regions and tags of a port.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    slots: Mutex<Vec<Slot>>,
    tags: Mutex<Vec<bool>>,
}

const fn no_region(handle: Handle) -> Error {
    Error::NoSuch { what: "memory handle", index: handle.0 }
}

impl Regions {
    pub(crate) fn create_tag(&self) -> Result<u16> {
        let tags = &mut *lock(&self.tags);
        let free = tags.iter().position(|taken| !taken).unwrap_or(tags.len());
        // Tag 0 stays free: no region has it by mistake.
        let number = u16::try_from(free + 1);
        let number = number.map_err(|_| Error::Exhausted { what: "tag", limit: TAGS as usize })?;
        if free == tags.len() {
            tags.push(true);
        } else {
            tags[free] = true;
        }
        Ok(number)
    }

    pub(crate) fn destroy_tag(&self, tag: u16) {
        if let Some(taken) = lock(&self.tags).get_mut(usize::from(tag).wrapping_sub(1)) {
            *taken = false;
        }
    }

    pub(crate) fn register(&self, region: Region) -> Result<Handle> {
        let slots = &mut *lock(&self.slots);
        let free = slots.iter().position(|slot| slot.region.is_none()).unwrap_or(slots.len());
        let limit = REGIONS as usize;
        let none_left = Error::Exhausted { what: "region", limit };
        if free >= limit {
            return Err(none_left);
        }
        let index = u16::try_from(free).map_err(|_| none_left)?;
        if free == slots.len() {
            slots.push(Slot::default());
        }
        let slot = &mut slots[free];
        slot.generation = slot.generation.wrapping_add(1).max(1);
        slot.region = Some(region);
        Ok(Handle::new(index, slot.generation))
    }

    /// The region of a handle.
    pub(crate) fn get(&self, handle: Handle) -> Option<Region> {
        let slots = lock(&self.slots);
        let slot = slots.get(usize::from(handle.index()))?;
        slot.region.clone().filter(|_| slot.generation == handle.generation())
    }

    /// Takes a region out.
    pub(crate) fn deregister(&self, handle: Handle) -> Result<Region> {
        let mut slots = lock(&self.slots);
        let slot = slots.get_mut(usize::from(handle.index()));
        let slot = slot.filter(|slot| slot.generation == handle.generation());
        slot.and_then(|slot| slot.region.take()).ok_or(no_region(handle))
    }

    /// Changes a region; the handle stays.
    pub(crate) fn set(&self, handle: Handle, region: Region) -> Result<()> {
        let mut slots = lock(&self.slots);
        let slot = slots.get_mut(usize::from(handle.index()));
        let slot = slot.filter(|slot| slot.generation == handle.generation());
        let old = slot.and_then(|slot| slot.region.as_mut()).ok_or(no_region(handle))?;
        *old = region;
        Ok(())
    }

    /// Takes all regions out.
    pub(crate) fn clear(&self) {
        lock(&self.slots).iter_mut().for_each(|slot| slot.region = None);
        lock(&self.tags).clear();
    }
}

/// Regions that a VI has met, so that its messages need no lock. Whoever changes a region has every
/// VI forget it.
#[derive(Debug, Default)]
pub(crate) struct Known(Vec<(Handle, Region)>);

/// Regions that a VI remembers.
const KNOWN_MAX: usize = 16;

impl Known {
    /// Place of a region among those known, looked for in `regions` if it is not yet.
    #[inline]
    pub(crate) fn find(&mut self, regions: &Regions, handle: Handle) -> Option<usize> {
        // Most programs have one region for everything.
        match self.0.first() {
            Some((known, _)) if *known == handle => Some(0),
            _ => self.find_behind(regions, handle),
        }
    }

    fn find_behind(&mut self, regions: &Regions, handle: Handle) -> Option<usize> {
        match self.0.iter().position(|(known, _)| *known == handle) {
            Some(place) => Some(place),
            None => self.learn(regions, handle),
        }
    }

    #[cold]
    fn learn(&mut self, regions: &Regions, handle: Handle) -> Option<usize> {
        let region = regions.get(handle)?;
        let memory = region.memory.counted_apart();
        self.0.push((handle, Region { memory, ..region }));
        Some(self.0.len() - 1)
    }

    /// A region by its place. Places hold until [`Known::trim`].
    #[inline]
    pub(crate) fn at(&self, place: usize) -> &Region {
        &self.0[place].1
    }

    /// Handle of a place.
    pub(crate) fn handle(&self, place: usize) -> Handle {
        self.0[place].0
    }

    /// Forgets the oldest if there are many.
    #[inline]
    pub(crate) fn trim(&mut self) {
        if self.0.len() > KNOWN_MAX {
            self.0.drain(..KNOWN_MAX / 2);
        }
    }

    pub(crate) fn forget(&mut self, handle: Handle) {
        self.0.retain(|(known, _)| *known != handle);
    }
}
