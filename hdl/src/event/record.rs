//! Events of the VIs, the receive engine and the channel: whether their record is written, put off
//! or lost (contract 10.1), the answer, and the record on its way to host memory.
//!
//! A record is taken in one cycle (`at`); a message's six beats are read first (`copying`), and its
//! answer comes with the last. EventsDeferred counts first tries: the VIs count theirs, the
//! channel's are counted here.

use super::writer::RecordWriter;
use crate::ifs::{EventServer, WriteClient};
use crate::leaf::Number;
use nic_regs::counter::Counter;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Records {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub vi: EventServer,
    pub recv: EventServer,
    pub channel: EventServer,
    pub write: WriteClient,
    /// Events wait until there is room; `empty`: no record is held.
    pub room: Signal<Out, Bit>,
    pub empty: Signal<Out, Bit>,
    /// Whose event it is, one-hot in the order above; stable until its answer.
    pub who: Signal<In, Bits<3>>,
    /// The event is decided in this cycle.
    pub at: Signal<In, Bit>,
    /// It is a message: it needs a wide queue, and its beats are copied.
    pub message: Signal<In, Bit>,
    pub copying: Signal<In, Bit>,
    pub copied: Signal<Out, Bit>,
    // The queue, and where it takes the record.
    pub found: Signal<In, Bit>,
    pub wide: Signal<In, Bit>,
    pub full: Signal<In, Bit>,
    pub armed: Signal<In, Bit>,
    pub vector: Signal<In, Bits<5>>,
    pub address: Signal<In, Bits<64>>,
    pub phase: Signal<In, Bit>,
    /// Whose answer is on its way: the call is over, and must not be taken again.
    pub answering: Signal<Out, Bits<3>>,
    // The decision; none of them: lost, or a message refused.
    pub produce: Signal<Out, Bit>,
    pub put_off: Signal<Out, Bit>,
    pub counted: Signal<Out, Bits<64>>,
    // Interrupts: see `super::msix`.
    pub msix_any: Signal<In, Bit>,
    pub msix_chosen: Signal<In, Bit>,
    pub msix_address: Signal<In, Bits<64>>,
    pub msix_data: Signal<In, Bits<32>>,
    pub msix_sending: Signal<Out, Bit>,
    pub fire: Signal<Out, Bit>,
    pub fire_vector: Signal<Out, Bits<5>>,
    writer: RecordWriter,
    beat: DFF<Bits<3>>,
    /// The channel has an event that was counted as put off.
    channel_put_off: DFF<Bit>,
    /// The answer, registered: the way to the clients is long.
    answered: DFF<Bits<3>>,
    answer: DFF<Bits<2>>,
    absent: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,
    last_beat: Signal<Local, Bit>,
    done: Signal<Local, Bit>,
    outcome: Signal<Local, Bits<2>>,
    outcome_absent: Number<2, 2>,
    outcome_full: Number<2, 1>,
    last_index: Number<3, 6>,
    count_written: Number<64, { 1 << Counter::EventsWritten as u32 }>,
    count_deferred: Number<64, { 1 << Counter::EventsDeferred as u32 }>,
    count_message:
        Number<64, { 1 << Counter::MessagesReceived as u32 | 1 << Counter::EventsWritten as u32 }>,
}

