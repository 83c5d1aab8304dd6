//! Registered memory: region numbers, generations, handles.

use std::collections::VecDeque;
use std::sync::Mutex;

use nic_regs::tpt::{Handle, RIGHT_VALID, Region};

use crate::admin::Admin;
use crate::bus::Bus;
use crate::dma::DmaMemory;
use crate::error::{Error, Result};
use crate::sync::lock;

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
    count: usize,
}

impl Regions {
    /// `count` free regions.
    #[must_use]
    pub fn new(count: u16) -> Self {
        let slots = vec![Slot::default(); count.into()];
        Self { table: Mutex::new(Table { slots, free: (0..count).collect() }), count: count.into() }
    }

    /// Makes memory reachable for the device under a handle that is never zero.
    ///
    /// # Errors
    /// [`Error::Exhausted`]; [`Error::BadArgument`] for 4 GiB and more; a failed mapping or
    /// command.
    pub fn register(
        &self,
        admin: &Admin,
        bus: &dyn Bus,
        memory: &DmaMemory,
        domain: u8,
        tag: u16,
        rights: u8,
    ) -> Result<Handle> {
        let bad_length =
            Error::BadArgument { what: "length of region", value: memory.len() as u64 };
        let length = u32::try_from(memory.len()).ok().filter(|n| *n > 0).ok_or(bad_length)?;
        let bus_address = bus.map(memory)?;
        let (index, generation) = {
            let mut table = lock(&self.table);
            let Some(index) = table.free.pop_front() else {
                bus.unmap(bus_address);
                return Err(Error::Exhausted { what: "region", limit: self.count });
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
            bus.unmap(bus_address);
            return Err(error);
        }
        Ok(Handle::new(index, generation))
    }

    /// Takes a region of `domain` back. Afterwards the device does not touch its memory any more.
    ///
    /// # Errors
    /// [`Error::NoSuch`] for a handle that is not (or no longer) valid in the domain; a failed
    /// command, after which the memory stays mapped.
    pub fn deregister(
        &self,
        admin: &Admin,
        bus: &dyn Bus,
        handle: Handle,
        domain: u8,
    ) -> Result<()> {
        let no_such = Error::NoSuch { what: "memory handle", index: handle.0 };
        let bus_address = {
            let mut table = lock(&self.table);
            let slot = table.slots.get_mut(usize::from(handle.index())).ok_or(no_such.clone())?;
            match slot.used {
                Some(used) if slot.generation == handle.generation() && used.domain == domain => {
                    slot.used = None;
                    used.bus_address
                }
                _ => return Err(no_such),
            }
        };
        admin.region_clear(handle.index())?;
        bus.unmap(bus_address);
        self.release(handle.index());
        Ok(())
    }

    /// Gives a region of `domain`, which is `memory`, another tag and other rights under the handle
    /// that it has. The device knows no such step, so the region is taken away and set again: until
    /// this returns, accesses through the handle are refused, and none ever sees the tag of one and
    /// the rights of the other.
    ///
    /// # Errors
    /// [`Error::NoSuch`] as for [`Regions::deregister`]; a failed command, after which the device may
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
        let no_such = Error::NoSuch { what: "memory handle", index: handle.0 };
        let bad_length =
            Error::BadArgument { what: "length of region", value: memory.len() as u64 };
        let length = u32::try_from(memory.len()).map_err(|_| bad_length)?;
        let used = {
            let table = lock(&self.table);
            let slot = table.slots.get(usize::from(handle.index())).ok_or(no_such.clone())?;
            let mine = |used: &Used| used.domain == domain;
            slot.used.filter(mine).filter(|_| slot.generation == handle.generation())
        };
        let bus_base = used.ok_or(no_such)?.bus_address;
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
