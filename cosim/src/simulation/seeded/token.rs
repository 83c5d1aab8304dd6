//! The token of the deterministic scheduler: of all threads with a slot, the one that holds it runs.
//! It is handed on in a seeded order.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use host_driver::bus::Wait;
use host_driver::sync::lock;

/// Wall-clock time after which a thread that waits for the token panics: the holder blocks on
/// something else than the simulation.
const TOKEN_LIMIT: Duration = Duration::from_secs(300);

thread_local! {
    /// The slot of this thread: simulation and number.
    static SLOT: Cell<Option<(u64, u32)>> = const { Cell::new(None) };
}

fn my_slot(simulation: u64) -> Option<u32> {
    SLOT.get().and_then(|(id, slot)| (id == simulation).then_some(slot))
}

#[derive(Debug)]
struct Entry {
    slot: u32,
    name: String,
    entered: bool,
    /// A thread of the library: it runs while others let time pass.
    is_library: bool,
    wait: Option<Wait>,
}

#[derive(Debug)]
pub(super) struct Token {
    entries: Vec<Entry>,
    next_slot: u32,
    /// None: a thread without a slot may act.
    holder: Option<u32>,
    /// What a thread without a slot waits for while it lets library threads run; it gets the token
    /// among them.
    outsider: Option<Wait>,
    random: u64,
}

impl Token {
    pub(super) const fn new(seed: u64) -> Self {
        // SplitMix64's increment keeps the state of xorshift away from zero.
        let random = seed ^ 0x9e37_79b9_7f4a_7c15;
        Self {
            entries: Vec::new(),
            next_slot: 0,
            holder: None,
            outsider: None,
            random: if random == 0 { 1 } else { random },
        }
    }

    /// Panics if another thread has the token: the run would not be deterministic.
    pub(super) fn check(&self, simulation: u64) {
        if std::thread::panicking() || self.holder.is_none() {
            return;
        }
        let me = my_slot(simulation);
        let entered = self.entries.iter().any(|entry| entry.entered && !entry.is_library);
        assert!(
            me == self.holder || (me.is_none() && !entered),
            "a thread uses the simulation without the token (its slot is {me:?}, {:?} has the token): give it \
             a slot with SeededSimulation::slot and enter it first",
            self.name(self.holder)
        );
    }

    pub(super) fn note(&mut self, simulation: u64, wait: Wait) {
        let me = my_slot(simulation);
        if let Some(entry) = self.entries.iter_mut().find(|entry| Some(entry.slot) == me) {
            entry.wait = Some(wait);
        }
    }

    pub(super) fn has_library_threads(&self) -> bool {
        self.entries.iter().any(|entry| entry.is_library)
    }

    pub(super) fn all_unbounded(&self) -> bool {
        self.outsider.is_none_or(|wait| !wait.bounded)
            && self.entries.iter().all(|entry| entry.wait.is_some_and(|wait| !wait.bounded))
    }

    pub(super) fn describe(&self, mine: Wait) -> String {
        if self.entries.is_empty() {
            return format!("the only thread waits for {} {}", mine.what, mine.index);
        }
        let line = |entry: &Entry| match entry.wait {
            Some(wait) => format!("'{}' waits for {} {}", entry.name, wait.what, wait.index),
            None => format!("'{}' has not started", entry.name),
        };
        self.entries.iter().map(line).collect::<Vec<_>>().join(", ")
    }

    fn name(&self, slot: Option<u32>) -> Option<&str> {
        self.entries.iter().find(|entry| Some(entry.slot) == slot).map(|entry| entry.name.as_str())
    }

    fn pick(&mut self) {
        // With an outsider, library threads and the outsider get the token; without, all slots, unless
        // all are library threads: they wait until another thread lets time pass.
        let outside = self.outsider.is_some();
        let has_programs = self.entries.iter().any(|entry| !entry.is_library);
        let all = self.entries.iter().filter(|entry| !outside || entry.is_library);
        let mut candidates: Vec<Option<u32>> = all.map(|entry| Some(entry.slot)).collect();
        if outside {
            candidates.push(None);
        } else if !has_programs {
            candidates.clear();
        }
        if !candidates.is_empty() {
            // Not otherwise: when a library thread enters while nobody lets time pass is chance.
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
        }
        let index = (self.random >> 16).checked_rem(candidates.len() as u64).unwrap_or(0);
        let picked = usize::try_from(index).ok().and_then(|i| candidates.get(i).copied());
        self.holder = picked.flatten();
    }
}

