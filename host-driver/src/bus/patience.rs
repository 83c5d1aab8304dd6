//! What a polling loop does on an empty turn, where time is the machine's.

use core::cell::Cell;
use std::time::{Duration, Instant};

/// Empty turns that are only spin hints.
const SPIN_TURNS: u32 = 64;
/// Empty turns after which a loop sleeps a little at each.
const YIELD_TURNS: u32 = 2_048;
/// How long.
const NAP: Duration = Duration::from_micros(20);
/// Turns that follow each other more closely than this are one wait.
const TOGETHER: Duration = Duration::from_micros(200);

/// Spins, later yields the processor, later sleeps.
pub(super) fn relax() {
    thread_local! {
        static TURNS: Cell<(Option<Instant>, u32)> = const { Cell::new((None, 0)) };
    }
    let now = Instant::now();
    let (last, turns) = TURNS.get();
    let is_together = last.is_some_and(|last| now.saturating_duration_since(last) < TOGETHER);
    let turns = if is_together { turns.saturating_add(1) } else { 0 };
    match turns {
        0..SPIN_TURNS => core::hint::spin_loop(),
        SPIN_TURNS..YIELD_TURNS => std::thread::yield_now(),
        _ => std::thread::sleep(NAP),
    }
    TURNS.set((Some(Instant::now()), turns));
}
