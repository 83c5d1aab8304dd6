//! One word in shared memory, which each end counts up in turn.

use core::sync::atomic::Ordering;
use std::time::Instant;

use port::DmaMemory;
use rustix::thread::futex;

use super::{BOUND, Offered, Transport, map, poll, shared};
use crate::Failure;

const BYTES: usize = 4096;

struct Word {
    memory: DmaMemory,
    blocking: bool,
    /// What the word is when it is this end's turn.
    own: u32,
}

pub(super) fn offer(blocking: bool) -> Result<Offered, Failure> {
    let (memory, place) = shared(BYTES)?;
    let accept = move || -> Result<Box<dyn Transport>, Failure> {
        Ok(Box::new(Word { memory, blocking, own: 0 }))
    };
    Ok(Offered { place, accept: Box::new(accept) })
}

pub(super) fn join(blocking: bool, place: &str) -> Result<Box<dyn Transport>, Failure> {
    Ok(Box::new(Word { memory: map(BYTES, place)?, blocking, own: 1 }))
}

impl Transport for Word {
    fn send(&mut self, _length: usize, stamp: u32) -> Result<(), Failure> {
        let word = self.memory.atomic_u32(0);
        self.memory.atomic_u32(4).store(stamp, Ordering::Relaxed);
        word.store(1 - self.own, Ordering::Release);
        if self.blocking {
            futex::wake(word, futex::Flags::empty(), 1)?;
        }
        Ok(())
    }

    fn receive(&mut self, _length: usize) -> Result<u32, Failure> {
        let (word, own) = (self.memory.atomic_u32(0), self.own);
        if self.blocking {
            let end = Instant::now() + BOUND;
            let bound = rustix::thread::Timespec { tv_sec: 1, tv_nsec: 0 };
            while word.load(Ordering::Acquire) != own {
                // Woken, or changed before: looks again in any case.
                let _ = futex::wait(word, futex::Flags::empty(), 1 - own, Some(&bound));
                if Instant::now() > end {
                    return Err("the other process is silent".into());
                }
            }
        } else {
            poll(|| Ok((word.load(Ordering::Acquire) == own).then_some(())))?;
        }
        Ok(self.memory.atomic_u32(4).load(Ordering::Relaxed))
    }
}
