//! Where each VI stands in its messages: [`SendProgress`], [`RecvProgress`], and [`Unannounced`],
//! the completions that no event record has reported yet. Timing as in [`super::queue`].

use crate::leaf::SdpRam;
use rust_hdl::prelude::*;

/// Progress of the message being sent, message number, the send that waits for its ViAck, the RDMA
/// read that waits for its answer.
#[derive(LogicBlock, Default)]
pub struct SendProgress {
    pub clock: Signal<In, Clock>,
    pub read_address: Signal<In, Bits<10>>,
    pub write_address: Signal<In, Bits<10>>,
    /// Everything to zero.
    pub restart: Signal<In, Bit>,
    pub save: Signal<In, Bit>,
    pub save_in_progress: Signal<In, Bit>,
    pub save_offset: Signal<In, Bits<19>>,
    pub save_fragment: Signal<In, Bits<8>>,
    /// With `save`: a read of `save_offset` bytes was asked for.
    pub save_reading: Signal<In, Bit>,
    /// So many bytes of the answer are placed.
    pub place: Signal<In, Bit>,
    pub place_offset: Signal<In, Bits<19>>,
    /// The read's descriptor, which has left the queue, is complete.
    pub read_over: Signal<In, Bit>,
    /// The message's last frame is on its way, or the message ends after some frames: the next one
    /// has the next number.
    pub count: Signal<In, Bit>,
    /// A descriptor left the queue: the message is over, and has its number if a frame of it was
    /// sent (`save_in_progress`).
    pub popped: Signal<In, Bit>,
    /// Keeps the token of a descriptor that left the queue or never was in it.
    pub keep_token: Signal<In, Bit>,
    pub kept_token: Signal<In, Bits<42>>,
    /// Wait for a ViAck; `save_offset` is the message's length, `save_fragment` is kept.
    pub await_ack: Signal<In, Bit>,
    /// The ViAck arrived, if one is waited for.
    pub acknowledge: Signal<In, Bit>,
    pub complete: Signal<In, Bit>,
    pub in_progress: Signal<Out, Bit>,
    pub offset: Signal<Out, Bits<19>>,
    pub message: Signal<Out, Bits<8>>,
    pub fragment: Signal<Out, Bits<8>>,
    pub awaiting: Signal<Out, Bit>,
    pub acked: Signal<Out, Bit>,
    pub reading: Signal<Out, Bit>,
    pub total: Signal<Out, Bits<19>>,
    pub last_popped: Signal<Out, Bits<42>>,
    /// The VI in stage 1 sends, awaits or reads something.
    pub coming_busy: Signal<Out, Bit>,
    /// As they are after this operation.
    pub awaiting_after: Signal<Out, Bit>,
    pub reading_after: Signal<Out, Bit>,
    /// Offset 18:0, message 26:19, fragment 34:27, in progress 35, awaiting 36, acked 37, reading 38,
    /// total of the read 57:39.
    state_ram: SdpRam<58, 10>,
    popped_ram: SdpRam<42, 10>,
    state_now: DFF<Bits<58>>,
    popped_now: DFF<Bits<42>>,
    offset_after: Signal<Local, Bits<19>>,
    message_after: Signal<Local, Bits<8>>,
    fragment_after: Signal<Local, Bits<8>>,
    message_now: Signal<Local, Bits<8>>,
    in_progress_after: Signal<Local, Bit>,
    awaiting_next: Signal<Local, Bit>,
    acked_next: Signal<Local, Bit>,
    reading_next: Signal<Local, Bit>,
    total_next: Signal<Local, Bits<19>>,
}

