//! A wire of the model between two nodes of a world.

use std::sync::{Arc, Mutex};

use nic_model::device::{Beat, Link};
use nic_model::link::{Side, Wire};

use crate::sync::lock;

/// A [`Wire`] whose ends are handed to two nodes. Clones are the same wire.
#[derive(Clone, Debug)]
pub struct SharedWire(Arc<Mutex<Wire>>);

impl SharedWire {
    /// Shares a wire.
    #[must_use]
    pub fn new(wire: Wire) -> Self {
        Self(Arc::new(Mutex::new(wire)))
    }

    /// An end for [`super::World::add_node`].
    #[must_use]
    pub fn end(&self, side: Side) -> Box<dyn Link + Send> {
        Box::new(End { wire: Arc::clone(&self.0), side })
    }

    /// Looks at the wire or changes it.
    pub fn with<R>(&self, f: impl FnOnce(&mut Wire) -> R) -> R {
        f(&mut lock(&self.0))
    }
}

#[derive(Debug)]
struct End {
    wire: Arc<Mutex<Wire>>,
    side: Side,
}

impl Link for End {
    fn ready(&self, now: u64) -> bool {
        lock(&self.wire).end(self.side).ready(now)
    }

    fn send(&mut self, now: u64, beat: Beat) {
        lock(&self.wire).end(self.side).send(now, beat);
    }

    fn receive(&mut self, now: u64) -> Option<Beat> {
        lock(&self.wire).end(self.side).receive(now)
    }
}

/// A cut cable: takes everything, gives nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLink;

impl Link for NoLink {
    fn ready(&self, _now: u64) -> bool {
        true
    }

    fn send(&mut self, _now: u64, _beat: Beat) {}

    fn receive(&mut self, _now: u64) -> Option<Beat> {
        None
    }
}
