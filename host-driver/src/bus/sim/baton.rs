//! The baton: of all threads with a seat, one runs at a time, in a seeded order.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use crate::bus::{ThreadSeat, Wait};
use crate::sync::lock;

/// Wall time after which a thread that waits for its turn gives up: the holder blocks on something
/// else than the world.
const TURN_LIMIT: Duration = Duration::from_secs(300);

thread_local! {
    /// The seat of this thread: world and number.
    static SEAT: Cell<Option<(u64, u32)>> = const { Cell::new(None) };
}

fn my_seat(world: u64) -> Option<u32> {
    SEAT.get().and_then(|(id, seat)| (id == world).then_some(seat))
}

#[derive(Debug)]
struct Entry {
    seat: u32,
    name: String,
    entered: bool,
    /// A thread of the library.
    guest: bool,
    wait: Option<Wait>,
}

#[derive(Debug)]
pub(super) struct Baton {
    entries: Vec<Entry>,
    next_seat: u32,
    /// None: a thread without a seat may act.
    holder: Option<u32>,
    /// What a thread without a seat waits for that lets guests run; it has its turns among theirs.
    visitor: Option<Wait>,
    random: u64,
}

impl Baton {
    pub(super) const fn new(seed: u64) -> Self {
        // SplitMix64's increment keeps the state of xorshift away from zero.
        let random = seed ^ 0x9e37_79b9_7f4a_7c15;
        Self {
            entries: Vec::new(),
            next_seat: 0,
            holder: None,
            visitor: None,
            random: if random == 0 { 1 } else { random },
        }
    }

    /// Panics if another thread has the baton: the run would not be deterministic.
    pub(super) fn check_turn(&self, world: u64) {
        if std::thread::panicking() || self.holder.is_none() {
            return;
        }
        let me = my_seat(world);
        let entered = self.entries.iter().any(|entry| entry.entered && !entry.guest);
        assert!(
            me == self.holder || (me.is_none() && !entered),
            "a thread uses the simulated world out of turn (its seat is {me:?}, the baton is at {:?}): give it a seat \
             with World::join_baton and enter it first",
            self.name(self.holder)
        );
    }

    pub(super) fn note(&mut self, world: u64, wait: Wait) {
        let me = my_seat(world);
        if let Some(entry) = self.entries.iter_mut().find(|entry| Some(entry.seat) == me) {
            entry.wait = Some(wait);
        }
    }

    pub(super) fn has_guests(&self) -> bool {
        self.entries.iter().any(|entry| entry.guest)
    }

    pub(super) fn all_unbounded(&self) -> bool {
        self.visitor.is_none_or(|wait| !wait.bounded)
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

    fn name(&self, seat: Option<u32>) -> Option<&str> {
        self.entries.iter().find(|entry| Some(entry.seat) == seat).map(|entry| entry.name.as_str())
    }

    fn pick(&mut self) {
        // With a visitor, guests and the visitor have turns; without, all seats, unless there are
        // guests alone: they wait until somebody lets time pass.
        let visited = self.visitor.is_some();
        let seated = self.entries.iter().any(|entry| !entry.guest);
        let all = self.entries.iter().filter(|entry| !visited || entry.guest);
        let mut turns: Vec<Option<u32>> = all.map(|entry| Some(entry.seat)).collect();
        if visited {
            turns.push(None);
        } else if !seated {
            turns.clear();
        }
        if !turns.is_empty() {
            // Not otherwise: when a guest enters while nobody lets time pass is chance.
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
        }
        let index = (self.random >> 16).checked_rem(turns.len() as u64).unwrap_or(0);
        let picked = usize::try_from(index).ok().and_then(|i| turns.get(i).copied());
        self.holder = picked.flatten();
    }
}

/// A place in the baton, to be entered by the thread that it is for.
pub struct Seat {
    shared: Option<Arc<Shared>>,
    seat: u32,
}

impl core::fmt::Debug for Seat {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Seat({})", self.seat)
    }
}

