//! What has numbers: the VIs of a node and of a port, completion queues.

use std::sync::{Arc, Mutex};

use port::sync::lock;
use port::{Error, Result};

/// Most VIs of a node.
pub(crate) const VIS: u32 = 2048;

/// Objects by number; the numbers are those of their slots.
#[derive(Debug)]
pub(crate) struct Table<T> {
    /// What they are, for errors.
    what: &'static str,
    limit: usize,
    slots: Mutex<Vec<Option<Arc<T>>>>,
}

impl<T> Table<T> {
    /// For VIs.
    pub(crate) const fn of_vis() -> Self {
        Self { what: "VI", limit: VIS as usize, slots: Mutex::new(Vec::new()) }
    }

    /// For so many completion queues.
    pub(crate) const fn of_queues(limit: usize) -> Self {
        Self { what: "completion queue", limit, slots: Mutex::new(Vec::new()) }
    }

    /// Adds an object; `make` is given its number.
    ///
    /// # Errors
    /// None left.
    pub(crate) fn add(&self, make: impl FnOnce(u16) -> T) -> Result<Arc<T>> {
        let slots = &mut *lock(&self.slots);
        let free = slots.iter().position(Option::is_none).unwrap_or(slots.len());
        let none_left = Error::Exhausted { what: self.what, limit: self.limit };
        if free >= self.limit {
            return Err(none_left);
        }
        let made = Arc::new(make(u16::try_from(free).map_err(|_| none_left)?));
        set(slots, free, &made);
        Ok(made)
    }

    /// Enters an object whose number another table has given.
    pub(crate) fn insert(&self, number: u16, object: &Arc<T>) {
        set(&mut lock(&self.slots), number.into(), object);
    }

    /// The object with a number.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn get(&self, number: u16) -> Result<Arc<T>> {
        let slots = lock(&self.slots);
        let found = slots.get(usize::from(number)).and_then(Option::as_ref);
        found.cloned().ok_or(Error::NoSuch { what: self.what, index: number.into() })
    }

    pub(crate) fn remove(&self, number: u16) {
        if let Some(slot) = lock(&self.slots).get_mut(usize::from(number)) {
            *slot = None;
        }
    }

    pub(crate) fn clear(&self) {
        lock(&self.slots).clear();
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        lock(&self.slots).iter().flatten().cloned().collect()
    }
}

fn set<T>(slots: &mut Vec<Option<Arc<T>>>, at: usize, object: &Arc<T>) {
    if slots.len() <= at {
        slots.resize(at + 1, None);
    }
    slots[at] = Some(Arc::clone(object));
}
