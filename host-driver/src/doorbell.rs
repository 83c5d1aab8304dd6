//! Doorbells: one domain's page in BAR2.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use nic_regs::doorbell::{
    EVENT_OFFSET, EventDoorbell, PAGE_BYTES, PUSH_HEADER_WORDS, PUSH_LINE_BYTES, PUSH_LINE_COUNT,
    PUSH_OFFSET, PUSH_WORDS, PushControl, Queue, TOKEN_OFFSET, Token,
};
use port::doorbell::{Doorbell, InlineData, MappedDoorbell, Owner, Post, PushLine, Ring};

use crate::bus::{Bus, DOORBELL_BAR};
use crate::dma::{DmaMemory, RegisterLine};

#[expect(clippy::cast_possible_truncation, reason = "4")]
const PUSH_LINES: usize = PUSH_LINE_COUNT as usize;

/// An offset in the page.
#[expect(clippy::cast_possible_truncation, reason = "a page has 4 KiB")]
const fn offset(offset: u64) -> usize {
    offset as usize
}

/// The push line that all queues without one of their own write, one at a time.
const SHARED: usize = PUSH_LINES - 1;

/// Which push lines are taken: words of two pushes must not mix in a line. A push ends with a fence,
/// since a processor may merge writes to one line.
#[derive(Debug, Default)]
struct PushLines {
    taken: [AtomicBool; PUSH_LINES],
}

impl PushLines {
    /// Takes a line, if it is free.
    fn take(&self, line: usize) -> bool {
        !self.taken[line].swap(true, Ordering::Acquire)
    }

    fn release(&self, line: usize) {
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
    lines: Arc<PushLines>,
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
        let mapped = bus.mapped(DOORBELL_BAR, base, offset(PAGE_BYTES));
        Self { bus, base, mapped, lines: Arc::default() }
    }

    /// The doorbell of a VI's queue. Where the bus has the page mapped, and the queue has a push
    /// line of its own or needs none, ringing is a store.
    #[must_use]
    pub fn doorbell(&self, vi: u16, queue: Queue, push: bool) -> Doorbell {
        self.mapped_doorbell(vi, queue, push).map_or_else(
            || Doorbell::Call(Arc::new(TokenDoorbell { page: self.clone(), vi, queue, push })),
            Doorbell::Mapped,
        )
    }

    fn mapped_doorbell(&self, vi: u16, queue: Queue, push: bool) -> Option<MappedDoorbell> {
        let page = self.mapped.as_ref()?;
        let push = match push && queue == Queue::Send {
            true => Some(push_line(page, &self.lines)?),
            false => None,
        };
        let none = Token { vi, region: 0, offset_64: 0, segments: 0, queue };
        let register = page.register_line(offset(TOKEN_OFFSET))?;
        Some(MappedDoorbell { register, token: none.to_bits(), push })
    }

    /// Posts one descriptor. What was stored before is visible to the device
    /// ([`crate::bus::Bar::write64`]).
    pub fn ring(&self, token: Token) {
        self.write64(TOKEN_OFFSET, token.to_bits());
    }

    fn write64(&self, at: u64, value: u64) {
        match &self.mapped {
            Some(page) => page.store_register(offset(at), value),
            None => self.bus.write64(DOORBELL_BAR, self.base + at, value),
        }
    }

    fn write_line(&self, at: u64, words: &[u64]) {
        match &self.mapped {
            Some(page) => page.store_registers(offset(at), words),
            None => self.bus.write_line(DOORBELL_BAR, self.base + at, words),
        }
    }

    /// Posts a descriptor with the message's data as a hint (`docs/contract.md` 2.5); the data is
    /// left out if another thread is writing the line. Pushes of several threads may meet in the
    /// page; the device then reads the data from memory, and no post is lost.
    pub fn push(&self, token: Token, data: &InlineData) {
        if !self.lines.take(SHARED) {
            return self.ring(token);
        }
        let length = u8::try_from(data.len()).unwrap_or(0);
        let control = PushControl { length, immediate: data.immediate };
        let mut words = [0; PUSH_WORDS];
        (words[0], words[1]) = (token.to_bits(), control.to_bits());
        words[PUSH_HEADER_WORDS..control.words()].copy_from_slice(data.words());
        let at = PUSH_OFFSET + PUSH_LINE_BYTES * SHARED as u64;
        self.write_line(at, &words[..control.words()]);
        self.lines.release(SHARED);
    }