impl Seat {
    pub(super) fn new(shared: Arc<Shared>, name: &str, guest: bool) -> Self {
        let mut state = lock(&shared.state);
        let seat = state.baton.next_seat;
        state.baton.next_seat += 1;
        let entry = Entry { seat, name: name.to_owned(), entered: false, guest, wait: None };
        state.baton.entries.push(entry);
        drop(state);
        Self { shared: Some(shared), seat }
    }

    /// Takes the place for this thread and waits for its first turn. The place is given up with the
    /// guard.
    ///
    /// # Panics
    /// If this thread sits already.
    #[must_use]
    pub fn enter(mut self) -> BatonGuard {
        let shared = self.shared.take().unwrap_or_else(|| unreachable!("entered once"));
        assert!(SEAT.get().is_none(), "this thread has a seat already");
        SEAT.set(Some((shared.id, self.seat)));
        let mut state = lock(&shared.state);
        let baton = &mut state.baton;
        if let Some(entry) = baton.entries.iter_mut().find(|entry| entry.seat == self.seat) {
            entry.entered = true;
        }
        if baton.holder.is_none() && baton.visitor.is_none() {
            baton.pick();
        }
        drop(state);
        shared.wait_turn(self.seat);
        BatonGuard { shared, seat: self.seat }
    }
}

impl Seat {
    /// Runs a program in this seat. What the closure owns is dropped in its turn too (closing a NIC
    /// takes turns).
    pub fn run<R>(self, program: impl FnOnce() -> R) -> R {
        let _turn = self.enter();
        program()
    }
}

impl ThreadSeat for Seat {
    fn run(self: Box<Self>, program: &mut dyn FnMut()) {
        let _turn = self.enter();
        program();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.leave(self.seat);
        }
    }
}

/// A thread's membership in the baton.
pub struct BatonGuard {
    shared: Arc<Shared>,
    seat: u32,
}

impl core::fmt::Debug for BatonGuard {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "BatonGuard({})", self.seat)
    }
}

impl Drop for BatonGuard {
    fn drop(&mut self) {
        SEAT.set(None);
        self.shared.leave(self.seat);
    }
}

impl Shared {
    /// Gives the baton on and waits for the next turn, if this thread has a seat, or if there are
    /// guests.
    pub(super) fn pass_baton(&self, wait: Wait) {
        let Some(seat) = my_seat(self.id) else { return self.visit(wait) };
        let mut state = lock(&self.state);
        state.baton.pick();
        if state.baton.holder == Some(seat) {
            return;
        }
        self.turn.notify_all();
        drop(state);
        self.wait_turn(seat);
    }

    /// Lets guests have their turns until this thread, which has no seat, has its own.
    fn visit(&self, wait: Wait) {
        let mut state = lock(&self.state);
        if !state.baton.has_guests() || state.baton.holder.is_some() {
            return;
        }
        state.baton.visitor = Some(wait);
        state.baton.pick();
        drop(state);
        self.wait_for(None);
        lock(&self.state).baton.visitor = None;
    }

    fn wait_turn(&self, seat: u32) {
        self.wait_for(Some(seat));
    }

    fn wait_for(&self, turn: Option<u32>) {
        let mut state = lock(&self.state);
        self.turn.notify_all();
        while state.baton.holder != turn {
            let waited = self.turn.wait_timeout(state, TURN_LIMIT);
            let (next, timeout) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
            state = next;
            if timeout.timed_out() && state.baton.holder != turn {
                let holder = state.baton.name(state.baton.holder).map(str::to_owned);
                drop(state);
                panic!(
                    "the thread with the baton ({holder:?}) has not passed it on for {TURN_LIMIT:?}"
                );
            }
        }
    }

    fn leave(&self, seat: u32) {
        let mut state = lock(&self.state);
        let baton = &mut state.baton;
        baton.entries.retain(|entry| entry.seat != seat);
        if baton.holder == Some(seat) {
            baton.pick();
            self.turn.notify_all();
        }
    }
}
