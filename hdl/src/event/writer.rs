//! Writes one event record at a time to host memory, and MSI-X messages.
//!
//! ```text
//!   Idle --record held--> Record --last beat loaded--> Flush --last beat moved--> Idle     (record: fires its vector)
//!    `----vector chosen-> Interrupt ------------------> Flush
//! ```
//! A record goes before interrupts, and `room` stays low while an unmasked interrupt is pending: an
//! interrupt that was asked for while a record was held follows that record, and neither kind can
//! starve the other.

use crate::leaf::{LutRam, Number};
use nic_regs::event::{EVENT_BYTES, WIDE_ENTRY_BYTES};
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum WriterState {
    /// Waits for a record or an interrupt.
    Idle,
    /// Loads the record's beats.
    Record,
    /// Loads the one beat of an interrupt.
    Interrupt,
    /// Waits until the last beat has moved.
    Flush,
}

#[derive(LogicBlock, Default)]
pub struct RecordWriter {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A record may be handed over.
    pub room: Signal<Out, Bit>,
    /// No record is held.
    pub empty: Signal<Out, Bit>,
    /// The record (pulse, with room).
    pub record: Signal<In, Bit>,
    pub address: Signal<In, Bits<64>>,
    pub word0: Signal<In, Bits<32>>,
    pub word1: Signal<In, Bits<32>>,
    pub word2: Signal<In, Bits<32>>,
    pub phase: Signal<In, Bit>,
    pub wide: Signal<In, Bit>,
    /// The message beats that were written before are part of the record (else zeros).
    pub message: Signal<In, Bit>,
    pub interrupt: Signal<In, Bit>,
    pub vector: Signal<In, Bits<5>>,
    pub beat_write: Signal<In, Bit>,
    pub beat_index: Signal<In, Bits<3>>,
    pub beat_data: Signal<In, Bits<64>>,
    /// Interrupts: see [`super::msix`].
    pub msix_any: Signal<In, Bit>,
    pub msix_chosen: Signal<In, Bit>,
    pub msix_address: Signal<In, Bits<64>>,
    pub msix_data: Signal<In, Bits<32>>,
    pub msix_sending: Signal<Out, Bit>,
    pub fire: Signal<Out, Bit>,
    pub fire_vector: Signal<Out, Bits<5>>,
    pub out_valid: Signal<Out, Bit>,
    pub out_address: Signal<Out, Bits<64>>,
    pub out_length: Signal<Out, Bits<13>>,
    pub out_data: Signal<Out, Bits<64>>,
    pub out_last: Signal<Out, Bit>,
    pub out_ready: Signal<In, Bit>,
    beats: LutRam<64, 3>,
    state: DFF<WriterState>,
    held: DFF<Bit>,
    beat: DFF<Bits<3>>,
    held_address: DFF<Bits<64>>,
    held_words: DFF<Bits<64>>,
    held_word2: DFF<Bits<32>>,
    held_phase: DFF<Bit>,
    held_wide: DFF<Bit>,
    held_message: DFF<Bit>,
    held_interrupt: DFF<Bit>,
    held_vector: DFF<Bits<5>>,
    valid: DFF<Bit>,
    write_address: DFF<Bits<64>>,
    length: DFF<Bits<13>>,
    data: DFF<Bits<64>>,
    last: DFF<Bit>,
    /// The packet in Flush is a record.
    flush_record: DFF<Bit>,
    event_beats: Signal<Local, Bit>,
    narrow_bytes: Number<13, EVENT_BYTES>,
    wide_bytes: Number<13, WIDE_ENTRY_BYTES>,
    msix_bytes: Number<13, 4>,
}

