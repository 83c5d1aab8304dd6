//! Registered memory: region numbers, generations, handles.

use std::collections::VecDeque;
use std::sync::Mutex;

use nic_regs::tpt::{Handle, RIGHT_VALID, Region};

use crate::admin::Admin;
use crate::dma::DmaMemory;
use crate::error::Result;
use crate::sync::{lock, lock_relaxed};

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    generation: u16,
    used: Option<Used>,
}

#[derive(Clone, Copy, Debug)]
struct Used {
    domain: u8,
    bus_address: u64,
}

#[derive(Debug)]
struct Table {
    slots: Vec<Slot>,
    /// Free indices, oldest first, so that a stale handle stays recognisable for long.
    free: VecDeque<u16>,
}

/// The regions of a NIC.
#[derive(Debug)]
pub struct Regions {
    table: Mutex<Table>,
    /// Held while a region is set, changed or cleared, across the commands: the device carries out
    /// one at a time in any case.
    changing: Mutex<()>,
    count: usize,
}

impl Regions {
    /// `count` free regions.
    #[must_use]
    pub fn new(count: u16) -> Self {
        let slots = vec![Slot::default(); count.into()];
        let table = Mutex::new(Table { slots, free: (0..count).collect() });
        Self { table, changing: Mutex::new(()), count: count.into() }
    }

    /// Makes memory reachable for the device under a handle that is never zero.
    ///
    /// # Errors
    /// [`port::Error::Exhausted`]; [`port::Error::BadArgument`] for 4 GiB and more, and for memory that
    /// the process itself may not read; a failed mapping or command.
    pub fn register(
        &self,
        admin: &Admin,
        memory: &DmaMemory,
        domain: u8,
        tag: u16,
        rights: u8,
    ) -> Result<Handle> {
        let bad_length =
            port::Error::BadArgument { what: "length of region", value: memory.len() as u64 };
        let length = u32::try_from(memory.len()).ok().filter(|n| *n > 0).ok_or(bad_length)?;
        let bus_address = admin.bus().map(memory)?;
        let _changing = lock_relaxed(&self.changing, admin.bus(), "a change of a region");
        let (index, generation) = {
            let mut table = lock(&self.table);
            let Some(index) = table.free.pop_front() else {
                admin.bus().unmap(bus_address);
                return Err(port::Error::Exhausted { what: "region", limit: self.count }.into());
            };
            let slot = &mut table.slots[usize::from(index)];
            slot.generation = slot.generation.checked_add(1).unwrap_or(1);
            slot.used = Some(Used { domain, bus_address });
            (index, slot.generation)
        };
        let region = Region {
            va_base: memory.address(),
            bus_base: bus_address,
            length,
            tag,
            generation,
            domain,
            rights: rights | RIGHT_VALID,
        };
        if let Err(error) = admin.region_set(index, region) {
            self.release(index);
            admin.bus().unmap(bus_address);
            return Err(error);
        }
        Ok(Handle::new(index, generation))
    }

    /// Takes a region of `domain` back. Afterwards the device does not touch its memory any more.
    ///
    /// # Errors
    /// [`port::Error::NoSuch`] for a handle that is not (or no longer) valid in the domain; a failed
    /// command, after which it is as it was.
    pub fn deregister(&self, admin: &Admin, handle: Handle, domain: u8) -> Result<()> {
        let _changing = lock_relaxed(&self.changing, admin.bus(), "a change of a region");
        let bus_address = self.find(handle, domain)?;
        admin.region_clear(handle.index())?;
        admin.bus().unmap(bus_address);
        self.release(handle.index());
        Ok(())
    }

    /// Bus address of a region.
    fn find(&self, handle: Handle, domain: u8) -> Result<u64> {
        let table = lock(&self.table);
        let slot = table.slots.get(usize::from(handle.index()));
        let used = slot.filter(|slot| slot.generation == handle.generation());
        let used = used.and_then(|slot| slot.used).filter(|used| used.domain == domain);
        let no_such = port::Error::NoSuch { what: "memory handle", index: handle.0 };
        used.map(|used| used.bus_address).ok_or(no_such.into())
    }

    /// Gives a region of `domain`, which is `memory`, another tag and other rights under the handle
    /// that it has. The device knows no such step, so the region is taken away and set again: until
    /// this returns, accesses through the handle are refused, and none ever sees the tag of one and
    /// the rights of the other.
    ///
    /// # Errors
    /// [`port::Error::NoSuch`] as for [`Regions::deregister`]; a failed command, after which the device may
    /// refuse the handle until it is deregistered.
    pub fn change(
        &self,
        admin: &Admin,
        handle: Handle,
        memory: &DmaMemory,
        domain: u8,
        tag: u16,
        rights: u8,
    ) -> Result<()> {
        let bad_length =
            port::Error::BadArgument { what: "length of region", value: memory.len() as u64 };
        let length = u32::try_from(memory.len()).map_err(|_| bad_length)?;
        let _changing = lock_relaxed(&self.changing, admin.bus(), "a change of a region");
        let bus_base = self.find(handle, domain)?;
        admin.region_clear(handle.index())?;
        let region = Region {
            va_base: memory.address(),
            bus_base,
            length,
            tag,
            generation: handle.generation(),
            domain,
            rights: rights | RIGHT_VALID,
        };
        admin.region_set(handle.index(), region)
    }

    /// The handles in use by `domain`.
    #[must_use]
    pub fn of_domain(&self, domain: u8) -> Vec<Handle> {
        let table = lock(&self.table);
        let used = |(index, slot): (usize, &Slot)| {
            slot.used.filter(|used| used.domain == domain)?;
            Some(Handle::new(u16::try_from(index).ok()?, slot.generation))
        };
        table.slots.iter().enumerate().filter_map(used).collect()
    }

    fn release(&self, index: u16) {
        let mut table = lock(&self.table);
        table.slots[usize::from(index)].used = None;
        table.free.push_back(index);
    }
}
