//! The region table: what a handle names, and what a VI may reach through it.

use bitvec::vec::BitVec;
use nic_regs::doorbell::Token;
use nic_regs::limits::REGION_COUNT;
use nic_regs::tpt::{Handle, RIGHT_VALID, Region};

use crate::bits::low32;

/// Whose access it is: a VI's protection tag and domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub(crate) fn get(&self, index: u16) -> Option<&Region> {
        let index = usize::from(index);
        self.valid.get(index).as_deref().copied().unwrap_or(false).then(|| &self.entries[index])
    }

    pub(crate) fn set(&mut self, index: u16, region: Region) {
        self.entries[usize::from(index)] = region;
        self.valid.set(usize::from(index), true);
    }

    pub(crate) fn clear(&mut self, index: u16) {
        self.valid.set(usize::from(index), false);
    }

    fn owned(&self, index: u16, owner: Owner) -> Option<&Region> {
        self.get(index).filter(|r| r.tag == owner.tag && r.domain == owner.domain)
    }

    fn handled(&self, handle: Handle, owner: Owner) -> Option<&Region> {
        self.owned(handle.index(), owner).filter(|r| r.generation == handle.generation())
    }

    /// Bus address of the descriptor that `token` names, if its first `bytes` bytes may be reached.
    pub(crate) fn reach(&self, token: Token, bytes: u64, owner: Owner) -> Option<u64> {
        let region = self.owned(token.region, owner)?;
        let start = (64 * u64::from(token.offset_64)).checked_sub(region.bus_base % 64)?;
        (start + bytes <= u64::from(region.length)).then(|| region.bus_base + start)
    }

    /// The token of the descriptor at `next`: where it is, if it may start there.
    pub(crate) fn link(&self, next: u64, handle: Handle, owner: Owner) -> Option<(u16, u32)> {
        let region = self.handled(handle, owner)?;
        let distance = next.checked_sub(region.va_base)?;
        if !next.is_multiple_of(64) || distance >= u64::from(region.length) {
            return None;
        }
        let offset_64 = (distance + region.va_base % 64) / 64;
        (offset_64 < 1 << Token::OFFSET_BITS).then(|| (handle.index(), low32(offset_64)))
    }

    /// Bus address of a data segment, if all of it may be reached.
    pub(crate) fn translate(
        &self,
        va: u64,
        handle: Handle,
        length: u32,
        owner: Owner,
    ) -> Option<u64> {
        self.translate_with(RIGHT_VALID, va, handle, length, owner)
    }

    /// The same of a region with this right.
    pub(crate) fn translate_with(
        &self,
        right: u8,
        va: u64,
        handle: Handle,
        length: u32,
        owner: Owner,
    ) -> Option<u64> {
        let region = self.handled(handle, owner).filter(|r| r.rights & right != 0)?;
        let start = va.checked_sub(region.va_base)?;
        let end = start.checked_add(u64::from(length))?;
        (end <= u64::from(region.length)).then(|| region.bus_base + start)
    }
}
