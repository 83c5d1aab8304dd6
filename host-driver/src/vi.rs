//! Numbers: VIs, event queues, protection tags, domains; and who owns which VI.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use crate::error::Result;
use crate::sync::lock;

/// Hands out numbers; one that was given back is used again as late as possible, so that stale ones
/// are noticed.
#[derive(Debug)]
struct NumberPool {
    what: &'static str,
    next: u32,
    end: u32,
    freed: VecDeque<u16>,
}

impl NumberPool {
    /// Numbers from `first` up to but not including `end`.
    const fn new(what: &'static str, first: u16, end: u32) -> Self {
        Self { what, next: first as u32, end, freed: VecDeque::new() }
    }

    /// A free number.
    fn take(&mut self) -> Result<u16> {
        if self.next < self.end
            && let Ok(number) = u16::try_from(self.next)
        {
            self.next += 1;
            return Ok(number);
        }
        let exhausted = port::Error::Exhausted { what: self.what, limit: self.end as usize };
        self.freed.pop_front().ok_or(exhausted.into())
    }

    /// Gives a number back.
    fn give(&mut self, number: u16) {
        self.freed.push_back(number);
    }
}

/// Numbers in use and the domains that own them.
#[derive(Debug)]
pub struct Owned {
    what: &'static str,
    state: Mutex<(NumberPool, BTreeMap<u16, u8>)>,
}

impl Owned {
    /// Numbers from `first` up to but not including `end`.
    #[must_use]
    pub const fn new(what: &'static str, first: u16, end: u32) -> Self {
        Self { what, state: Mutex::new((NumberPool::new(what, first, end), BTreeMap::new())) }
    }

    /// A free number, now owned by `domain`.
    ///
    /// # Errors
    /// [`port::Error::Exhausted`].
    pub fn take(&self, domain: u8) -> Result<u16> {
        let mut state = lock(&self.state);
        let number = state.0.take()?;
        state.1.insert(number, domain);
        Ok(number)
    }

    /// Gives a number back.
    pub fn give(&self, number: u16) {
        let mut state = lock(&self.state);
        if state.1.remove(&number).is_some() {
            state.0.give(number);
        }
    }

    /// Who owns a number.
    #[must_use]
    pub fn owner(&self, number: u16) -> Option<u8> {
        lock(&self.state).1.get(&number).copied()
    }

    /// Checks that `domain` owns a number.
    ///
    /// # Errors
    /// [`port::Error::NoSuch`].
    pub fn check(&self, number: u16, domain: u8) -> Result<()> {
        if self.owner(number) == Some(domain) {
            return Ok(());
        }
        Err(port::Error::NoSuch { what: self.what, index: number.into() }.into())
    }

    /// All numbers of a domain.
    #[must_use]
    pub fn of_domain(&self, domain: u8) -> Vec<u16> {
        let state = lock(&self.state);
        state.1.iter().filter(|(_, owner)| **owner == domain).map(|(number, _)| *number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_as_late_as_possible() {
        let pool = Owned::new("thing", 1, 4);
        assert_eq!([pool.take(0).unwrap(), pool.take(0).unwrap()], [1, 2]);
        pool.give(1);
        assert_eq!(pool.take(5).unwrap(), 3);
        assert_eq!(pool.take(5).unwrap(), 1);
        assert!(pool.take(5).is_err());
        assert_eq!(pool.of_domain(5), [1, 3]);
        assert!(pool.check(2, 5).is_err());
        pool.give(2);
        pool.give(2);
        assert_eq!(pool.take(1).unwrap(), 2);
        assert!(pool.take(1).is_err());
    }
}
