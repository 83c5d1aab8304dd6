//! What a VI has to report: the event of a kind (contract 10), and, for scans, which kinds were
//! put off (contract 6.1, 10.1). Combinational but for the change of ERROR_QUEUE.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Notices {
    pub clock: Signal<In, Clock>,
    pub error_queue: Signal<In, Bits<16>>,
    pub error_queue_valid: Signal<In, Bit>,
    // The VI in stage 2.
    pub send_some: Signal<In, Bit>,
    pub send_count: Signal<In, Bits<32>>,
    pub send_queue: Signal<In, Bits<9>>,
    pub recv_some: Signal<In, Bit>,
    pub recv_count: Signal<In, Bits<32>>,
    pub recv_queue: Signal<In, Bits<9>>,
    pub error_pending: Signal<In, Bit>,
    /// As in [`super::lifecycle`].
    pub stop_info: Signal<In, Bits<45>>,
    /// The event of this kind, one-hot: 0 send, 1 receive, 2 ViError.
    pub kind: Signal<In, Bits<3>>,
    pub some: Signal<Out, Bit>,
    pub queue: Signal<Out, Bits<16>>,
    pub word1: Signal<Out, Bits<32>>,
    pub word2: Signal<Out, Bits<32>>,
    /// Kinds put off to `drain_queue` (with bit 15: only ViErrors), or, after a write of
    /// ERROR_QUEUE (`rescanning`), pending ViErrors.
    pub drain_queue: Signal<In, Bits<16>>,
    pub rescanning: Signal<In, Bit>,
    pub deferred: Signal<Out, Bits<3>>,
    /// Pulse: ERROR_QUEUE was written.
    pub rescan: Signal<Out, Bit>,
    queue_now: DFF<Bits<16>>,
    valid_now: DFF<Bit>,
    errors: Signal<Local, Bit>,
    completions: Signal<Local, Bit>,
    send_deferred: Signal<Local, Bit>,
    recv_deferred: Signal<Local, Bit>,
    error_deferred: Signal<Local, Bit>,
}

impl Logic for Notices {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, queue_now, valid_now);
        self.errors.next = self.error_pending.val() & self.error_queue_valid.val();
        self.some.next = self.send_some.val();
        self.queue.next = bit_cast::<16, 8>(self.send_queue.val().get_bits::<8>(0));
        self.word1.next = self.send_count.val();
        self.word2.next = 0.into();
        if self.kind.val().get_bit(1) {
            self.some.next = self.recv_some.val();
            self.queue.next = bit_cast::<16, 8>(self.recv_queue.val().get_bits::<8>(0));
            self.word1.next = self.recv_count.val();
        } else if self.kind.val().get_bit(2) {
            self.some.next = self.errors.val();
            self.queue.next = self.error_queue.val();
            self.word1.next = bit_cast::<32, 17>(self.stop_info.val().get_bits::<17>(8));
            self.word2.next = bit_cast::<32, 20>(self.stop_info.val().get_bits::<20>(25));
        }

        self.completions.next = (!self.rescanning.val()) & (!self.drain_queue.val().get_bit(15));
        self.send_deferred.next = self.completions.val()
            & self.send_some.val()
            & (self.send_queue.val().get_bits::<8>(0) == self.drain_queue.val().get_bits::<8>(0));
        self.recv_deferred.next = self.completions.val()
            & self.recv_some.val()
            & (self.recv_queue.val().get_bits::<8>(0) == self.drain_queue.val().get_bits::<8>(0));
        self.error_deferred.next = self.errors.val()
            & self.drain_queue.val().get_bit(15)
            & (self.error_queue.val().get_bits::<8>(0) == self.drain_queue.val().get_bits::<8>(0))
            & (!self.error_queue.val().get_bits::<8>(8).any());
        if self.rescanning.val() {
            self.error_deferred.next = self.error_pending.val();
        }
        self.deferred.next = bit_cast::<3, 1>(self.send_deferred.val().into())
            | (bit_cast::<3, 1>(self.recv_deferred.val().into()) << 1)
            | (bit_cast::<3, 1>(self.error_deferred.val().into()) << 2);

        self.queue_now.d.next = self.error_queue.val();
        self.valid_now.d.next = self.error_queue_valid.val();
        self.rescan.next = (self.queue_now.q.val() != self.error_queue.val())
            | (self.valid_now.q.val() != self.error_queue_valid.val());
    }
}
