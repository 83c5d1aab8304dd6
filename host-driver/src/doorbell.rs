//! Doorbells: one domain's page in BAR2.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use nic_regs::doorbell::{
    EVENT_OFFSET, EventDoorbell, PAGE_BYTES, PUSH_LINE_BYTES, PUSH_LINE_COUNT, PUSH_OFFSET,
    TOKEN_OFFSET, Token, push_line,
};

use crate::bus::{Bus, DOORBELL_BAR};
use crate::dma::{DmaMemory, RegisterLine, Registers};

#[expect(clippy::cast_possible_truncation, reason = "4")]
const PUSH_LINES: usize = PUSH_LINE_COUNT as usize;

/// A place in the page.
#[expect(clippy::cast_possible_truncation, reason = "a page has 4 KiB")]
const fn place(offset: u64) -> usize {
    offset as usize
}

/// The line that all may write, in turn; each of the others has one owner at most.
const SHARED: usize = PUSH_LINES - 1;

/// Who writes which push line: words of two pushes must not mix in a line. A push ends with a
/// fence, since a processor may merge writes to one line.
#[derive(Default)]
struct Lines {
    taken: [AtomicBool; PUSH_LINES],
}

impl Lines {
    /// Takes a line, if it is free.
    #[inline(always)]
    fn take(&self, line: usize) -> bool {
        !self.taken[line].swap(true, Ordering::Acquire)
    }

    #[inline(always)]
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
    /// for a push is left out, and so is all data if another thread is writing the line. Pushes of
    /// several threads may meet in the page; the device then reads the data from memory, and no
    /// post is lost.
    pub fn push(&self, token: Token, data: &[u8], immediate: Option<u32>) {
        let Some((words, count)) = push_line(token, data, immediate) else {
            return self.ring(token);
        };
        if !self.lines.take(SHARED) {
            return self.ring(token);
        }
        self.write_line(PUSH_OFFSET + PUSH_LINE_BYTES * SHARED as u64, &words[..count]);
        self.lines.give(SHARED);
    }

    /// The line of registers that holds the doorbell at its start, if the bus has it mapped: to
    /// store a token there is to ring.
    #[must_use]
    pub fn registers(&self) -> Option<RegisterLine> {
        self.mapped.as_ref()?.register_line(place(TOKEN_OFFSET))
    }

    /// A push line of one's own, if the bus has it mapped and one is left. Its owner shares nothing
    /// with others.
    #[must_use]
    pub fn push_line(&self) -> Option<PushLine> {
        PushLine::take(self.mapped.as_ref()?, &self.lines)
    }

    /// Tells an event queue's progress.
    pub fn consume(&self, doorbell: EventDoorbell) {
        self.write64(EVENT_OFFSET, doorbell.to_bits());
    }
}

/// A mapped push line with one owner.
pub struct PushLine {
    line: RegisterLine,
    number: usize,
    lines: Arc<Lines>,
}

impl core::fmt::Debug for PushLine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PushLine({})", self.number)
    }
}

impl PushLine {
    fn take(page: &DmaMemory, lines: &Arc<Lines>) -> Option<Self> {
        let number = (0..SHARED).find(|line| lines.take(*line))?;
        let line = page.register_line(place(PUSH_OFFSET) + place(PUSH_LINE_BYTES) * number);
        line.map(|line| Self { line, number, lines: Arc::clone(lines) })
    }

    /// A line of a page that nobody else uses.
    #[cfg(test)]
    pub(crate) fn alone(page: &DmaMemory) -> Option<Self> {
        Self::take(page, &Arc::default())
    }

    /// Its words. A push stores them in the order of [`push_line`], and finishes.
    #[must_use]
    #[inline(always)]
    pub const fn registers(&self) -> Registers<'_> {
        self.line.registers()
    }
}

impl Drop for PushLine {
    fn drop(&mut self) {
        self.lines.give(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_line_has_one_owner_and_the_last_has_none() {
        let (lines, page) = (Arc::default(), DmaMemory::new(4096).unwrap());
        let take = || PushLine::take(&page, &lines);
        let mut owned: Vec<_> = (0..SHARED).map(|_| take().unwrap()).collect();
        assert!(take().is_none());
        assert!(lines.take(SHARED), "for those without a line");
        for (number, line) in (0..).zip(&owned) {
            line.registers().store(7, number + 1);
            assert_eq!(page.load_u64(0x100 + 64 * place(number) + 56), number + 1);
        }
        owned.remove(1);
        take().unwrap().registers().store(0, 77);
        assert_eq!(page.load_u64(0x100 + 64), 77);
    }

    #[test]
    fn a_line_is_written_by_one_push_at_a_time() {
        let lines = Lines::default();
        assert!(lines.take(SHARED));
        assert!(!lines.take(SHARED));
        lines.give(SHARED);
        assert!(lines.take(SHARED));
    }
}
