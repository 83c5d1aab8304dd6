//! The receive side of every VI: its work queue, progress and unannounced completions, with the
//! receive engine's operations on them and the answers. Timing as in [`super::queue`]; operations
//! are exclusive.

use super::progress::{RecvProgress, Unannounced};
use super::queue::WorkQueue;
use crate::ifs::{AskerClient, ViCompleteServer, ViLookServer, ViRecvServer};
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct RecvSide {
    pub clock: Signal<In, Clock>,
    pub port: ViRecvServer,
    pub complete: ViCompleteServer,
    pub look: ViLookServer,
    pub read_address: Signal<In, Bits<10>>,
    pub write_address: Signal<In, Bits<10>>,
    /// The engine's operation is in stage 2 (its completer's, its prefetcher's) / on a VI that does not
    /// exist.
    pub at: Signal<In, Bit>,
    pub at_complete: Signal<In, Bit>,
    pub at_look: Signal<In, Bit>,
    pub unknown: Signal<Out, Bit>,
    pub coming_full: Signal<Out, Bit>,
    // The VI in stage 2, as in `super::lifecycle`.
    pub state: Signal<In, Bits<2>>,
    pub config_word: Signal<In, Bits<64>>,
    pub connection_word: Signal<In, Bits<40>>,
    // Other operations.
    /// Empties everything / forgets progress and message numbers.
    pub clear: Signal<In, Bit>,
    pub restart: Signal<In, Bit>,
    pub post: Signal<In, Bit>,
    pub token: Signal<In, Bits<47>>,
    /// The completions are taken for an announcement / `amount` of them is given back.
    pub take: Signal<In, Bit>,
    pub back: Signal<In, Bit>,
    pub amount: Signal<In, Bits<32>>,
    // What the engine's operation means for the rest of the VI.
    pub completes: Signal<Out, Bit>,
    /// The completion is to be reported.
    pub report: Signal<Out, Bit>,
    pub needs_ack: Signal<Out, Bit>,
    /// The VI may have something to send now.
    pub look_again: Signal<Out, Bit>,
    /// A ViAck arrived.
    pub acks: Signal<Out, Bit>,
    /// What is about the send queue.
    pub asker: AskerClient,
    pub stops: Signal<Out, Bit>,
    pub refuses: Signal<Out, Bit>,
    /// Reason 7:0, detail 15:8, queue 16, status 36:17.
    pub stop_word: Signal<Out, Bits<37>>,
    pub in_progress: Signal<Out, Bit>,
    /// Something is not reported; how much; the event queue (bit 8: none).
    pub some: Signal<Out, Bit>,
    pub count: Signal<Out, Bits<32>>,
    pub event_queue: Signal<Out, Bits<9>>,
    work_queue: WorkQueue,
    progress: RecvProgress,
    unannounced: Unannounced,
    exists: Signal<Local, Bit>,
    connected: Signal<Local, Bit>,
    /// The call's operation, one-hot.
    call_op: DFF<Bits<8>>,
    any_op: Signal<Local, Bits<8>>,
    op: Signal<Local, Bits<8>>,
    finishes: Signal<Local, Bit>,
    shown_head: Signal<Local, Bits<47>>,
    announcing: Signal<Local, Bit>,
    /// Shifted left by a number: one-hot.
    one: Number<8, 1>,
    /// Operations that are the same for both queues: all but SAVE and POP.
    common: Number<8, 0b1111_1001>,
}

