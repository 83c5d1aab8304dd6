//! Something shared that a call uses and does not count: counts are lines that processors take from each
//! other.

use core::ops::Deref;
use std::sync::Arc;

use arc_swap::{ArcSwapOption, Guard};

/// What a place held when a call began; whoever changes the place need not wait for it.
#[derive(Debug)]
pub(crate) struct Borrowed<T>(Guard<Option<Arc<T>>>);

impl<T> Borrowed<T> {
    /// What a place holds.
    #[inline]
    pub(crate) fn of(place: &ArcSwapOption<T>) -> Option<Self> {
        let guard = place.load();
        guard.is_some().then_some(Self(guard))
    }
}

impl<T> Deref for Borrowed<T> {
    type Target = Arc<T>;

    #[inline]
    fn deref(&self) -> &Arc<T> {
        match &*self.0 {
            Some(held) => held,
            None => unreachable!("it holds something"),
        }
    }
}
