//! Waiting for something that comes soon and wakes nobody.

use std::time::{Duration, Instant};

/// Time between two looks.
const LOOK: Duration = Duration::from_micros(100);

/// Looks until there is what is wanted; false if that takes longer than `bound`.
pub(crate) fn until(bound: Duration, mut look: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + bound;
    while !look() {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}
