//! Sorts BAR2 writes into token doorbells (to `vi`) and event doorbells (to `event`), by their
//! offset in the page.
//!
//! Words of push lines go to [`Push`], which posts tokens too. Each kind has a FIFO of 16. While
//! either is full, writes wait. Anything but words of push lines and one whole aligned 8-byte write
//! to one of the two offsets is refused: counted, and logged with cause 0.
use super::push::Push;
use crate::ifs::{PostClient, PushClient};
use crate::leaf::{Fifo, Number};
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::doorbell::{EVENT_OFFSET, TOKEN_OFFSET};
use rust_hdl::prelude::*;

/// See the module's text. While `enable` is 0 every write is dropped silently.
#[derive(LogicBlock, Default)]
pub struct Doorbell {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub enable: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    /// One whole aligned 8-byte word.
    pub whole: Signal<In, Bit>,
    /// A word of a well-formed write to a push line.
    pub word: Signal<In, Bit>,
    pub page: Signal<In, Bits<6>>,
    pub offset: Signal<In, Bits<12>>,
    pub data: Signal<In, Bits<64>>,
    /// It is not zero.
    pub some: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub vi_post: PostClient,
    pub event_post: PostClient,
    pub words: PushClient,
    pub counts: Signal<Out, Bits<64>>,
    pub error_valid: Signal<Out, Bit>,
    pub error_record: Signal<Out, Bits<64>>,
    push: Push,
    tokens: Fifo<64, 4>,
    token_pages: Fifo<6, 4>,
    token_pushes: Fifo<7, 4>,
    events: Fifo<64, 4>,
    event_pages: Fifo<6, 4>,
    error_out: DFF<Bit>,
    record_out: DFF<Bits<64>>,
    counts_out: DFF<Bits<64>>,
    open: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    to_vi: Signal<Local, Bit>,
    to_event: Signal<Local, Bit>,
    token_offset: Number<12, TOKEN_OFFSET>,
    event_offset: Number<12, EVENT_OFFSET>,
    count_bad: Number<64, { 1 << Counter::DoorbellBad as u64 }>,
    code_bad: Number<64, { ErrorCode::BadDoorbell as u64 }>,
}

impl Logic for Doorbell {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, error_out, record_out, counts_out);
        clock!(self, clock, push, tokens, token_pages, token_pushes, events, event_pages);
        PushClient::link(&mut self.words, &mut self.push.words);
        self.push.reset.next = self.reset.val();
        self.token_pushes.reset.next = self.reset.val();
        self.tokens.reset.next = self.reset.val();
        self.token_pages.reset.next = self.reset.val();
        self.events.reset.next = self.reset.val();
        self.event_pages.reset.next = self.reset.val();

        self.open.next = (!self.tokens.full.val()) & (!self.events.full.val());
        self.ready.next = self.open.val() & (!self.push.breaks.val()) & (!self.push.waits.val());
        self.moves.next = self.valid.val()
            & self.open.val()
            & self.enable.val()
            & (!self.push.breaks.val())
            & (!self.push.waits.val());
        self.push.enable.next = self.enable.val();
        self.push.valid.next = self.valid.val();
        self.push.word.next = self.word.val();
        self.push.page.next = self.page.val();
        self.push.line.next = self.offset.val().get_bits::<2>(6);
        self.push.index.next = self.offset.val().get_bits::<3>(3);
        self.push.data.next = self.data.val();
        self.push.some.next = self.some.val();
        self.push.room.next = self.open.val() & self.enable.val();
        self.to_vi.next = self.moves.val()
            & self.whole.val()
            & (!self.word.val())
            & (self.offset.val() == self.token_offset.val());
        self.to_event.next = self.moves.val()
            & self.whole.val()
            & (!self.word.val())
            & (self.offset.val() == self.event_offset.val());
        self.tokens.write.next = self.to_vi.val() | self.push.post.val();
        self.token_pages.write.next = self.to_vi.val() | self.push.post.val();
        self.token_pushes.write.next = self.to_vi.val() | self.push.post.val();
        self.tokens.data_in.next = self.data.val();
        self.token_pages.data_in.next = self.page.val();
        self.token_pushes.data_in.next = 0.into();
        if self.push.post.val() {
            self.tokens.data_in.next = self.push.post_token.val();
            self.token_pages.data_in.next = self.push.post_page.val();
            self.token_pushes.data_in.next = self.push.post_push.val();
        }
        self.events.write.next = self.to_event.val();
        self.event_pages.write.next = self.to_event.val();
        self.events.data_in.next = self.data.val();
        self.event_pages.data_in.next = self.page.val();

        self.vi_post.valid.next = !self.tokens.empty.val();
        self.vi_post.token.next = self.tokens.data_out.val();
        self.vi_post.domain.next = bit_cast::<8, 6>(self.token_pages.data_out.val());
        self.vi_post.push.next = self.token_pushes.data_out.val();
        self.token_pushes.read.next = self.vi_post.ready.val() & (!self.tokens.empty.val());
        self.tokens.read.next = self.vi_post.ready.val() & (!self.tokens.empty.val());
        self.token_pages.read.next = self.vi_post.ready.val() & (!self.tokens.empty.val());
        self.event_post.valid.next = !self.events.empty.val();
        self.event_post.token.next = self.events.data_out.val();
        self.event_post.domain.next = bit_cast::<8, 6>(self.event_pages.data_out.val());
        self.event_post.push.next = 0.into();
        self.events.read.next = self.event_post.ready.val() & (!self.events.empty.val());
        self.event_pages.read.next = self.event_post.ready.val() & (!self.events.empty.val());

        self.counts.next = self.counts_out.q.val();
        self.error_valid.next = self.error_out.q.val();
        self.error_record.next = self.record_out.q.val();
        self.counts_out.d.next = 0.into();
        self.error_out.d.next = false;
        self.record_out.d.next = self.code_bad.val()
            | (bit_cast::<64, 6>(self.page.val()) << 16)
            | (bit_cast::<64, 12>(self.offset.val()) << 48);
        if (self.moves.val() & (!self.word.val()) & (!self.to_vi.val()) & (!self.to_event.val()))
            | self.push.refused.val()
        {
            self.counts_out.d.next = self.count_bad.val();
            self.error_out.d.next = true;
        }
        if self.reset.val() {
            self.counts_out.d.next = 0.into();
            self.error_out.d.next = false;
        }
    }
}
