//! Drains: what full queues have put off is delivered when their consumer index moves
//! (contract 10.1).
//!
//! A drain asks, in this order, the VIs for completions, the channel (a pulse; over when it has not
//! called for 32 cycles), the VIs for ViErrors (bit 15 of the queue). Drains run one at a time, in
//! the order in which their queues were pushed; whoever pushes sees to it that no queue waits
//! twice, so the FIFO cannot overflow.

use crate::ifs::DrainClient;
use crate::leaf::{Fifo, Number};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Drainer {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub drain: DrainClient,
    /// Pulse: the channel may try again what `drain_channel_queue` refused.
    pub drain_channel: Signal<Out, Bit>,
    pub drain_channel_queue: Signal<Out, Bits<16>>,
    /// The channel has an event.
    pub channel_calls: Signal<In, Bit>,
    pub push: Signal<In, Bit>,
    pub push_queue: Signal<In, Bits<8>>,
    /// No drain runs and one waits, for `due_queue`; `start` starts it.
    pub due: Signal<Out, Bit>,
    pub due_queue: Signal<Out, Bits<8>>,
    pub start: Signal<In, Bit>,
    /// A drain runs, for `active_queue` / is over (pulse).
    pub active: Signal<Out, Bit>,
    pub active_queue: Signal<Out, Bits<16>>,
    pub ends: Signal<Out, Bit>,
    waiting: Fifo<8, 8>,
    draining: DFF<Bit>,
    draining_queue: DFF<Bits<16>>,
    /// The drain calls the VIs / for the second time.
    asking: DFF<Bit>,
    last_phase: DFF<Bit>,
    /// The drain's pulse to the channel.
    drain_start: DFF<Bit>,
    /// Cycles since the channel's last call.
    quiet: DFF<Bits<6>>,
    errors_bit: Number<16, 0x8000>,
}

impl Logic for Drainer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, draining, draining_queue, asking, last_phase, drain_start, quiet);
        clock!(self, clock, waiting);
        self.waiting.reset.next = self.reset.val();
        self.waiting.write.next = self.push.val();
        self.waiting.data_in.next = self.push_queue.val();
        self.waiting.read.next = self.start.val();
        self.due.next = (!self.waiting.empty.val()) & (!self.draining.q.val());
        self.due_queue.next = self.waiting.data_out.val();
        self.active.next = self.draining.q.val();
        self.active_queue.next = self.draining_queue.q.val();
        self.drain_channel.next = self.drain_start.q.val();
        self.drain_channel_queue.next = self.draining_queue.q.val();
        self.drain.valid.next = self.asking.q.val();
        self.drain.queue.next = self.draining_queue.q.val();
        if self.last_phase.q.val() {
            self.drain.queue.next = self.draining_queue.q.val() | self.errors_bit.val();
        }
        self.drain_start.d.next = false;
        self.ends.next = false;
        if self.asking.q.val() {
            self.quiet.d.next = 0.into();
            if self.drain.done.val() {
                self.asking.d.next = false;
                self.drain_start.d.next = !self.last_phase.q.val();
                if self.last_phase.q.val() {
                    self.ends.next = true;
                    self.draining.d.next = false;
                    self.last_phase.d.next = false;
                }
            }
        } else if self.draining.q.val() {
            self.quiet.d.next = self.quiet.q.val() + 1;
            if self.channel_calls.val() {
                self.quiet.d.next = 0.into();
            } else if self.quiet.q.val().get_bit(5) {
                self.asking.d.next = true;
                self.last_phase.d.next = true;
            }
        }
        if self.start.val() {
            self.draining.d.next = true;
            self.draining_queue.d.next = bit_cast::<16, 8>(self.waiting.data_out.val());
            self.asking.d.next = true;
        }
        if self.reset.val() {
            self.draining.d.next = false;
            self.asking.d.next = false;
            self.last_phase.d.next = false;
            self.drain_start.d.next = false;
        }
    }
}
