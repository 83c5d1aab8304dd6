//! The thread of the library: it ends connections that programs are done with (SOVIA's close thread, 3.3),
//! and sends small messages that have waited long enough. It is there while there are any.

use std::sync::{Arc, Condvar, Mutex, Once, Weak};
use std::time::{Duration, Instant};

use port::fork;
use port::process::at_exit;
use port::sync::{lock, try_lock};

/// How long the other side has to end, too.
const LINGER: Duration = Duration::from_secs(60);
/// Time between two looks at connections that end.
const LOOK: Duration = Duration::from_millis(1);

/// How long the end of a program waits until what it has sent has arrived.
const AT_EXIT: Duration = Duration::from_secs(2);

/// All of this process, with its number among its forked ancestors.
static ALL: Mutex<Vec<(u32, Weak<Keeper>)>> = Mutex::new(Vec::new());

/// The program ends by `exit`, or has left `main` (SOVIA's finalization, 3.3).
extern "C" fn finish_all() {
    let end = Instant::now() + AT_EXIT;
    // In a child after fork a thread of its parent may hold it for good.
    let Some(all) = try_lock(&ALL).map(|mut all| core::mem::take(&mut *all)) else { return };
    let own = all.iter().filter(|(generation, _)| *generation == fork::generation());
    for keeper in own.filter_map(|(_, keeper)| keeper.upgrade()) {
        let _ = keeper.finish(end.saturating_duration_since(Instant::now()));
    }
}

/// A connection, as far as it concerns its keeper.
pub(crate) trait Kept: Send + Sync {
    /// Sends small messages that have waited long enough. Gives how long the others wait.
    fn tend(&self) -> Option<Duration>;
    /// Takes a connection further that the program is done with. True if it is over.
    fn finish(&self) -> bool;
    /// Whether all that this side has to send is sent, its end included.
    fn has_left(&self) -> bool;
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    runs: bool,
    ending: Vec<(Arc<dyn Kept>, Instant)>,
    watched: Vec<Weak<dyn Kept>>,
    /// Those of both that have something to send.
    unsent: usize,
}

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} end, {} combine", self.ending.len(), self.watched.len())
    }
}

impl Keeper {
    /// One that the end of the program waits for. The device is open: what it does at the end comes behind.
    pub(crate) fn new() -> Arc<Self> {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| _ = at_exit(finish_all));
        let keeper = Arc::new(Self::default());
        let mut all = lock(&ALL);
        all.retain(|(_, keeper)| keeper.strong_count() > 0);
        all.push((fork::generation(), Arc::downgrade(&keeper)));
        keeper
    }

    /// Ends a connection.
    pub(crate) fn end(self: &Arc<Self>, connection: Arc<dyn Kept>) {
        let until = Instant::now() + LINGER;
        self.change(|state| state.ending.push((connection, until)));
    }

    /// Sends a connection's small messages when they have waited long enough.
    pub(crate) fn watch(self: &Arc<Self>, connection: Weak<dyn Kept>) {
        self.change(|state| state.watched.push(connection));
    }

    fn change(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.state);
        change(&mut state);
        state.unsent += 1;
        self.changed.notify_all();
        if state.runs {
            return;
        }
        let keeper = Arc::clone(self);
        let started =
            std::thread::Builder::new().name("sovia".to_owned()).spawn(move || keeper.run());
        // Without a thread connections end at once, and small messages with the next call.
        state.runs = started.is_ok();
        if !state.runs {
            (state.ending, state.watched, state.unsent) = Default::default();
        }
    }

    fn run(&self) {
        let mut state = lock(&self.state);
        while !state.ending.is_empty() || !state.watched.is_empty() {
            let ending = core::mem::take(&mut state.ending);
            let watched = core::mem::take(&mut state.watched);
            drop(state);
            let goes_on = |(connection, until): &(Arc<dyn Kept>, Instant)| {
                !connection.finish() && Instant::now() < *until
            };
            let ending: Vec<_> = ending.into_iter().filter(goes_on).collect();
            let mut next = if ending.is_empty() { LINGER } else { LOOK };
            let mut waits = |connection: &Weak<dyn Kept>| {
                let wait = connection.upgrade().and_then(|connection| connection.tend());
                next = next.min(wait.unwrap_or(next).max(LOOK));
                wait.is_some()
            };
            let watched: Vec<_> = watched.into_iter().filter(&mut waits).collect();
            let unsent = ending.iter().filter(|(connection, _)| !connection.has_left()).count();
            state = lock(&self.state);
            // What came meanwhile has not been looked at.
            let new = state.ending.len() + state.watched.len();
            state.unsent = unsent + watched.len() + new;
            state.ending.extend(ending);
            state.watched.extend(watched);
            let idle = state.ending.is_empty() && state.watched.is_empty();
            if new == 0 && !idle {
                let woken = self.changed.wait_timeout(state, next);
                state = woken.unwrap_or_else(std::sync::PoisonError::into_inner).0;
            }
            self.changed.notify_all();
        }
        state.runs = false;
        self.changed.notify_all();
    }

    /// Waits until all has left that programs have sent; false if that takes longer. The other sides may not
    /// end before this process does.
    pub(crate) fn finish(&self, bound: Duration) -> bool {
        let end = Instant::now() + bound;
        let mut state = lock(&self.state);
        while state.unsent > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let woken = self.changed.wait_timeout(state, left.min(LOOK));
            state = woken.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        true
    }
}
