//! Signs of life on stderr.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Silence that a person bears.
const QUIET: Duration = Duration::from_secs(2);

/// Says what is measured, if it takes long.
#[derive(Debug)]
pub(crate) struct Progress {
    what: Cell<&'static str>,
    last: Cell<Instant>,
}

impl Default for Progress {
    fn default() -> Self {
        Self { what: Cell::new(""), last: Cell::new(Instant::now()) }
    }
}

impl Progress {
    /// A new measurement begins.
    pub(crate) fn start(&self, what: &'static str) {
        self.what.set(what);
        self.last.set(Instant::now());
    }

    /// Still at it; `doing` is asked for only if it is time to say something.
    pub(crate) fn tick(&self, doing: impl FnOnce() -> String) {
        if self.last.get().elapsed() >= QUIET {
            self.last.set(Instant::now());
            eprintln!("{}: {}", self.what.get(), doing());
        }
    }
}