impl Logic for RecvSide {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, call_op);
        clock!(self, clock, work_queue, progress, unannounced);
        self.call_op.d.next = self.one.val() << self.port.op.val();
        self.connected.next = self.state.val().get_bit(1) & (!self.state.val().get_bit(0));
        self.exists.next = !self.port.vi.val().get_bits::<6>(10).any();
        self.unknown.next = self.at.val() & (!self.exists.val());
        self.any_op.next = 0.into();
        if self.at.val() & self.exists.val() {
            self.any_op.next = self.call_op.q.val();
        }
        // What is about the send queue is done there.
        self.op.next = self.any_op.val();
        self.asker.place.next = false;
        self.asker.pop.next = false;
        if self.port.sends.val() {
            self.op.next = self.any_op.val() & self.common.val();
            self.asker.place.next = self.any_op.val().get_bit(1);
            self.asker.pop.next = self.any_op.val().get_bit(2);
        }
        self.asker.complete.next = self.at_complete.val() & self.complete.sends.val();
        self.finishes.next = self.at_complete.val() & (!self.complete.sends.val());
        self.asker.offset.next = self.port.offset.val();
        self.asker.next_valid.next = self.port.next_valid.val();
        self.asker.next_token.next = bit_cast::<42, 16>(self.port.next_region.val())
            | (bit_cast::<42, 26>(self.port.next_offset.val()) << 16);
        self.asker.address.next = self.port.address.val();
        self.asker.handle.next = self.port.handle.val();
        self.asker.left.next = self.port.total.val();
        self.asker.need.next = self.any_op.val().get_bit(3) & self.connected.val();
        self.completes.next = self.finishes.val();
        // A live VI (Connected or Error) with an event queue.
        self.announcing.next = self.finishes.val()
            & self.state.val().get_bit(1)
            & (!self.config_word.val().get_bit(42));
        self.report.next = self.announcing.val();
        self.needs_ack.next = ((self.op.val().get_bit(1) & self.port.need_ack.val())
            | (self.finishes.val() & self.complete.need_ack.val()))
            & self.state.val().get_bit(1);
        self.look_again.next = self.completes.val() | self.needs_ack.val();
        self.acks.next = self.op.val().get_bit(6);
        self.stops.next = self.op.val().get_bit(5);
        self.refuses.next = self.at.val() & self.port.refuse.val();
        self.stop_word.next = bit_cast::<37, 8>(self.port.reason.val())
            | (bit_cast::<37, 8>(self.port.detail.val()) << 8)
            | (bit_cast::<37, 1>(self.port.queue.val().into()) << 16)
            | (bit_cast::<37, 20>(self.port.status.val().get_bits::<20>(0)) << 17);

        // The work queue.
        self.coming_full.next = self.work_queue.coming_full.val();
        self.work_queue.read_address.next = self.read_address.val();
        self.work_queue.write_address.next = self.write_address.val();
        self.work_queue.unpost.next = false;
        self.work_queue.post.next = self.post.val();
        self.work_queue.token.next = self.token.val();
        self.work_queue.pop.next = self.op.val().get_bit(2);
        self.work_queue.next_valid.next = self.port.next_valid.val();
        self.work_queue.next_token.next = bit_cast::<42, 16>(self.port.next_region.val())
            | (bit_cast::<42, 26>(self.port.next_offset.val()) << 16);
        self.work_queue.clear.next = self.clear.val();

        // The message in progress.
        self.progress.read_address.next = self.read_address.val();
        self.progress.write_address.next = self.write_address.val();
        self.progress.restart.next = self.restart.val();
        self.progress.save.next = self.op.val().get_bit(1);
        self.progress.save_in_progress.next = self.port.in_progress.val();
        self.progress.save_write.next = self.port.write.val();
        self.progress.save_offset.next = self.port.offset.val();
        self.progress.save_total.next = self.port.total.val();
        self.progress.save_message.next = self.port.message.val();
        self.progress.save_fragment.next = self.port.fragment.val();
        self.progress.popped.next = self.work_queue.popped.val();
        self.in_progress.next = self.progress.in_progress.val();

        // Unannounced completions.
        self.unannounced.read_address.next = self.read_address.val();
        self.unannounced.write_address.next = self.write_address.val();
        self.unannounced.clear.next = self.clear.val() | self.take.val();
        self.unannounced.raise.next = self.announcing.val();
        self.unannounced.back.next = self.back.val();
        self.unannounced.amount.next = self.amount.val();
        self.some.next = self.unannounced.some.val();
        self.count.next = self.unannounced.count.val();
        self.event_queue.next = self.config_word.val().get_bits::<9>(34);

        // The answer.
        self.port.done.next = self.at.val();
        self.complete.done.next = self.at_complete.val();
        self.look.done.next = self.at_look.val();
        self.port.need_next.next = self.work_queue.need_next.val();
        if self.port.sends.val() {
            self.port.need_next.next = self.asker.need_next.val();
        }
        self.port.ctx_state.next = self.state.val();
        if self.unknown.val() {
            self.port.ctx_state.next = 0.into();
        }
        self.port.ctx_domain.next = bit_cast::<8, 6>(self.config_word.val().get_bits::<6>(0));
        self.port.ctx_tag.next = self.config_word.val().get_bits::<16>(9);
        self.port.ctx_reliability.next = self.config_word.val().get_bits::<3>(6);
        self.port.ctx_peer.next = bit_cast::<8, 6>(self.connection_word.val().get_bits::<6>(0));
        self.port.ctx_peer_vi.next = self.connection_word.val().get_bits::<16>(6);
        self.port.ctx_connection.next = self.connection_word.val().get_bits::<16>(22);
        self.port.ctx_answering.next = self.asker.answering.val();
        self.shown_head.next = self.work_queue.head.val();
        self.port.ctx_count.next = self.work_queue.count.val();
        self.port.ctx_in_progress.next = self.progress.in_progress.val();
        self.port.ctx_write.next = self.progress.write.val();
        self.port.ctx_progress.next = self.progress.offset.val();
        self.port.ctx_total.next = self.progress.total.val();
        if self.port.sends.val() {
            self.shown_head.next = self.asker.head.val();
            self.port.ctx_count.next = self.asker.posted.val();
            self.port.ctx_in_progress.next = self.asker.reading.val();
            self.port.ctx_progress.next = self.asker.placed.val();
            self.port.ctx_total.next = self.asker.total.val();
        }
        self.port.ctx_region.next = self.shown_head.val().get_bits::<16>(0);
        self.port.ctx_offset.next = self.shown_head.val().get_bits::<26>(16);
        self.port.ctx_segments.next = self.shown_head.val().get_bits::<5>(42);
        self.look.state.next = self.state.val();
        self.look.domain.next = bit_cast::<8, 6>(self.config_word.val().get_bits::<6>(0));
        self.look.tag.next = self.config_word.val().get_bits::<16>(9);
        self.look.region.next = self.work_queue.head.val().get_bits::<16>(0);
        self.look.offset.next = self.work_queue.head.val().get_bits::<26>(16);
        self.look.segments.next = self.work_queue.head.val().get_bits::<5>(42);
        self.look.count.next = self.work_queue.count.val();
        self.port.ctx_message.next = self.progress.message.val();
        self.port.ctx_fragment.next = self.progress.fragment.val();
        self.port.ctx_allows.next = self.config_word.val().get_bits::<2>(62);
        self.port.posted.next = self.post.val();
        self.port.posted_vi.next = bit_cast::<16, 10>(self.write_address.val());
    }
}
