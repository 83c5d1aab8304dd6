//! Push doorbells: sections 2.5 to 2.8. Words are collected by page; what is whole is posted with its
//! data, if the VI is quiet.

use nic_regs::counter::Counter;
use nic_regs::doorbell::{
    PUSH_LINE_BYTES, PUSH_LINE_COUNT, PUSH_OFFSET, PUSH_SILENCE_CYCLES, PUSH_WORDS, PushControl,
    Queue, Token,
};
use nic_regs::limits::DOMAIN_COUNT;

use super::{Cause, Doorbells, Refusal, post, refused};
use crate::bits::small16;
use crate::context::Context;
use crate::desc::Inline;
use crate::work_queue::WorkQueues;

/// A push under way: word 0 has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Push {
    line: u64,
    /// Words that have arrived.
    count: usize,
    words: [u64; PUSH_WORDS],
    /// When it is broken, unless another word arrives.
    deadline: u64,
}

/// Line and first word of a well-formed write to the push lines.
pub(super) fn place(within: u64, length: usize) -> Option<(u64, usize)> {
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

impl Doorbells {
    /// Whether a push is under way; that ends in bounded time.
    pub(crate) fn is_busy(&self) -> bool {
        self.under_way != 0
    }

    fn set_push(&mut self, page: u16, push: Option<Push>) {
        self.pages[usize::from(page)] = push;
        self.under_way &= !(1 << page);
        self.under_way |= u64::from(push.is_some()) << page;
    }

    /// Forgets pushes under way: the device was disabled.
    pub(crate) fn forget_unfinished(&mut self) {
        *self = Self::default();
    }

    /// One word of a push line.
    pub(super) fn push_word(
        &mut self,
        page: u16,
        line: u64,
        index: usize,
        word: u64,
        queues: &mut WorkQueues,
        cx: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        let under_way = self.pages[usize::from(page)];
        let continues = under_way.filter(|push| (push.line, push.count) == (line, index));
        let deadline = cx.now + PUSH_SILENCE_CYCLES;
        let Some(mut push) = continues else {
            self.break_push(page, queues, cx);
            if index != 0 {
                return Ok(());
            }
            if Token::from_bits(word).queue == Queue::Recv {
                return Err((Cause::Shape, 0));
            }
            let mut words = [0; PUSH_WORDS];
            words[0] = word;
            self.set_push(page, Some(Push { line, count: 1, words, deadline }));
            return Ok(());
        };
        push.words[index] = word;
        push.count += 1;
        push.deadline = deadline;
        self.set_push(page, Some(push));
        match PushControl::from_bits(push.words[1]) {
            Some(control) if push.words[2] == 0 => {
                if push.count == control.words() {
                    self.set_push(page, None);
                    post_push(page, &push, Some(control), queues, cx);
                }
            }
            _ => self.break_push(page, queues, cx),
        }
        Ok(())
    }

    /// Posts the push that is under way in a page, if there is one, as a token alone.
    pub(super) fn break_push(&mut self, page: u16, queues: &mut WorkQueues, cx: &mut Context<'_>) {
        if let Some(push) = self.pages[usize::from(page)] {
            self.set_push(page, None);
            post_push(page, &push, None, queues, cx);
        }
    }

    /// Breaks pushes that have been silent for too long.
    pub(crate) fn step(&mut self, queues: &mut WorkQueues, cx: &mut Context<'_>) {
        if !self.is_busy() {
            return;
        }
        for page in 0..small16(DOMAIN_COUNT) {
            if self.pages[usize::from(page)].is_some_and(|push| push.deadline <= cx.now) {
                self.break_push(page, queues, cx);
            }
        }
    }
}

/// Posts a push: with the data that `whole` describes, or as a token alone.
fn post_push(
    page: u16,
    push: &Push,
    whole: Option<PushControl>,
    queues: &mut WorkQueues,
    cx: &mut Context<'_>,
) {
    let token = Token::from_bits(push.words[0]);
    let inline = whole.filter(|_| queues.takes_inline(token.vi));
    match post(page, token, queues, cx) {
        Err(refusal) => {
            refused(page, PUSH_OFFSET + PUSH_LINE_BYTES * push.line, Err(refusal), cx);
        }
        // A VI in the error state drops it, and is not quiet.
        Ok(false) => {}
        Ok(true) => match inline {
            Some(PushControl { length, immediate, .. }) => {
                let mut data: Vec<u8> =
                    push.words[3..].iter().flat_map(|word| word.to_le_bytes()).collect();
                data.truncate(length.into());
                cx.count(Counter::PushesInline);
                queues.keep_inline(token.vi, Inline { token, immediate, data });
            }
            None => cx.count(Counter::PushesPlain),
        },
    }
}
