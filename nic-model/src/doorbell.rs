//! Doorbells: posts and event queue indices, from the page of a domain.

use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::csr::{CONTROL, Stamp};
use nic_regs::doorbell::{EVENT_OFFSET, EventDoorbell, PAGE_BYTES, Queue, TOKEN_OFFSET, Token};
use nic_regs::limits::VI_COUNT;
use nic_regs::vi::State;

use crate::bits::{low16, low32};
use crate::device::HostBus;
use crate::nic::Model;
use crate::trace::Trace;

/// Why a doorbell is refused: the causes of [`ErrorCode::BadDoorbell`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
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
pub(crate) type Refusal = (Cause, u16);

impl Model {
    /// A write to BAR2.
    pub(crate) fn doorbell_write(&mut self, offset: u64, data: &[u8], host: &mut dyn HostBus) {
        if CONTROL(self.csr.control).get(CONTROL::ENABLE) == 0 {
            return;
        }
        let page = low16(low32(offset / PAGE_BYTES));
        let within = offset % PAGE_BYTES;
        if self.features.push {
            if let Some((line, first)) = crate::push::place(within, data.len()) {
                let (words, _) = data.as_chunks::<8>();
                for (i, word) in words.iter().enumerate() {
                    let word = u64::from_le_bytes(*word);
                    if let Err(refusal) = self.push_word(page, line, first + i, word) {
                        self.refuse_doorbell(page, within, refusal);
                    }
                }
                return;
            }
            self.break_push(page);
        }
        let outcome = match (<[u8; 8]>::try_from(data), within) {
            (Ok(bytes), TOKEN_OFFSET) => {
                self.post(page, Token::from_bits(u64::from_le_bytes(bytes))).map(drop)
            }
            (Ok(bytes), EVENT_OFFSET) => {
                let doorbell = EventDoorbell::from_bits(u64::from_le_bytes(bytes));
                self.consume(page, doorbell, host)
            }
            _ => Err((Cause::Shape, 0)),
        };
        if let Err(refusal) = outcome {
            self.refuse_doorbell(page, within, refusal);
        }
    }

    /// A write at `within` of a page is refused.
    pub(crate) fn refuse_doorbell(&mut self, page: u16, within: u64, (cause, index): Refusal) {
        self.count(Counter::DoorbellBad);
        let dword = low32(within) & !3;
        let detail = u32::from(index) | dword << 16 | (cause as u32) << 28;
        self.log(ErrorCode::BadDoorbell, page, detail);
        self.trace(Trace::DoorbellRefused { page, cause: cause as u32 });
    }

    /// A token doorbell, or a push; false if it was dropped.
    pub(crate) fn post(&mut self, page: u16, token: Token) -> Result<bool, Refusal> {
        let vi = token.vi;
        if usize::from(vi) >= VI_COUNT {
            return Err((Cause::Vi, vi));
        }
        let v = self.vi_mut(vi);
        if v.state == State::Free || u16::from(v.owner.domain) != page {
            return Err((Cause::Vi, vi));
        }
        self.trace(Trace::Doorbell { page, token });
        if self.vi(vi).state == State::Error {
            self.count(Counter::DoorbellDropped);
            return Ok(false);
        }
        self.vi_mut(vi).queues[token.queue as usize].post(token);
        self.count(Counter::DoorbellTokens);
        if token.queue == Queue::Send {
            self.stamp(vi, Stamp::Doorbell);
            self.make_ready(vi);
        }
        Ok(true)
    }

    /// An event doorbell.
    fn consume(
        &mut self,
        page: u16,
        doorbell: EventDoorbell,
        host: &mut dyn HostBus,
    ) -> Result<(), Refusal> {
        let number = doorbell.queue;
        let queue = self
            .events
            .queues
            .get_mut(usize::from(number))
            .filter(|q| q.exists && u16::from(q.domain) == page)
            .ok_or((Cause::EventQueue, number))?;
        let level = queue.producer.wrapping_sub(doorbell.consumer);
        if u32::from(level) > 1 << queue.log2 {
            return Err((Cause::Consumer, number));
        }
        let moved = queue.consumer != doorbell.consumer;
        queue.consumer = doorbell.consumer;
        queue.armed = doorbell.arm && level == 0;
        let vector = queue.vector;
        if doorbell.arm && level != 0 {
            self.interrupt(vector.into(), host);
        }
        if moved {
            self.drain(number, host);
        }
        Ok(())
    }
}
