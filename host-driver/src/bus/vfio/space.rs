//! Bus addresses of a card: what is mapped where.

use std::collections::BTreeMap;

/// First address: behind those of message-signalled interrupts, which no memory may have.
const FIRST: u64 = 1 << 32;
/// First address behind: the least that an IOMMU has (39 bits).
const END: u64 = 1 << 39;
/// Addresses without memory behind each mapping, so that an access that is too long fails.
const GUARD: u64 = 1 << 16;

/// Mappings by their first addresses, with their sizes. Addresses are used again as late as possible.
#[derive(Debug)]
pub(super) struct Space {
    taken: BTreeMap<u64, u64>,
    next: u64,
}

impl Default for Space {
    fn default() -> Self {
        Self { taken: BTreeMap::new(), next: FIRST }
    }
}

impl Space {
    /// Takes addresses for whole pages.
    pub(super) fn take(&mut self, size: u64) -> Option<u64> {
        let needed = size.checked_add(GUARD)?;
        let found = self.free(self.next, needed).or_else(|| self.free(FIRST, needed))?;
        self.taken.insert(found, size);
        self.next = found + needed;
        Some(found)
    }

    /// The first free addresses from `at` on.
    fn free(&self, at: u64, needed: u64) -> Option<u64> {
        let before = self.taken.range(..at).next_back();
        let mut at = before.map_or(at, |(start, size)| at.max(start + size + GUARD));
        for (start, size) in self.taken.range(at..) {
            if start - at >= needed {
                break;
            }
            at = start + size + GUARD;
        }
        let end = at.checked_add(needed)?;
        (end <= END).then_some(at)
    }

    /// Size of a mapping.
    pub(super) fn size(&self, at: u64) -> Option<u64> {
        self.taken.get(&at).copied()
    }

    /// Gives addresses back.
    pub(super) fn give(&mut self, at: u64) -> Option<u64> {
        self.taken.remove(&at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_used_again_when_they_are_at_an_end() {
        let mut space = Space::default();
        let half = (END - FIRST) / 2 - GUARD;
        let (one, two) = (space.take(half).unwrap(), space.take(half).unwrap());
        assert_eq!((one, space.take(4096)), (FIRST, None));
        assert_eq!(space.give(one), Some(half));
        assert_eq!(space.take(4096), Some(FIRST));
        assert_eq!(space.take(half), None);
        assert_eq!(
            (space.size(two), space.give(two), space.give(two)),
            (Some(half), Some(half), None)
        );
        assert_eq!(space.take(u64::MAX - 4095), None);
    }

    proptest! {
        #[test]
        fn no_two_mappings_are_closer_than_the_guard(
            steps in prop::collection::vec((any::<bool>(), 1_u64..1 << 26), 1..200),
        ) {
            let mut space = Space::default();
            let mut taken = Vec::new();
            for (takes, size) in steps {
                if takes || taken.is_empty() {
                    taken.extend(space.take(size * 4096));
                } else {
                    let at = taken.swap_remove(usize::try_from(size).unwrap() % taken.len());
                    prop_assert!(space.give(at).is_some());
                }
                let all: Vec<(u64, u64)> = space.taken.clone().into_iter().collect();
                prop_assert!(all.iter().all(|(at, size)| *at >= FIRST && at + size + GUARD <= END));
                prop_assert!(all.windows(2).all(|two| two[0].0 + two[0].1 + GUARD <= two[1].0));
            }
        }
    }
}
