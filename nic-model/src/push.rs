//! Push doorbells: sections 2.5 to 2.8. Words are collected by page; what is whole goes to the send
//! engine with its data, if the VI is quiet.

use std::collections::VecDeque;

use nic_regs::counter::Counter;
use nic_regs::csr::Stamp;
use nic_regs::desc::{CONTROL_BYTES, ControlSegment, SEGMENT_BYTES, control};
use nic_regs::doorbell::{
    PUSH_LINE_BYTES, PUSH_LINE_COUNT, PUSH_OFFSET, PUSH_SILENCE_CYCLES, PUSH_WORDS, PushControl,
    Queue, Token,
};
use nic_regs::limits::DOMAIN_COUNT;
use nic_regs::vi::State;

use crate::desc::{Fault, Operation, Resolved, SEGMENTS_REACHED};
use crate::doorbell::{Cause, Refusal};
use crate::nic::Model;
use crate::vi::SendPhase;

/// Whole pushes that wait for the send engine; a push that finds no room is posted without data.
const FIFO_ENTRIES: usize = 8;

/// A push under way: word 0 is here.
#[derive(Clone, Copy, Debug)]
struct Push {
    line: u64,
    /// Words that are here.
    count: usize,
    words: [u64; PUSH_WORDS],
    /// When it is broken, unless another word comes.
    deadline: u64,
}

/// The data of a push that was posted inline.
#[derive(Clone, Debug)]
pub(crate) struct Inline {
    token: Token,
    immediate: Option<u32>,
    data: Vec<u8>,
}

/// All pushes.
#[derive(Clone, Debug)]
pub(crate) struct Pushes {
    pages: [Option<Push>; DOMAIN_COUNT],
    /// Pages with a push under way, one bit each.
    under_way: u64,
    /// By VI; at most one each, since its send queue was empty.
    whole: VecDeque<(u16, Inline)>,
}

impl Default for Pushes {
    fn default() -> Self {
        Self { pages: [None; DOMAIN_COUNT], under_way: 0, whole: VecDeque::new() }
    }
}

impl Pushes {
    /// Whether a push is under way; that ends in bounded time.
    pub(crate) fn busy(&self) -> bool {
        self.under_way != 0
    }

    fn set(&mut self, page: u16, push: Option<Push>) {
        self.pages[usize::from(page)] = push;
        self.under_way &= !(1 << page);
        self.under_way |= u64::from(push.is_some()) << page;
    }

    /// The device was disabled.
    pub(crate) fn forget_unfinished(&mut self) {
        self.pages = [None; DOMAIN_COUNT];
        self.under_way = 0;
    }

    /// Forgets the data for `vi`, or for all; it is then read from memory.
    pub(crate) fn forget(&mut self, vi: Option<u16>) {
        self.whole.retain(|entry| vi.is_some_and(|vi| vi != entry.0));
    }

    /// The data of the descriptor at the head of a VI's send queue, if it is here.
    pub(crate) fn take(&mut self, vi: u16) -> Option<Inline> {
        let at = self.whole.iter().position(|entry| entry.0 == vi)?;
        self.whole.remove(at).map(|entry| entry.1)
    }
}

/// Line and first word of a well-formed write to the push lines.
pub(crate) fn place(within: u64, length: usize) -> Option<(u64, usize)> {
    let at = within.checked_sub(PUSH_OFFSET)?;
    let length = length as u64;
    let (line, byte) = (at / PUSH_LINE_BYTES, at % PUSH_LINE_BYTES);
    let good = line < PUSH_LINE_COUNT
        && byte.is_multiple_of(8)
        && length.is_multiple_of(8)
        && length != 0
        && byte + length <= PUSH_LINE_BYTES;
    let word = usize::try_from(byte / 8).ok()?;
    good.then_some((line, word))
}