impl Logic for SendProgress {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state_now, popped_now);
        clock!(self, clock, state_ram, popped_ram);
        self.state_ram.read_address.next = self.read_address.val();
        self.popped_ram.read_address.next = self.read_address.val();
        self.state_now.d.next = self.state_ram.read_data.val();
        self.coming_busy.next = self.state_ram.read_data.val().get_bits::<2>(35).any()
            | self.state_ram.read_data.val().get_bit(38);
        self.popped_now.d.next = self.popped_ram.read_data.val();
        self.message_now.next = self.state_now.q.val().get_bits::<8>(19);
        self.in_progress.next = self.state_now.q.val().get_bit(35);
        self.offset.next = self.state_now.q.val().get_bits::<19>(0);
        self.message.next = self.message_now.val();
        self.fragment.next = self.state_now.q.val().get_bits::<8>(27);
        self.awaiting.next = self.state_now.q.val().get_bit(36);
        self.acked.next = self.state_now.q.val().get_bit(37);
        self.reading.next = self.state_now.q.val().get_bit(38);
        self.total.next = self.state_now.q.val().get_bits::<19>(39);
        self.last_popped.next = self.popped_now.q.val();

        self.offset_after.next = self.state_now.q.val().get_bits::<19>(0);
        self.message_after.next = self.message_now.val();
        self.fragment_after.next = self.state_now.q.val().get_bits::<8>(27);
        self.in_progress_after.next = self.state_now.q.val().get_bit(35);
        self.awaiting_next.next = self.state_now.q.val().get_bit(36);
        self.acked_next.next = self.state_now.q.val().get_bit(37);
        self.reading_next.next = self.state_now.q.val().get_bit(38);
        self.total_next.next = self.state_now.q.val().get_bits::<19>(39);
        if self.restart.val() {
            self.offset_after.next = 0.into();
            self.message_after.next = 0.into();
            self.fragment_after.next = 0.into();
            self.in_progress_after.next = false;
            self.awaiting_next.next = false;
            self.acked_next.next = false;
            self.reading_next.next = false;
        } else if self.save.val() & self.save_reading.val() {
            self.offset_after.next = 0.into();
            self.total_next.next = self.save_offset.val();
            self.reading_next.next = true;
        } else if self.place.val() {
            self.offset_after.next = self.place_offset.val();
        } else if self.save.val() {
            self.offset_after.next = self.save_offset.val();
            self.fragment_after.next = self.save_fragment.val();
            self.in_progress_after.next = self.save_in_progress.val();
        } else if self.count.val() {
            self.message_after.next = self.message_now.val() + 1;
        } else if self.popped.val() {
            self.offset_after.next = 0.into();
            if self.save_in_progress.val() {
                self.message_after.next = self.message_now.val() + 1;
            }
            self.fragment_after.next = 0.into();
            self.in_progress_after.next = false;
        } else if self.await_ack.val() {
            self.offset_after.next = self.save_offset.val();
            self.fragment_after.next = self.save_fragment.val();
            self.awaiting_next.next = true;
        } else if self.read_over.val() {
            self.reading_next.next = false;
        } else if self.complete.val() {
            self.awaiting_next.next = false;
            self.acked_next.next = false;
            if self.state_now.q.val().get_bit(36) {
                self.offset_after.next = 0.into();
            }
        } else if self.acknowledge.val() & self.state_now.q.val().get_bit(36) {
            self.acked_next.next = true;
        }
        self.awaiting_after.next = self.awaiting_next.val();
        self.reading_after.next = self.reading_next.val();
        self.state_ram.write_address.next = self.write_address.val();
        self.state_ram.write_enable.next = self.restart.val()
            | self.save.val()
            | self.place.val()
            | self.count.val()
            | self.popped.val()
            | self.await_ack.val()
            | self.complete.val()
            | self.read_over.val()
            | self.acknowledge.val();
        self.state_ram.write_data.next = bit_cast::<58, 19>(self.offset_after.val())
            | (bit_cast::<58, 8>(self.message_after.val()) << 19)
            | (bit_cast::<58, 8>(self.fragment_after.val()) << 27)
            | (bit_cast::<58, 1>(self.in_progress_after.val().into()) << 35)
            | (bit_cast::<58, 1>(self.awaiting_next.val().into()) << 36)
            | (bit_cast::<58, 1>(self.acked_next.val().into()) << 37)
            | (bit_cast::<58, 1>(self.reading_next.val().into()) << 38)
            | (bit_cast::<58, 19>(self.total_next.val()) << 39);
        self.popped_ram.write_address.next = self.write_address.val();
        self.popped_ram.write_enable.next = self.keep_token.val();
        self.popped_ram.write_data.next = self.kept_token.val();
    }
}

