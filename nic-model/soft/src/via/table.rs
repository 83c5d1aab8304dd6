//! The VIs of a node, by number.

use std::sync::{Arc, Mutex};

use port::sync::lock;
use port::{Error, Result};

/// Most VIs of a node.
pub(crate) const VIS: u32 = 2048;

/// VIs by number; the numbers are those of their slots.
#[derive(Debug)]
pub(crate) struct Table<T>(Mutex<Vec<Option<Arc<T>>>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Table<T> {
    /// Adds a VI; `make` is given its number.
    ///
    /// # Errors
    /// None left.
    pub(crate) fn add(&self, make: impl FnOnce(u16) -> T) -> Result<Arc<T>> {
        let vis = &mut *lock(&self.0);
        let free = vis.iter().position(Option::is_none).unwrap_or(vis.len());
        let limit = VIS as usize;
        let none_left = Error::Exhausted { what: "VI", limit };
        if free >= limit {
            return Err(none_left);
        }
        let vi = Arc::new(make(u16::try_from(free).map_err(|_| none_left)?));
        if free == vis.len() {
            vis.push(None);
        }
        vis[free] = Some(Arc::clone(&vi));
        Ok(vi)
    }

    /// The VI with a number.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn get(&self, number: u16) -> Result<Arc<T>> {
        let vis = lock(&self.0);
        let found = vis.get(usize::from(number)).and_then(Option::as_ref);
        found.cloned().ok_or(Error::NoSuch { what: "VI", index: number.into() })
    }

    pub(crate) fn remove(&self, number: u16) {
        if let Some(vi) = lock(&self.0).get_mut(usize::from(number)) {
            *vi = None;
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        lock(&self.0).iter().flatten().cloned().collect()
    }
}
