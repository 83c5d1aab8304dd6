//! Doorbells: posts and event queue indices, from the page of a domain.

mod push;

use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::doorbell::{BAR_SIZE, EVENT_OFFSET, EventDoorbell, PAGE_BYTES, TOKEN_OFFSET, Token};
use nic_regs::limits::DOMAIN_COUNT;

use crate::bits::{low16, low32};
use crate::context::Context;
use crate::event::ConsumeError;
use crate::trace::Trace;
use crate::work_queue::WorkQueues;
use push::Push;

/// Why a doorbell is refused: the causes of [`ErrorCode::BadDoorbell`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// Size or offset.
    Shape = 0,
    /// Not this page's VI.
    Vi = 1,
    /// Not this page's event queue.
    EventQueue = 2,
    /// The consumer index is out of range.
    Consumer = 3,
}

/// A cause, and the VI or event queue that it is about.
type Refusal = (Cause, u16);

/// The doorbell pages: pushes of which words are still to come.
#[derive(Clone, Debug)]
pub struct Doorbells {
    pages: [Option<Push>; DOMAIN_COUNT],
    /// Pages with a push under way, one bit each.
    under_way: u64,
}

impl Default for Doorbells {
    fn default() -> Self {
        Self { pages: [None; DOMAIN_COUNT], under_way: 0 }
    }
}

impl Doorbells {
    /// A write to BAR2. Bits of the offset above its size do not reach a device.
    pub fn write(
        &mut self,
        offset: u64,
        data: &[u8],
        queues: &mut WorkQueues,
        cx: &mut Context<'_>,
    ) {
        let page = low16(low32(offset % BAR_SIZE / PAGE_BYTES));
        let within = offset % PAGE_BYTES;
        if queues.features.push {
            if let Some((line, first)) = push::place(within, data.len()) {
                let (words, _) = data.as_chunks::<8>();
                for (i, word) in words.iter().enumerate() {
                    let word = u64::from_le_bytes(*word);
                    let outcome = self.push_word(page, line, first + i, word, queues, cx);
                    refused(page, within, outcome, cx);
                }
                return;
            }
            self.break_push(page, queues, cx);
        }
        let outcome = match (<[u8; 8]>::try_from(data), within) {
            (Ok(bytes), TOKEN_OFFSET) => {
                post(page, Token::from_bits(u64::from_le_bytes(bytes)), queues, cx).map(drop)
            }
            (Ok(bytes), EVENT_OFFSET) => {
                let doorbell = EventDoorbell::from_bits(u64::from_le_bytes(bytes));
                let outcome = queues.events.consume(page, doorbell, &mut queues.vis, cx);
                outcome.map_err(|error| match error {
                    ConsumeError::Queue => (Cause::EventQueue, doorbell.queue),
                    ConsumeError::Index => (Cause::Consumer, doorbell.queue),
                })
            }
            _ => Err((Cause::Shape, 0)),
        };
        refused(page, within, outcome, cx);
    }
}

/// A token doorbell, or a push; false if it was dropped.
fn post(
    page: u16,
    token: Token,
    queues: &mut WorkQueues,
    cx: &mut Context<'_>,
) -> Result<bool, Refusal> {
    queues.post(page, token, cx).ok_or((Cause::Vi, token.vi))
}

/// Counts and logs a write at `within` of a page that was refused.
fn refused(page: u16, within: u64, outcome: Result<(), Refusal>, cx: &mut Context<'_>) {
    let Err((cause, index)) = outcome else { return };
    cx.count(Counter::DoorbellBad);
    let dword = low32(within) & !3;
    let detail = u32::from(index) | dword << 16 | (cause as u32) << 28;
    cx.log(ErrorCode::BadDoorbell, page, detail);
    cx.trace(Trace::DoorbellRefused { page, cause: cause as u32 });
}