/// Progress of the message being received.
#[derive(LogicBlock, Default)]
pub struct RecvProgress {
    pub clock: Signal<In, Clock>,
    pub read_address: Signal<In, Bits<10>>,
    pub write_address: Signal<In, Bits<10>>,
    pub restart: Signal<In, Bit>,
    pub save: Signal<In, Bit>,
    pub save_in_progress: Signal<In, Bit>,
    /// The message is an RDMA write.
    pub save_write: Signal<In, Bit>,
    pub save_offset: Signal<In, Bits<19>>,
    pub save_total: Signal<In, Bits<19>>,
    pub save_message: Signal<In, Bits<8>>,
    pub save_fragment: Signal<In, Bits<8>>,
    /// A descriptor left the queue: the message is over.
    pub popped: Signal<In, Bit>,
    pub in_progress: Signal<Out, Bit>,
    pub write: Signal<Out, Bit>,
    pub offset: Signal<Out, Bits<19>>,
    pub total: Signal<Out, Bits<19>>,
    pub message: Signal<Out, Bits<8>>,
    pub fragment: Signal<Out, Bits<8>>,
    /// Offset 18:0, total 37:19, message 45:38, fragment 53:46, in progress 54, RDMA write 55.
    state_ram: SdpRam<56, 10>,
    state_now: DFF<Bits<56>>,
}

impl Logic for RecvProgress {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state_now);
        clock!(self, clock, state_ram);
        self.state_ram.read_address.next = self.read_address.val();
        self.state_now.d.next = self.state_ram.read_data.val();
        self.in_progress.next = self.state_now.q.val().get_bit(54);
        self.write.next = self.state_now.q.val().get_bit(55);
        self.offset.next = self.state_now.q.val().get_bits::<19>(0);
        self.total.next = self.state_now.q.val().get_bits::<19>(19);
        self.message.next = self.state_now.q.val().get_bits::<8>(38);
        self.fragment.next = self.state_now.q.val().get_bits::<8>(46);
        self.state_ram.write_address.next = self.write_address.val();
        self.state_ram.write_enable.next = self.restart.val() | self.save.val() | self.popped.val();
        self.state_ram.write_data.next = 0.into();
        if self.save.val() {
            self.state_ram.write_data.next = bit_cast::<56, 19>(self.save_offset.val())
                | (bit_cast::<56, 19>(self.save_total.val()) << 19)
                | (bit_cast::<56, 8>(self.save_message.val()) << 38)
                | (bit_cast::<56, 8>(self.save_fragment.val()) << 46)
                | (bit_cast::<56, 1>(self.save_in_progress.val().into()) << 54)
                | (bit_cast::<56, 1>(self.save_write.val().into()) << 55);
        } else if self.popped.val() {
            self.state_ram.write_data.next =
                bit_cast::<56, 16>(self.state_now.q.val().get_bits::<16>(38)) << 38;
        }
    }
}

/// Completions of one queue of every VI that are not reported.
#[derive(LogicBlock, Default)]
pub struct Unannounced {
    pub clock: Signal<In, Clock>,
    pub read_address: Signal<In, Bits<10>>,
    pub write_address: Signal<In, Bits<10>>,
    /// To zero: forgotten, or about to be reported.
    pub clear: Signal<In, Bit>,
    /// One more.
    pub raise: Signal<In, Bit>,
    /// The queue was full: `amount` comes back.
    pub back: Signal<In, Bit>,
    pub amount: Signal<In, Bits<32>>,
    pub count: Signal<Out, Bits<32>>,
    pub some: Signal<Out, Bit>,
    count_ram: SdpRam<32, 10>,
    count_now: DFF<Bits<32>>,
    step: Signal<Local, Bits<32>>,
    sum: Signal<Local, Bits<32>>,
}

impl Logic for Unannounced {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, count_now);
        clock!(self, clock, count_ram);
        self.count_ram.read_address.next = self.read_address.val();
        self.count_now.d.next = self.count_ram.read_data.val();
        self.count.next = self.count_now.q.val();
        self.some.next = self.count_now.q.val().any();
        self.step.next = 1.into();
        if self.back.val() {
            self.step.next = self.amount.val();
        }
        self.sum.next = self.count_now.q.val() + self.step.val();
        self.count_ram.write_address.next = self.write_address.val();
        self.count_ram.write_enable.next = self.clear.val() | self.raise.val() | self.back.val();
        self.count_ram.write_data.next = self.sum.val();
        if self.clear.val() {
            self.count_ram.write_data.next = 0.into();
        }
    }
}