impl Model {
    /// One word of a push line.
    pub(crate) fn push_word(
        &mut self,
        page: u16,
        line: u64,
        index: usize,
        word: u64,
    ) -> Result<(), Refusal> {
        let under_way = self.pushes.pages[usize::from(page)];
        let continues = under_way.filter(|push| (push.line, push.count) == (line, index));
        let Some(mut push) = continues else {
            self.break_push(page);
            if index != 0 {
                return Ok(());
            }
            if Token::from_bits(word).queue == Queue::Recv {
                return Err((Cause::Shape, 0));
            }
            let mut words = [0; PUSH_WORDS];
            words[0] = word;
            let push = Push { line, count: 1, words, deadline: self.now + PUSH_SILENCE_CYCLES };
            self.pushes.set(page, Some(push));
            return Ok(());
        };
        push.words[index] = word;
        push.count += 1;
        push.deadline = self.now + PUSH_SILENCE_CYCLES;
        self.pushes.set(page, Some(push));
        match PushControl::from_bits(push.words[1]) {
            Some(control) if push.words[2] == 0 => {
                if push.count == control.words() {
                    self.pushes.set(page, None);
                    self.post_whole(page, &push, control);
                }
            }
            _ => self.break_push(page),
        }
        Ok(())
    }

    /// Posts the push that is under way in a page, if there is one, as a token alone.
    pub(crate) fn break_push(&mut self, page: u16) {
        if let Some(push) = self.pushes.pages[usize::from(page)] {
            self.pushes.set(page, None);
            self.post_push(page, &push, None);
        }
    }

    /// Pushes that have been silent for too long.
    pub(crate) fn push_step(&mut self) {
        if !self.pushes.busy() {
            return;
        }
        for page in 0..crate::bits::small16(DOMAIN_COUNT) {
            let push = self.pushes.pages[usize::from(page)];
            if push.is_some_and(|push| push.deadline <= self.now) {
                self.break_push(page);
            }
        }
    }

    fn post_whole(&mut self, page: u16, push: &Push, control: PushControl) {
        let mut data: Vec<u8> =
            push.words[3..].iter().flat_map(|word| word.to_le_bytes()).collect();
        data.truncate(control.length.into());
        let token = Token::from_bits(push.words[0]);
        self.post_push(page, push, Some(Inline { token, immediate: control.immediate, data }));
    }

    fn post_push(&mut self, page: u16, push: &Push, inline: Option<Inline>) {
        let token = Token::from_bits(push.words[0]);
        let inline =
            inline.filter(|_| self.pushes.whole.len() < FIFO_ENTRIES && self.is_quiet(token.vi));
        match self.post(page, token) {
            Err(refusal) => {
                self.refuse_doorbell(page, PUSH_OFFSET + PUSH_LINE_BYTES * push.line, refusal);
            }
            // A VI in the error state drops it, and is not quiet.
            Ok(false) => {}
            Ok(true) => match inline {
                Some(inline) => {
                    self.count(Counter::PushesInline);
                    self.pushes.whole.push_back((token.vi, inline));
                }
                None => self.count(Counter::PushesPlain),
            },
        }
    }

    /// Whether a push to this VI may be posted inline: section 2.7.
    fn is_quiet(&self, vi: u16) -> bool {
        self.vis.entries.get(usize::from(vi)).is_some_and(|v| {
            v.state == State::Connected
                && v.queues[Queue::Send as usize].count == 0
                && v.send == SendPhase::Between
                && v.answer.is_none()
                && self.vis.first_owed(vi).is_none()
        })
    }

    /// The descriptor of an inline push, as if it had been fetched: section 2.8.
    pub(crate) fn resolve_inline(&mut self, vi: u16, inline: Inline) -> Result<Resolved, Fault> {
        let Inline { token, immediate, data } = inline;
        let segments = u16::from(token.segments);
        let reached = if segments > SEGMENTS_REACHED { 0 } else { segments };
        let bytes = CONTROL_BYTES + SEGMENT_BYTES * u64::from(reached);
        self.regions.reach(token, bytes, self.vi(vi).owner).ok_or(Fault::Unreachable)?;
        self.vi_mut(vi).operations[Queue::Send as usize] = nic_regs::desc::status::OP_SEND;
        let control = ControlSegment {
            control: if immediate.is_some() { control::IMMEDIATE } else { 0 },
            immediate: immediate.unwrap_or(0),
            ..ControlSegment::default()
        };
        self.stamp(vi, Stamp::Descriptor);
        let (spans, total) = (Vec::new(), data.len() as u64);
        Ok(Resolved { control, operation: Operation::Send, spans, total, inline: Some(data) })
    }
}
