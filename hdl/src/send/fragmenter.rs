//! Cuts the next frame off a message: length, flags, word (contract 4.2, 11.1), and the checks of
//! the message's length and operation (3.4, 3.5). The length is that of the data, without an RDMA
//! header.
//!
//! Free running: `refusal` is valid one cycle after the arguments, `length` and `last` after two,
//! `flags` and `word` after three.

use crate::desc::Cause;
use crate::leaf::Number;
use nic_regs::limits::LINK_PAYLOAD_BYTES;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Fragmenter {
    pub clock: Signal<In, Clock>,
    pub total: Signal<In, Bits<20>>,
    pub max_transfer: Signal<In, Bits<20>>,
    /// Frames were sent: `progress` bytes of a message of `whole` bytes.
    pub in_progress: Signal<In, Bit>,
    pub progress: Signal<In, Bits<19>>,
    pub whole: Signal<In, Bits<19>>,
    /// An RDMA write: now, and when frames were sent. The peer's VI takes some.
    pub is_write: Signal<In, Bit>,
    pub was_write: Signal<In, Bit>,
    pub write_allowed: Signal<In, Bit>,
    /// An RDMA read; the peer's VI takes some.
    pub is_read: Signal<In, Bit>,
    pub read_allowed: Signal<In, Bit>,
    pub has_immediate: Signal<In, Bit>,
    pub immediate: Signal<In, Bits<32>>,
    pub sequenced: Signal<In, Bit>,
    pub reception: Signal<In, Bit>,
    /// Too long, changed, or not allowed by the peer's VI (else 0): see [`Cause`].
    pub refusal: Signal<Out, Bits<4>>,
    pub length: Signal<Out, Bits<13>>,
    pub last: Signal<Out, Bit>,
    pub flags: Signal<Out, Bits<8>>,
    pub word: Signal<Out, Bits<32>>,
    too_long_at: DFF<Bit>,
    forbidden_at: DFF<Bit>,
    changed: Signal<Local, Bit>,
    left: DFF<Bits<20>>,
    length_at: DFF<Bits<13>>,
    last_at: DFF<Bit>,
    flags_at: DFF<Bits<8>>,
    word_at: DFF<Bits<32>>,
    first_frame: Signal<Local, Bit>,
    imm_frame: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,
    cause_length: Number<4, { Cause::Length as u64 }>,
    cause_write_barred: Number<4, { Cause::WriteBarred as u64 }>,
    cause_read_barred: Number<4, { Cause::ReadBarred as u64 }>,
    payload: Number<13, { LINK_PAYLOAD_BYTES as u64 }>,
    payload_20: Number<20, { LINK_PAYLOAD_BYTES as u64 }>,
}

impl Logic for Fragmenter {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            forbidden_at,
            too_long_at,
            left,
            length_at,
            last_at,
            flags_at,
            word_at
        );
        self.length.next = self.length_at.q.val();
        self.last.next = self.last_at.q.val();
        self.flags.next = self.flags_at.q.val();
        self.word.next = self.word_at.q.val();

        // In mid-message total and operation must be what they were.
        self.changed.next = (self.total.val() != bit_cast::<20, 19>(self.whole.val()))
            | (self.is_write.val() != self.was_write.val())
            | self.is_read.val();
        self.too_long_at.d.next = (self.total.val() > self.max_transfer.val())
            | (self.in_progress.val() & self.changed.val());
        self.refusal.next = 0.into();
        if self.too_long_at.q.val() {
            self.refusal.next = self.cause_length.val();
        } else if self.forbidden_at.q.val() {
            self.refusal.next = self.cause_write_barred.val();
            if self.is_read.val() {
                self.refusal.next = self.cause_read_barred.val();
            }
        }
        self.forbidden_at.d.next = (self.is_write.val() & (!self.write_allowed.val()))
            | (self.is_read.val() & (!self.read_allowed.val()));
        self.left.d.next = self.total.val() - bit_cast::<20, 19>(self.progress.val());

        self.fits.next = self.left.q.val() <= self.payload_20.val();
        self.last_at.d.next = self.fits.val();
        self.length_at.d.next = self.payload.val();
        if self.fits.val() {
            self.length_at.d.next = self.left.q.val().get_bits::<13>(0);
        }

        self.first_frame.next = !self.in_progress.val();
        self.imm_frame.next = self.last_at.q.val() & self.has_immediate.val();
        self.flags_at.d.next = bit_cast::<8, 1>(self.first_frame.val().into())
            | (bit_cast::<8, 1>(self.last_at.q.val().into()) << 1)
            | (bit_cast::<8, 1>(self.imm_frame.val().into()) << 2)
            | (bit_cast::<8, 1>(self.sequenced.val().into()) << 3)
            | (bit_cast::<8, 1>(self.reception.val().into()) << 4);
        self.word_at.d.next = 0.into();
        if self.imm_frame.val() {
            self.word_at.d.next = self.immediate.val();
        } else if self.first_frame.val() & (!self.last_at.q.val()) & (!self.is_write.val()) {
            self.word_at.d.next = bit_cast::<32, 20>(self.total.val());
        }
    }
}
