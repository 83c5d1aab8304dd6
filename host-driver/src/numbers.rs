//! Numbers that are given out and come back.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::sync::lock;

/// Numbers from 0 on. One that came back is given out again as late as possible, so that who still
/// has it is found out for long.
#[derive(Debug)]
pub struct Numbers {
    most: usize,
    free: Mutex<Free>,
}

#[derive(Debug)]
struct Free {
    /// Given out before, oldest first.
    used: VecDeque<usize>,
    /// The first that never was.
    fresh: usize,
}

impl Numbers {
    /// So many.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { most, free: Mutex::new(Free { used: VecDeque::new(), fresh: 0 }) }
    }

    /// A number, if one is left.
    #[must_use]
    pub fn take(&self) -> Option<usize> {
        let mut free = lock(&self.free);
        if let Some(number) = free.used.pop_front() {
            return Some(number);
        }
        let fresh = (free.fresh < self.most).then_some(free.fresh)?;
        free.fresh += 1;
        Some(fresh)
    }

    /// Takes a number back. One that was never given out is left alone.
    pub fn give(&self, number: usize) {
        let mut free = lock(&self.free);
        if number < free.fresh {
            free.used.push_back(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_given_out_once_and_again_as_late_as_possible() {
        let numbers = Numbers::new(3);
        assert_eq!([numbers.take(), numbers.take()], [Some(0), Some(1)]);
        numbers.give(7);
        numbers.give(1);
        numbers.give(0);
        let rest: Vec<_> = core::iter::from_fn(|| numbers.take()).collect();
        assert_eq!(rest, [1, 0, 2]);
    }
}