    /// Reports an event queue's progress.
    pub fn consume(&self, doorbell: EventDoorbell) {
        self.write64(EVENT_OFFSET, doorbell.to_bits());
    }
}

/// A doorbell that is rung by a call of the bus.
#[derive(Debug)]
struct TokenDoorbell {
    page: DoorbellPage,
    vi: u16,
    queue: Queue,
    push: bool,
}

impl Ring for TokenDoorbell {
    fn ring(&self, post: &Post) {
        self.page.ring(post.token(self.vi, self.queue));
    }

    fn ring_with_data(&self, post: &Post, data: &InlineData) {
        if self.push {
            self.page.push(post.token(self.vi, self.queue), data);
        } else {
            self.ring(post);
        }
    }
}

/// A push line that one queue has for itself.
#[derive(Debug)]
struct OwnLine {
    number: usize,
    lines: Arc<PushLines>,
}

impl Owner for OwnLine {}

impl Drop for OwnLine {
    fn drop(&mut self) {
        self.lines.release(self.number);
    }
}

/// A push line of one queue's own, if one is left.
fn push_line(page: &DmaMemory, lines: &Arc<PushLines>) -> Option<PushLine> {
    let number = (0..SHARED).find(|line| lines.take(*line))?;
    let owner = Box::new(OwnLine { number, lines: Arc::clone(lines) });
    let line: RegisterLine =
        page.register_line(offset(PUSH_OFFSET) + offset(PUSH_LINE_BYTES) * number)?;
    Some(PushLine { line, owner })
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::doorbell::{INLINE_BYTES, InlineSource};

    #[test]
    fn a_push_line_has_one_owner_and_the_last_has_none() {
        let (lines, page) = (Arc::default(), DmaMemory::new(4096).unwrap());
        let take = || push_line(&page, &lines);
        let mut owned: Vec<_> = (0..SHARED).map(|_| take().unwrap()).collect();
        assert!(take().is_none());
        assert!(lines.take(SHARED), "for those without a line");
        for (number, own) in (0..).zip(&owned) {
            own.line.store(7, number + 1);
            assert_eq!(page.load_u64(0x100 + 64 * offset(number) + 56), number + 1);
        }
        owned.remove(1);
        take().unwrap().line.store(0, 77);
        assert_eq!(page.load_u64(0x100 + 64), 77);
    }

    #[test]
    fn a_line_is_written_by_one_push_at_a_time() {
        let lines = PushLines::default();
        assert!(lines.take(SHARED));
        assert!(!lines.take(SHARED));
        lines.release(SHARED);
        assert!(lines.take(SHARED));
    }

    /// A page that is mapped to memory.
    fn mapped(page: &DmaMemory) -> DoorbellPage {
        let bus: Arc<dyn Bus> = Arc::new(crate::bus::tests::NoBus);
        DoorbellPage { bus, base: 0, mapped: Some(page.clone()), lines: Arc::default() }
    }

    #[test]
    fn a_mapped_doorbell_stores_what_a_called_one_writes() {
        let memory = DmaMemory::new(4096).unwrap();
        let page = mapped(&memory);
        let post = Post {
            address: 0x1_0000,
            region: nic_regs::tpt::Handle::new(3, 7),
            line: 0x3ff_ffff,
            segments: 0xffff,
        };
        let Doorbell::Mapped(doorbell) = page.doorbell(9, Queue::Send, true) else {
            panic!("mapped")
        };
        let doorbell = Doorbell::Mapped(doorbell);
        let called = TokenDoorbell { page, vi: 9, queue: Queue::Send, push: true };
        doorbell.ring(&post);
        let rung = memory.load_u64(0);
        called.ring(&post);
        assert_eq!(memory.load_u64(0), rung);
        for immediate in [None, Some(0x8765_4321)] {
            for length in 0..=INLINE_BYTES {
                let data: Vec<u8> = (1..=u8::try_from(length).unwrap()).collect();
                let source = DmaMemory::new(INLINE_BYTES + 8).unwrap();
                source.fill(0xdd);
                source.copy_from(3, &data);
                memory.fill(0xee);
                let inline = InlineSource { data: source.words(3, length).unwrap(), immediate };
                doorbell.ring_with_data(&post, inline);
                called.ring_with_data(&post, &InlineData::new(&data, immediate).unwrap());
                let line = |number| memory.to_vec(0x100 + 64 * number, 64);
                assert_eq!(line(0), line(SHARED), "{length} bytes");
            }
        }
    }
}