/// A slot of the scheduler, to be entered by the thread that it is for.
pub struct Slot {
    shared: Option<Arc<Shared>>,
    number: u32,
}

impl core::fmt::Debug for Slot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Slot({})", self.number)
    }
}

impl Slot {
    pub(super) fn new(shared: Arc<Shared>, name: &str, is_library: bool) -> Self {
        let mut state = lock(&shared.state);
        let number = state.token.next_slot;
        state.token.next_slot += 1;
        let name = name.to_owned();
        let entry = Entry { slot: number, name, entered: false, is_library, wait: None };
        state.token.entries.push(entry);
        drop(state);
        Self { shared: Some(shared), number }
    }

    /// Takes the slot for this thread and waits for the token. Dropping the guard frees the slot.
    ///
    /// # Panics
    /// If this thread has a slot already.
    #[must_use]
    pub fn enter(mut self) -> TokenGuard {
        let shared = self.shared.take().unwrap_or_else(|| unreachable!("entered once"));
        assert!(SLOT.get().is_none(), "this thread has a slot already");
        SLOT.set(Some((shared.id, self.number)));
        let mut state = lock(&shared.state);
        let token = &mut state.token;
        if let Some(entry) = token.entries.iter_mut().find(|entry| entry.slot == self.number) {
            entry.entered = true;
        }
        if token.holder.is_none() && token.outsider.is_none() {
            token.pick();
        }
        drop(state);
        shared.wait_for(Some(self.number));
        TokenGuard { shared, number: self.number }
    }

    /// Runs a program in this slot. What the closure owns is dropped with the token too (closing a
    /// NIC hands it on).
    pub fn run<R>(self, program: impl FnOnce() -> R) -> R {
        let _token = self.enter();
        program()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.leave(self.number);
        }
    }
}

/// A thread in its slot.
pub struct TokenGuard {
    shared: Arc<Shared>,
    number: u32,
}

impl core::fmt::Debug for TokenGuard {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "TokenGuard({})", self.number)
    }
}

impl Drop for TokenGuard {
    fn drop(&mut self) {
        SLOT.set(None);
        self.shared.leave(self.number);
    }
}

impl Shared {
    /// Hands the token on and waits for it, if this thread has a slot or there are library threads.
    pub(super) fn pass_token(&self, wait: Wait) {
        let Some(slot) = my_slot(self.id) else { return self.let_library_run(wait) };
        let mut state = lock(&self.state);
        state.token.pick();
        if state.token.holder == Some(slot) {
            return;
        }
        self.handed.notify_all();
        drop(state);
        self.wait_for(Some(slot));
    }

    /// Lets library threads run until this thread, which has no slot, gets the token.
    fn let_library_run(&self, wait: Wait) {
        let mut state = lock(&self.state);
        if !state.token.has_library_threads() || state.token.holder.is_some() {
            return;
        }
        state.token.outsider = Some(wait);
        state.token.pick();
        drop(state);
        self.wait_for(None);
        lock(&self.state).token.outsider = None;
    }

    fn wait_for(&self, slot: Option<u32>) {
        let mut state = lock(&self.state);
        self.handed.notify_all();
        while state.token.holder != slot {
            let waited = self.handed.wait_timeout(state, TOKEN_LIMIT);
            let (next, timeout) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
            state = next;
            if timeout.timed_out() && state.token.holder != slot {
                let holder = state.token.name(state.token.holder).map(str::to_owned);
                drop(state);
                panic!(
                    "the thread with the token ({holder:?}) has not handed it on for {TOKEN_LIMIT:?}"
                );
            }
        }
    }

    fn leave(&self, slot: u32) {
        let mut state = lock(&self.state);
        let token = &mut state.token;
        token.entries.retain(|entry| entry.slot != slot);
        if token.holder == Some(slot) {
            token.pick();
            self.handed.notify_all();
        }
    }
}