impl Logic for RecordWriter {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            state,
            held,
            beat,
            held_address,
            held_words,
            held_word2,
            held_phase,
            held_wide,
            held_message,
            held_interrupt,
            held_vector,
            valid,
            write_address,
            length,
            data,
            last,
            flush_record
        );
        clock!(self, clock, beats);
        self.beats.write_enable.next = self.beat_write.val();
        self.beats.write_address.next = self.beat_index.val();
        self.beats.write_data.next = self.beat_data.val();
        self.beats.read_address.next = self.beat.q.val();
        self.room.next = (!self.held.q.val()) & (!self.msix_any.val());
        self.empty.next = !self.held.q.val();
        self.out_valid.next = self.valid.q.val();
        self.out_address.next = self.write_address.q.val();
        self.out_length.next = self.length.q.val();
        self.out_data.next = self.data.q.val();
        self.out_last.next = self.last.q.val();
        self.msix_sending.next = false;
        self.fire.next = false;
        self.fire_vector.next = self.held_vector.q.val();
        // Beats 6 and 7 of a wide entry are the event; a narrow entry starts with beat 6.
        self.event_beats.next = self.beat.q.val().get_bit(2) & self.beat.q.val().get_bit(1);

        if self.record.val() {
            self.held.d.next = true;
            self.held_address.d.next = self.address.val();
            self.held_words.d.next =
                (bit_cast::<64, 32>(self.word1.val()) << 32) | bit_cast::<64, 32>(self.word0.val());
            self.held_word2.d.next = self.word2.val();
            self.held_phase.d.next = self.phase.val();
            self.held_wide.d.next = self.wide.val();
            self.held_message.d.next = self.message.val();
            self.held_interrupt.d.next = self.interrupt.val();
            self.held_vector.d.next = self.vector.val();
        }
        match self.state.q.val() {
            WriterState::Idle => {
                self.beat.d.next = 6.into();
                if self.held_wide.q.val() {
                    self.beat.d.next = 0.into();
                }
                if self.held.q.val() {
                    self.state.d.next = WriterState::Record;
                } else if self.msix_chosen.val() {
                    self.state.d.next = WriterState::Interrupt;
                }
            }
            WriterState::Record => {
                self.write_address.d.next = self.held_address.q.val();
                self.length.d.next = self.narrow_bytes.val();
                if self.held_wide.q.val() {
                    self.length.d.next = self.wide_bytes.val();
                }
                if (!self.valid.q.val()) | self.out_ready.val() {
                    self.valid.d.next = true;
                    self.beat.d.next = self.beat.q.val() + 1;
                    self.last.d.next = false;
                    self.data.d.next = 0.into();
                    if self.event_beats.val() & self.beat.q.val().get_bit(0) {
                        self.data.d.next = (bit_cast::<64, 1>(self.held_phase.q.val().into())
                            << 63)
                            | bit_cast::<64, 32>(self.held_word2.q.val());
                        self.last.d.next = true;
                        self.flush_record.d.next = true;
                        self.state.d.next = WriterState::Flush;
                    } else if self.event_beats.val() {
                        self.data.d.next = self.held_words.q.val();
                    } else if self.held_message.q.val() {
                        self.data.d.next = self.beats.read_data.val();
                    }
                }
            }
            WriterState::Interrupt => {
                // The vector may have been masked meanwhile.
                self.state.d.next = WriterState::Idle;
                if self.msix_chosen.val() {
                    self.msix_sending.next = true;
                    self.write_address.d.next = self.msix_address.val();
                    self.length.d.next = self.msix_bytes.val();
                    self.data.d.next = (bit_cast::<64, 32>(self.msix_data.val()) << 32)
                        | bit_cast::<64, 32>(self.msix_data.val());
                    self.valid.d.next = true;
                    self.last.d.next = true;
                    self.flush_record.d.next = false;
                    self.state.d.next = WriterState::Flush;
                }
            }
            WriterState::Flush => {
                if self.out_ready.val() {
                    self.valid.d.next = false;
                    self.state.d.next = WriterState::Idle;
                    if self.flush_record.q.val() {
                        self.held.d.next = false;
                        self.fire.next = self.held_interrupt.q.val();
                    }
                }
            }
            _ => {
                self.state.d.next = WriterState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = WriterState::Idle;
            self.held.d.next = false;
            self.valid.d.next = false;
        }
    }
}
