//! What a VI has to do and has done: both work queues, progress, and unannounced completions, as
//! one block with the operations of all ports. Timing as in [`super::queue`]; operations are
//! exclusive.

use super::progress::{RecvProgress, SendProgress, Unannounced};
use super::queue::WorkQueue;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Work {
    pub clock: Signal<In, Clock>,
    pub read_address: Signal<In, Bits<10>>,
    pub write_address: Signal<In, Bits<10>>,
    /// Empties everything.
    pub clear: Signal<In, Bit>,
    /// Forgets progress and message numbers.
    pub restart: Signal<In, Bit>,
    pub post_send: Signal<In, Bit>,
    pub post_recv: Signal<In, Bit>,
    pub token: Signal<In, Bits<47>>,
    /// The send engine's operation, one-hot by number; its arguments.
    pub send_op: Signal<In, Bits<8>>,
    pub send_in_progress: Signal<In, Bit>,
    pub send_offset: Signal<In, Bits<19>>,
    pub send_fragment: Signal<In, Bits<8>>,
    pub send_next_valid: Signal<In, Bit>,
    pub send_next: Signal<In, Bits<42>>,
    /// The receive engine's.
    pub recv_op: Signal<In, Bits<8>>,
    pub recv_in_progress: Signal<In, Bit>,
    pub recv_offset: Signal<In, Bits<19>>,
    pub recv_total: Signal<In, Bits<19>>,
    pub recv_message: Signal<In, Bits<8>>,
    pub recv_fragment: Signal<In, Bits<8>>,
    pub recv_next_valid: Signal<In, Bit>,
    pub recv_next: Signal<In, Bits<42>>,
    /// A ViAck arrived.
    pub acknowledge: Signal<In, Bit>,
    /// Bit 0 send queue, 1 receive queue: one more completion / taken for an announcement / given
    /// back.
    pub raise: Signal<In, Bits<2>>,
    pub take: Signal<In, Bits<2>>,
    pub back: Signal<In, Bits<2>>,
    pub amount: Signal<In, Bits<32>>,
    pub send_head: Signal<Out, Bits<47>>,
    pub send_count: Signal<Out, Bits<16>>,
    pub send_need_next: Signal<Out, Bit>,
    pub last_popped: Signal<Out, Bits<42>>,
    pub in_progress: Signal<Out, Bits<2>>,
    pub offset: Signal<Out, Bits<19>>,
    pub message: Signal<Out, Bits<8>>,
    pub fragment: Signal<Out, Bits<8>>,
    pub awaiting: Signal<Out, Bit>,
    pub acked: Signal<Out, Bit>,
    /// After this operation a Connected VI has something to send.
    pub can_send: Signal<Out, Bit>,
    pub recv_head: Signal<Out, Bits<47>>,
    pub recv_count: Signal<Out, Bits<16>>,
    pub recv_need_next: Signal<Out, Bit>,
    pub recv_progress: Signal<Out, Bits<19>>,
    pub total: Signal<Out, Bits<19>>,
    pub recv_last_message: Signal<Out, Bits<8>>,
    pub recv_last_fragment: Signal<Out, Bits<8>>,
    /// Bit 0 send queue, 1 receive queue: something is not announced; how much.
    pub unannounced: Signal<Out, Bits<2>>,
    pub send_amount: Signal<Out, Bits<32>>,
    pub recv_amount: Signal<Out, Bits<32>>,
    send_queue: WorkQueue,
    recv_queue: WorkQueue,
    send_state: SendProgress,
    recv_state: RecvProgress,
    send_unannounced: Unannounced,
    recv_unannounced: Unannounced,
}

