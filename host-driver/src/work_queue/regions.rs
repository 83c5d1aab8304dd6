//! The regions that a work queue has met: who posts need not look in a table that others write.

use nic_regs::desc::ALIGNMENT;
use nic_regs::doorbell::Token;
use nic_regs::tpt::Handle;

use super::slot::Front;
use crate::dma::DmaMemory;
use crate::error::{Error, Result};

/// Regions that are kept though nothing in them is posted.
const KEPT: usize = 8;

/// A region.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) handle: Handle,
    pub(super) memory: DmaMemory,
    /// Virtual address of its first byte.
    pub(super) address: u64,
    /// Bytes from where tokens count to its first byte: they count from the base rounded down to
    /// 64 bytes.
    lead: u64,
    /// The VI that posts may read its bytes.
    pub(super) readable: bool,
    /// Descriptors in it that are posted.
    pub(super) posted: u32,
}

impl Known {
    fn new(handle: Handle, memory: &DmaMemory, readable: bool) -> Self {
        let address = memory.address();
        let memory = memory.counted_apart();
        Self { handle, memory, address, lead: address % ALIGNMENT, readable, posted: 0 }
    }

    /// The front of the descriptor at `offset`, if it lies inside and is aligned.
    #[inline]
    pub(super) fn front(&self, offset: usize) -> Option<Front<'_>> {
        self.memory.line(offset).map(Front)
    }

    /// Where tokens say that `offset` is.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if it is too far from the base.
    #[inline]
    pub(super) fn offset_64(&self, offset: usize) -> Result<u32> {
        let distance = self.lead + offset as u64;
        match u32::try_from(distance / ALIGNMENT) {
            Ok(number) if number < 1 << Token::OFFSET_BITS => Ok(number),
            _ => Err(Error::BadArgument { what: "offset of descriptor", value: distance }),
        }
    }
}

/// The regions of one queue.
#[derive(Debug, Default)]
pub(super) struct Regions {
    known: Vec<Known>,
    /// The one that was met last.
    last: usize,
}

impl Regions {
    /// Place of the region with this handle.
    #[inline]
    pub(super) fn find(&mut self, handle: Handle) -> Option<usize> {
        if self.known.get(self.last).is_some_and(|known| known.handle == handle) {
            return Some(self.last);
        }
        let found = self.known.iter().position(|known| known.handle == handle)?;
        self.last = found;
        Some(found)
    }

    /// Meets a region; the place of one in which nothing is posted any more may be taken.
    pub(super) fn learn(&mut self, handle: Handle, memory: &DmaMemory, readable: bool) -> usize {
        let known = Known::new(handle, memory, readable);
        let unused = self.known.iter().position(|known| known.posted == 0);
        self.last = match unused {
            Some(place) if self.known.len() >= KEPT || self.known[place].handle.0 == 0 => {
                self.known[place] = known;
                place
            }
            _ => {
                self.known.push(known);
                self.known.len() - 1
            }
        };
        self.last
    }

    /// Forgets a region: its rights have changed, or it is no more. Its memory is kept while
    /// something in it is posted.
    pub(super) fn forget(&mut self, handle: Handle) {
        for known in self.known.iter_mut().filter(|known| known.handle == handle) {
            known.readable = false;
            if known.posted == 0 {
                // No handle is zero; the next region that is met takes the place.
                known.handle = Handle(0);
            }
        }
    }

    /// Rights in any region may have changed.
    pub(super) fn forget_all(&mut self) {
        self.known.iter_mut().for_each(|known| known.readable = false);
    }

    #[inline]
    pub(super) fn at(&self, place: usize) -> &Known {
        &self.known[place]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, place: usize) -> &mut Known {
        &mut self.known[place]
    }
}