impl Logic for Records {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, beat, channel_put_off, answered, answer);
        clock!(self, clock, writer);
        self.writer.reset.next = self.reset.val();
        self.room.next = self.writer.room.val();
        self.empty.next = self.writer.empty.val();

        // The decision.
        self.absent.next = (!self.found.val()) | (self.message.val() & (!self.wide.val()));
        self.fits.next = self.at.val() & (!self.absent.val()) & (!self.full.val());
        self.produce.next = self.fits.val();
        self.put_off.next =
            self.at.val() & (!self.absent.val()) & self.full.val() & (!self.message.val());
        self.outcome.next = 0.into();
        self.counted.next = 0.into();
        if self.at.val() {
            if self.absent.val() {
                self.outcome.next = self.outcome_absent.val();
            } else if self.full.val() {
                self.outcome.next = self.outcome_full.val();
                if self.who.val().get_bit(2) {
                    self.channel_put_off.d.next = true;
                    if !self.channel_put_off.q.val() {
                        self.counted.next = self.count_deferred.val();
                    }
                }
            } else if self.message.val() {
                self.counted.next = self.count_message.val();
            } else {
                self.counted.next = self.count_written.val();
            }
            if self.who.val().get_bit(2) & (self.absent.val() | (!self.full.val())) {
                self.channel_put_off.d.next = false;
            }
        }

        // A message's beats come a cycle after their index.
        self.beat.d.next = 0.into();
        if self.copying.val() {
            self.beat.d.next = self.beat.q.val() + 1;
        }
        self.last_beat.next = self.copying.val() & (self.beat.q.val() == self.last_index.val());
        self.copied.next = self.last_beat.val();

        // The answer.
        self.done.next =
            self.last_beat.val() | (self.at.val() & (!(self.fits.val() & self.message.val())));
        self.answered.d.next = 0.into();
        if self.done.val() {
            self.answered.d.next = self.who.val();
        }
        self.answer.d.next = self.outcome.val();
        self.answering.next = self.answered.q.val();
        self.vi.done.next = self.answered.q.val().get_bit(0);
        self.vi.outcome.next = self.answer.q.val();
        self.vi.message_index.next = 0.into();
        self.recv.done.next = self.answered.q.val().get_bit(1);
        self.recv.outcome.next = self.answer.q.val();
        self.recv.message_index.next = self.beat.q.val();
        self.channel.done.next = self.answered.q.val().get_bit(2);
        self.channel.outcome.next = self.answer.q.val();
        self.channel.message_index.next = 0.into();

        // The record.
        self.writer.record.next = (self.fits.val() & (!self.message.val())) | self.last_beat.val();
        self.writer.address.next = self.address.val();
        self.writer.word0.next = self.vi.word0.val();
        self.writer.word1.next = self.vi.word1.val();
        self.writer.word2.next = self.vi.word2.val();
        if self.who.val().get_bit(1) {
            self.writer.word0.next = self.recv.word0.val();
            self.writer.word1.next = self.recv.word1.val();
            self.writer.word2.next = self.recv.word2.val();
        } else if self.who.val().get_bit(2) {
            self.writer.word0.next = self.channel.word0.val();
            self.writer.word1.next = self.channel.word1.val();
            self.writer.word2.next = self.channel.word2.val();
        }
        self.writer.phase.next = self.phase.val();
        self.writer.wide.next = self.wide.val();
        self.writer.message.next = self.message.val();
        self.writer.interrupt.next = self.armed.val();
        self.writer.vector.next = self.vector.val();
        self.writer.beat_write.next = self.copying.val();
        self.writer.beat_index.next = self.beat.q.val() - 1;
        self.writer.beat_data.next = self.recv.message_data.val();
        self.writer.msix_any.next = self.msix_any.val();
        self.writer.msix_chosen.next = self.msix_chosen.val();
        self.writer.msix_address.next = self.msix_address.val();
        self.writer.msix_data.next = self.msix_data.val();
        self.msix_sending.next = self.writer.msix_sending.val();
        self.fire.next = self.writer.fire.val();
        self.fire_vector.next = self.writer.fire_vector.val();
        self.writer.out_ready.next = self.write.ready.val();
        self.write.valid.next = self.writer.out_valid.val();
        self.write.address.next = self.writer.out_address.val();
        self.write.length.next = self.writer.out_length.val();
        self.write.data.next = self.writer.out_data.val();
        self.write.last.next = self.writer.out_last.val();
        if self.reset.val() {
            self.channel_put_off.d.next = false;
            self.answered.d.next = 0.into();
        }
    }
}
