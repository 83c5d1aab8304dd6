//! Doorbells: one domain's page in BAR2.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use nic_regs::doorbell::{
    EVENT_OFFSET, EventDoorbell, PAGE_BYTES, PUSH_LINE_BYTES, PUSH_LINE_COUNT, PUSH_OFFSET,
    TOKEN_OFFSET, Token, push_line,
};

use crate::bus::{Bus, DOORBELL_BAR};
use crate::dma::DmaMemory;

#[expect(clippy::cast_possible_truncation, reason = "4")]
const PUSH_LINES: usize = PUSH_LINE_COUNT as usize;

/// A place in the page.
#[expect(clippy::cast_possible_truncation, reason = "a page has 4 KiB")]
const fn place(offset: u64) -> usize {
    offset as usize
}

/// Who writes which push line. Words of two pushes must not mix in a line, and a processor may
/// merge writes to one line, so the next push takes the next line.
#[derive(Default)]
struct Lines {
    next: AtomicUsize,
    taken: [AtomicBool; PUSH_LINES],
}

impl Lines {
    /// Takes a line, if its turn finds it free.
    fn take(&self) -> Option<usize> {
        let line = self.next.fetch_add(1, Ordering::Relaxed) % PUSH_LINES;
        let free = !self.taken[line].swap(true, Ordering::Acquire);
        free.then_some(line)
    }

    fn give(&self, line: usize) {
        self.taken[line].store(false, Ordering::Release);
    }
}

/// One domain's doorbell page. Clones are the same page.
#[derive(Clone)]
pub struct DoorbellPage {
    bus: Arc<dyn Bus>,
    base: u64,
    /// The page, where the bus has it mapped.
    mapped: Option<DmaMemory>,
    lines: Arc<Lines>,
}

impl core::fmt::Debug for DoorbellPage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "DoorbellPage({})", self.base / PAGE_BYTES)
    }
}

impl DoorbellPage {
    /// The page of `domain`.
    #[must_use]
    pub fn new(bus: Arc<dyn Bus>, domain: u8) -> Self {
        let base = u64::from(domain) * PAGE_BYTES;
        let mapped = bus.mapped(DOORBELL_BAR, base, place(PAGE_BYTES));
        Self { bus, base, mapped, lines: Arc::default() }
    }

    /// Posts one descriptor. What was stored before is visible to the device
    /// ([`crate::bus::Bar::write64`]).
    #[inline]
    pub fn ring(&self, token: Token) {
        self.ring_bits(token.to_bits());
    }

    /// The same with the bits of a token.
    #[inline]
    pub fn ring_bits(&self, token: u64) {
        self.write64(TOKEN_OFFSET, token);
    }

    #[inline]
    fn write64(&self, offset: u64, value: u64) {
        match &self.mapped {
            Some(page) => page.store_register(place(offset), value),
            None => self.bus.write64(DOORBELL_BAR, self.base + offset, value),
        }
    }

    fn write_line(&self, offset: u64, words: &[u64]) {
        match &self.mapped {
            Some(page) => page.store_registers(place(offset), words),
            None => self.bus.write_line(DOORBELL_BAR, self.base + offset, words),
        }
    }

    /// The same with the message's data as a hint (`docs/contract.md` 2.5); data that is too long
    /// for a push is left out, and so is all data if another thread is writing the line whose turn
    /// it is. Pushes of several threads may meet in the page; the device then reads the data from
    /// memory, and no post is lost.
    pub fn push(&self, token: Token, data: &[u8], immediate: Option<u32>) {
        let Some((words, count)) = push_line(token, data, immediate) else {
            return self.ring(token);
        };
        let Some(line) = self.lines.take() else { return self.ring(token) };
        self.write_line(PUSH_OFFSET + PUSH_LINE_BYTES * line as u64, &words[..count]);
        self.lines.give(line);
    }

    /// Tells an event queue's progress.
    pub fn consume(&self, doorbell: EventDoorbell) {
        self.write64(EVENT_OFFSET, doorbell.to_bits());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_in_turn_and_by_one_push_at_a_time() {
        let lines = Lines::default();
        let first: Vec<_> = (0..PUSH_LINES).map(|_| lines.take()).collect();
        assert_eq!(first, [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(lines.take(), None);
        lines.give(1);
        assert_eq!([lines.take(), lines.take()], [Some(1), None]);
    }
}