impl Logic for Work {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self,
            clock,
            send_queue,
            recv_queue,
            send_state,
            recv_state,
            send_unannounced,
            recv_unannounced
        );
        self.send_queue.read_address.next = self.read_address.val();
        self.send_queue.write_address.next = self.write_address.val();
        self.send_queue.post.next = self.post_send.val();
        self.send_queue.token.next = self.token.val();
        self.send_queue.pop.next = self.send_op.val().get_bit(2);
        self.send_queue.next_valid.next = self.send_next_valid.val();
        self.send_queue.next_token.next = self.send_next.val();
        self.send_queue.clear.next = self.clear.val();
        self.send_head.next = self.send_queue.head.val();
        self.send_count.next = self.send_queue.count.val();
        self.send_need_next.next = self.send_queue.need_next.val();
        self.recv_queue.read_address.next = self.read_address.val();
        self.recv_queue.write_address.next = self.write_address.val();
        self.recv_queue.post.next = self.post_recv.val();
        self.recv_queue.token.next = self.token.val();
        self.recv_queue.pop.next = self.recv_op.val().get_bit(2);
        self.recv_queue.next_valid.next = self.recv_next_valid.val();
        self.recv_queue.next_token.next = self.recv_next.val();
        self.recv_queue.clear.next = self.clear.val();
        self.recv_head.next = self.recv_queue.head.val();
        self.recv_count.next = self.recv_queue.count.val();
        self.recv_need_next.next = self.recv_queue.need_next.val();

        self.send_state.read_address.next = self.read_address.val();
        self.send_state.write_address.next = self.write_address.val();
        self.send_state.restart.next = self.restart.val();
        self.send_state.save.next = self.send_op.val().get_bit(1);
        self.send_state.save_in_progress.next = self.send_in_progress.val();
        self.send_state.save_offset.next = self.send_offset.val();
        self.send_state.save_fragment.next = self.send_fragment.val();
        self.send_state.popped.next = self.send_queue.popped.val();
        self.send_state.popped_token.next = self.send_queue.head.val().get_bits::<42>(0);
        self.send_state.await_ack.next = self.send_op.val().get_bit(3);
        self.send_state.acknowledge.next = self.acknowledge.val();
        self.send_state.complete.next = self.send_op.val().get_bit(4);
        self.last_popped.next = self.send_state.last_popped.val();
        self.offset.next = self.send_state.offset.val();
        self.message.next = self.send_state.message.val();
        self.fragment.next = self.send_state.fragment.val();
        self.awaiting.next = self.send_state.awaiting.val();
        self.acked.next = self.send_state.acked.val();
        self.can_send.next = (self.send_state.awaiting_after.val()
            & self.send_state.acked_after.val())
            | ((!self.send_state.awaiting_after.val()) & self.send_queue.left.val());
        self.recv_state.read_address.next = self.read_address.val();
        self.recv_state.write_address.next = self.write_address.val();
        self.recv_state.restart.next = self.restart.val();
        self.recv_state.save.next = self.recv_op.val().get_bit(1);
        self.recv_state.save_in_progress.next = self.recv_in_progress.val();
        self.recv_state.save_offset.next = self.recv_offset.val();
        self.recv_state.save_total.next = self.recv_total.val();
        self.recv_state.save_message.next = self.recv_message.val();
        self.recv_state.save_fragment.next = self.recv_fragment.val();
        self.recv_state.popped.next = self.recv_queue.popped.val();
        self.in_progress.next = bit_cast::<2, 1>(self.send_state.in_progress.val().into())
            | (bit_cast::<2, 1>(self.recv_state.in_progress.val().into()) << 1);
        self.recv_progress.next = self.recv_state.offset.val();
        self.total.next = self.recv_state.total.val();
        self.recv_last_message.next = self.recv_state.message.val();
        self.recv_last_fragment.next = self.recv_state.fragment.val();

        self.send_unannounced.read_address.next = self.read_address.val();
        self.send_unannounced.write_address.next = self.write_address.val();
        self.send_unannounced.clear.next = self.clear.val() | self.take.val().get_bit(0);
        self.send_unannounced.raise.next = self.raise.val().get_bit(0);
        self.send_unannounced.back.next = self.back.val().get_bit(0);
        self.send_unannounced.amount.next = self.amount.val();
        self.recv_unannounced.read_address.next = self.read_address.val();
        self.recv_unannounced.write_address.next = self.write_address.val();
        self.recv_unannounced.clear.next = self.clear.val() | self.take.val().get_bit(1);
        self.recv_unannounced.raise.next = self.raise.val().get_bit(1);
        self.recv_unannounced.back.next = self.back.val().get_bit(1);
        self.recv_unannounced.amount.next = self.amount.val();
        self.unannounced.next = bit_cast::<2, 1>(self.send_unannounced.some.val().into())
            | (bit_cast::<2, 1>(self.recv_unannounced.some.val().into()) << 1);
        self.send_amount.next = self.send_unannounced.count.val();
        self.recv_amount.next = self.recv_unannounced.count.val();
    }
}
