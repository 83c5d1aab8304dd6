//! Slots that are allocated when they are needed first, never move, and are used again.

use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock};

use crate::sync::lock;

/// Slots that are allocated together.
const CHUNK: usize = 64;
const CHUNKS: usize = 1024;

/// Slots with numbers from 0 on. A reference to a slot stays valid, so a number can be looked up
/// while another thread releases it: slots hold what shows whether a number is stale. A released
/// slot is taken again as late as possible, so that stale numbers are noticed for long.
#[derive(Debug)]
pub struct Slab<T> {
    chunks: [OnceLock<Box<[T; CHUNK]>>; CHUNKS],
    free: Mutex<Free>,
}

#[derive(Debug)]
struct Free {
    /// Released before, oldest first.
    used: VecDeque<usize>,
    /// The first number that was never taken.
    fresh: usize,
}

impl<T> Slab<T> {
    /// Most slots.
    pub const LIMIT: usize = CHUNK * CHUNKS;

    /// A slab without slots.
    #[must_use]
    pub const fn new() -> Self {
        let free = Mutex::new(Free { used: VecDeque::new(), fresh: 0 });
        Self { chunks: [const { OnceLock::new() }; CHUNKS], free }
    }

    /// The slot with this number, if it was ever taken.
    #[must_use]
    #[inline(always)]
    pub fn get(&self, number: usize) -> Option<&T> {
        Some(&self.chunks.get(number / CHUNK)?.get()?[number % CHUNK])
    }
}

impl<T: Default> Slab<T> {
    /// Takes a slot, if one is left; returns its number.
    #[must_use]
    pub fn take(&self) -> Option<(usize, &T)> {
        let number = {
            let mut free = lock(&self.free);
            match free.used.pop_front() {
                Some(number) => number,
                None => {
                    let fresh = (free.fresh < Self::LIMIT).then_some(free.fresh)?;
                    free.fresh += 1;
                    fresh
                }
            }
        };
        self.at(number).map(|slot| (number, slot))
    }

    /// The slot with this number, whether or not it was ever taken. None if it is too high.
    #[must_use]
    pub fn at(&self, number: usize) -> Option<&T> {
        let chunk = self.chunks.get(number / CHUNK)?;
        let chunk = chunk.get_or_init(|| Box::new(core::array::from_fn(|_| T::default())));
        Some(&chunk[number % CHUNK])
    }

    /// Releases a slot. A number that was never taken is ignored.
    pub fn release(&self, number: usize) {
        let mut free = lock(&self.free);
        if number < free.fresh {
            free.used.push_back(number);
        }
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_before_new_ones_and_as_late_as_possible() {
        let slab = Slab::<u8>::new();
        assert!(slab.get(0).is_none());
        let take = || slab.take().map(|(number, _)| number);
        assert_eq!([take(), take(), take()], [Some(0), Some(1), Some(2)]);
        slab.release(7);
        slab.release(1);
        slab.release(0);
        assert_eq!([take(), take(), take()], [Some(1), Some(0), Some(3)]);
        assert!(slab.get(63).is_some() && slab.get(64).is_none());
        assert!(slab.at(Slab::<u8>::LIMIT).is_none());
    }
}
