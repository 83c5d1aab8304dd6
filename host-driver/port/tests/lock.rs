//! The try-lock under every interleaving of its users that loom finds.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    unnameable_types,
    reason = "a module of the crate"
)]

/// loom's primitives in place of the crate's.
mod primitives {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};

    pub(crate) fn pause(_turn: u32) {
        loom::thread::yield_now();
    }
}

#[path = "../src/lock.rs"]
mod lock;

use lock::Lock;
use loom::sync::Arc;
use loom::thread;

#[test]
fn every_increment_under_the_lock_counts() {
    loom::model(|| {
        let count = Arc::new(Lock::new(0));
        let other = Arc::clone(&count);
        let thread = thread::spawn(move || *other.lock() += 1);
        *count.lock() += 1;
        thread.join().unwrap();
        assert_eq!(*count.lock(), 2);
    });
}

#[test]
fn a_try_lock_sees_what_the_last_holder_stored() {
    loom::model(|| {
        let pair = Arc::new(Lock::new([0, 0]));
        let other = Arc::clone(&pair);
        let thread = thread::spawn(move || {
            if let Some(mut pair) = other.try_lock() {
                pair[0] += 1;
                pair[1] += 1;
            }
        });
        if let Some(pair) = pair.try_lock() {
            assert_eq!(pair[0], pair[1]);
        }
        thread.join().unwrap();
    });
}

/// As a program in C uses a queue: it knows a generation; the slot may be torn down and reused.
#[test]
fn a_stale_generation_is_refused() {
    struct Slot {
        generation: u32,
        owner: u32,
    }
    loom::model(|| {
        let slot = Arc::new(Lock::new(Slot { generation: 1, owner: 1 }));
        let other = Arc::clone(&slot);
        let thread = thread::spawn(move || {
            *other.lock() = Slot { generation: 0, owner: 0 };
            *other.lock() = Slot { generation: 2, owner: 2 };
        });
        if let Some(slot) = slot.try_lock()
            && slot.generation == 1
        {
            assert_eq!(slot.owner, 1);
        }
        thread.join().unwrap();
    });
}
