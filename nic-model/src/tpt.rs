//! The region table: what a handle names, and what a VI may reach through it.

use bitvec::vec::BitVec;
use nic_regs::doorbell::Token;
use nic_regs::limits::REGION_COUNT;
use nic_regs::tpt::{Handle, Region};

use crate::bits::low32;

/// Whose access it is: a VI's protection tag and domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// Protection tag.
    pub tag: u16,
    /// Domain.
    pub domain: u8,
}

/// The region table.
#[derive(Clone, Debug)]
pub struct Regions {
    entries: Vec<Region>,
    valid: BitVec,
}

impl Default for Regions {
    fn default() -> Self {
        Self {
            entries: vec![Region::default(); REGION_COUNT],
            valid: BitVec::repeat(false, REGION_COUNT),
        }
    }
}

impl Regions {
    /// The region at `index`, if it is valid.
    #[must_use]
    pub fn get(&self, index: u16) -> Option<&Region> {
        let index = usize::from(index);
        self.valid.get(index).as_deref().copied().unwrap_or(false).then(|| &self.entries[index])
    }

    /// The region at `index` to change, if it is valid.
    pub fn get_mut(&mut self, index: u16) -> Option<&mut Region> {
        self.get(index)?;
        self.entries.get_mut(usize::from(index))
    }

    /// Makes a region valid.
    pub fn set(&mut self, index: u16, region: Region) {
        self.entries[usize::from(index)] = region;
        self.valid.set(usize::from(index), true);
    }

    pub(crate) fn clear(&mut self, index: u16) {
        self.valid.set(usize::from(index), false);
    }

    /// Looks up a region and checks the access.
    #[must_use]
    pub fn look_up(&self, index: u16, access: &Access) -> Option<Found> {
        access.check(self.get(index)?)
    }

    /// Bus address of the descriptor that `token` names, if its first `bytes` bytes may be reached.
    pub(crate) fn reach(&self, token: Token, bytes: u32, owner: Owner) -> Option<u64> {
        let place = Place::Offset(64 * u64::from(token.offset_64));
        let access = Access { generation: None, place, length: bytes, owner, rights: 0 };
        self.look_up(token.region, &access).map(|found| found.bus)
    }

    /// Region and offset of the descriptor at `next`, if it may start there.
    pub(crate) fn link(&self, next: u64, handle: Handle, owner: Owner) -> Option<(u16, u32)> {
        let (generation, place) = (Some(handle.generation()), Place::Address(next));
        let access = Access { generation, place, length: 1, owner, rights: 0 };
        let found = self.look_up(handle.index(), &access)?;
        let good = next.is_multiple_of(64) && found.offset_64 < 1 << Token::OFFSET_BITS;
        good.then(|| (handle.index(), found.offset_64))
    }

    /// Bus address, and how many of `length` bytes may be reached from there on.
    pub(crate) fn allowed(
        &self,
        address: u64,
        handle: Handle,
        length: u32,
        owner: Owner,
    ) -> (u64, u32) {
        let (generation, place) = (Some(handle.generation()), Place::Address(address));
        let access = Access { generation, place, length: 0, owner, rights: 0 };
        let found = self.look_up(handle.index(), &access);
        found.map_or((0, 0), |found| (found.bus, found.room.min(length)))
    }

    /// Bus address of `length` bytes, if all may be reached with these rights.
    pub(crate) fn translate(
        &self,
        address: u64,
        handle: Handle,
        length: u32,
        owner: Owner,
        rights: u8,
    ) -> Option<u64> {
        let (generation, place) = (Some(handle.generation()), Place::Address(address));
        let access = Access { generation, place, length, owner, rights };
        self.look_up(handle.index(), &access).map(|found| found.bus)
    }
}

/// Where an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A virtual address.
    Address(u64),
    /// Bytes from the region's base, rounded down to 64.
    Offset(u64),
}

/// An access to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The generation that it must have, if that is checked.
    pub generation: Option<u16>,
    /// First byte.
    pub place: Place,
    /// Bytes.
    pub length: u32,
    /// Whose it is.
    pub owner: Owner,
    /// Rights that it needs.
    pub rights: u8,
}

/// The answer to an access that is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Bus address of the first byte.
    pub bus: u64,
    /// Bytes from there to the region's end.
    pub room: u32,
    /// Distance from the region's base, rounded down to 64, in units of 64 bytes.
    pub offset_64: u32,
}

impl Access {
    /// Checks the access to a valid region.
    #[must_use]
    pub fn check(&self, region: &Region) -> Option<Found> {
        let slack = region.bus_base % 64;
        let start = match self.place {
            Place::Address(address) => address.checked_sub(region.va_base)?,
            Place::Offset(offset) => offset.checked_sub(slack)?,
        };
        let room = u64::from(region.length).checked_sub(start)?;
        let allowed = u64::from(self.length) <= room
            && self.generation.is_none_or(|generation| generation == region.generation)
            && self.owner == Owner { tag: region.tag, domain: region.domain }
            && region.rights & self.rights == self.rights;
        allowed.then(|| Found {
            // No bytes may begin at the end of the address space.
            bus: region.bus_base.wrapping_add(start),
            room: low32(room),
            offset_64: low32((start + slack) / 64),
        })
    }
}
