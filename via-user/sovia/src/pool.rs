//! Memory in which packets arrive, cut from memory files: software NICs of other processes store there
//! themselves. A file is a descriptor of the program, so each is for several connections.

use std::sync::Mutex;

use port::sync::lock;
use vipl::DmaMemory;
use vipl::memory::stride;

use crate::error::Result;
use crate::policy::Policy;

/// Connections that share a file.
const TOGETHER: usize = 16;
const PAGE: usize = port::memory::PAGE_BYTES;

/// Pieces of one length, each for the buffers of a connection's receives.
#[derive(Debug)]
pub(crate) struct Pool {
    length: usize,
    free: Mutex<Vec<DmaMemory>>,
}

impl Pool {
    /// For connections of a policy.
    pub(crate) fn new(policy: &Policy) -> Self {
        let length = policy.receives(policy.window) * stride(policy.mtu as usize);
        Self { length: length.next_multiple_of(PAGE), free: Mutex::new(Vec::new()) }
    }

    /// A piece that nobody has.
    ///
    /// # Errors
    /// No memory, or no descriptor for it.
    pub(crate) fn take(&self) -> Result<DmaMemory> {
        let mut free = lock(&self.free);
        if let Some(piece) = free.pop() {
            return Ok(piece);
        }
        let all = DmaMemory::shared(TOGETHER * self.length).map_err(vipl::Error::from)?;
        for number in 1..TOGETHER {
            free.push(all.slice(number * self.length, self.length).map_err(vipl::Error::from)?);
        }
        Ok(all.slice(0, self.length).map_err(vipl::Error::from)?)
    }

    /// Takes a piece back that nobody stores into any more. Of many, the pages go.
    pub(crate) fn give(&self, piece: DmaMemory) {
        let mut free = lock(&self.free);
        if free.len() >= TOGETHER {
            piece.discard();
        }
        free.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_apart_and_used_again_and_of_many_the_pages_go() {
        let pool = Pool::new(&Policy { mtu: 4, copy_limit: 4, ..Policy::SINGLE });
        let pieces: Vec<_> = (0..2 * TOGETHER + 1).map(|_| pool.take().unwrap()).collect();
        let mut starts: Vec<_> = pieces.iter().map(DmaMemory::address).collect();
        starts.sort_unstable();
        assert!(starts.windows(2).all(|pair| pair[0] + PAGE as u64 <= pair[1]), "{starts:x?}");
        pieces.iter().for_each(|piece| piece.store_u32(0, 7));
        pieces.into_iter().for_each(|piece| pool.give(piece));
        let again: Vec<_> = (0..2 * TOGETHER + 1).map(|_| pool.take().unwrap()).collect();
        let kept = again.iter().filter(|piece| piece.load_u32(0) == 7).count();
        // Some of the third file were never used.
        assert!((1..=TOGETHER).contains(&kept), "{kept}");
        let found: std::collections::BTreeSet<_> = again.iter().map(DmaMemory::address).collect();
        assert!(found.len() == 2 * TOGETHER + 1 && starts.iter().all(|at| found.contains(at)));
    }
}
