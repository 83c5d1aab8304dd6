//! What wakes tasks: one thread of the library for each device, while tasks wait.
//!
//! ```text
//!   a task: a call would wait ──► register its waker ──► the same call once more ──► it sleeps
//!   the thread: sleeps until the NIC has something ──► looks at the streams of these tasks ──► wakes
//! ```
//!
//! Nothing is missed: who registers calls once more afterwards, and the thread looks between it arms the
//! NIC's queue and sleeps. What changes without a completion changes by a call of a task that has the
//! stream, so it needs nobody who wakes it.

use core::fmt::Debug;
use core::task::Waker;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use port::sync::lock;
use vipl::Nic;

use crate::error::{Error, Result};

/// How long the thread stays when no task waits.
const LINGER: Duration = Duration::from_secs(1);

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Bytes, or an end.
    Read = 0,
    /// Room.
    Write = 1,
}

/// A connection, as far as it concerns its reactor.
pub(crate) trait Watched: Debug + Send + Sync {
    /// Whether calls in these directions would not wait any more. The NIC's own work is done by the caller.
    fn proceeds(&self, wanted: [bool; 2]) -> [bool; 2];
    /// Its NIC.
    fn nic(&self) -> &Nic;
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Reactor {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// By the address of the connection, which is a number here.
    waiting: BTreeMap<usize, Waiting>,
    runs: bool,
    /// The thread sleeps until somebody waits.
    is_idle: bool,
}

#[derive(Debug)]
struct Waiting {
    connection: Arc<dyn Watched>,
    /// For each direction.
    tasks: [Option<Waker>; 2],
}

fn key(connection: &Arc<dyn Watched>) -> usize {
    Arc::as_ptr(connection).addr()
}

impl Reactor {
    /// Has a task woken when its call would not wait any more. The task makes its call once more after this.
    ///
    /// # Errors
    /// There is no thread.
    pub(crate) fn register(
        self: &Arc<Self>,
        connection: &Arc<dyn Watched>,
        direction: Direction,
        task: &Waker,
    ) -> Result<()> {
        let mut state = lock(&self.state);
        let new = || Waiting { connection: Arc::clone(connection), tasks: [None, None] };
        let waiting = state.waiting.entry(key(connection)).or_insert_with(new);
        let place = &mut waiting.tasks[direction as usize];
        match place {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
        if state.is_idle {
            state.is_idle = false;
            self.changed.notify_all();
        }
        if !state.runs {
            let own = Arc::clone(self);
            let thread = std::thread::Builder::new().name("sovia tasks".to_owned());
            thread.spawn(move || own.run()).map_err(|error| Error::NoThread(Arc::new(error)))?;
            state.runs = true;
        }
        Ok(())
    }

    /// A task does not wait any more: its call has been made.
    pub(crate) fn forget(&self, connection: &Arc<dyn Watched>, direction: Direction) {
        let mut state = lock(&self.state);
        let Some(waiting) = state.waiting.get_mut(&key(connection)) else { return };
        let task = waiting.tasks[direction as usize].take();
        let is_over = waiting.tasks.iter().all(Option::is_none);
        let over = if is_over { state.waiting.remove(&key(connection)) } else { None };
        drop(state);
        // Both may run anything when they are dropped.
        drop((task, over));
    }

    /// The stream is closed: nobody waits for it.
    pub(crate) fn forget_all(&self, connection: &Arc<dyn Watched>) {
        self.forget(connection, Direction::Read);
        self.forget(connection, Direction::Write);
        // The thread may have the NIC, and nobody else.
        connection.nic().port().wake();
    }

    /// The thread.
    fn run(&self) {
        let mut found = Found::default();
        while let Some(nic) = self.next_nic() {
            nic.wait_for(Duration::MAX, || self.look(&mut found));
            found.over.clear();
            found.tasks.drain(..).for_each(Waker::wake);
        }
    }

    /// Waits until a task does. None: none did for long.
    fn next_nic(&self) -> Option<Nic> {
        let mut state = lock(&self.state);
        loop {
            if let Some(waiting) = state.waiting.values().next() {
                return Some(waiting.connection.nic().clone());
            }
            state.is_idle = true;
            let woken = self.changed.wait_timeout(state, LINGER);
            let (woken, time) = woken.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.is_idle = false;
            if time.timed_out() && state.waiting.is_empty() {
                state.runs = false;
                return None;
            }
        }
    }

    /// Looks at the connections of tasks that wait. True if some are to be woken, or none wait.
    fn look(&self, found: &mut Found) -> bool {
        let mut state = lock(&self.state);
        let over = state.waiting.extract_if(.., |_, waiting| {
            let wanted = [0, 1].map(|direction| waiting.tasks[direction].is_some());
            let proceeds = waiting.connection.proceeds(wanted);
            let tasks = waiting.tasks.iter_mut().zip(proceeds);
            found.tasks.extend(tasks.filter_map(|(task, proceeds)| task.take_if(|_| proceeds)));
            waiting.tasks.iter().all(Option::is_none)
        });
        found.over.extend(over.map(|(_, waiting)| waiting));
        !found.tasks.is_empty() || state.waiting.is_empty()
    }
}

/// What a look has found; kept, so that it needs no memory each time.
#[derive(Debug, Default)]
struct Found {
    tasks: Vec<Waker>,
    /// They go without the lock.
    over: Vec<Waiting>,
}
