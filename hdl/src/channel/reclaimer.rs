//! Frames on their way back to the pool: a queue of what the peer machine and the transmitter are
//! done with, and the frame that is being given back. An aborted frame goes ahead of the queue.
use crate::leaf::{Fifo, LutRam};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Reclaimer {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    // As in `Pool`.
    pub free_valid: Signal<In, Bit>,
    pub free_peer: Signal<In, Bits<6>>,
    pub free_frame: Signal<In, Bits<7>>,
    pub free_room: Signal<Out, Bit>,
    pub transmitted_valid: Signal<In, Bit>,
    pub transmitted_peer: Signal<In, Bits<6>>,
    pub transmitted_frame: Signal<In, Bits<7>>,
    pub transmitted_taken: Signal<Out, Bit>,
    // The frame that is committed (`keep`) or aborted (until `aborted`).
    pub keep: Signal<In, Bit>,
    pub abort: Signal<In, Bit>,
    pub aborted: Signal<Out, Bit>,
    pub peer: Signal<In, Bits<6>>,
    pub first: Signal<In, Bits<7>>,
    pub last: Signal<In, Bits<7>>,
    /// Chunks in its chain, chunks charged, units to be given back if it is aborted.
    pub held: Signal<In, Bits<5>>,
    pub charged: Signal<In, Bits<5>>,
    pub units: Signal<In, Bits<5>>,
    // What is given back, until `given`.
    pub valid: Signal<Out, Bit>,
    pub give_peer: Signal<Out, Bits<6>>,
    pub give_first: Signal<Out, Bits<7>>,
    pub give_last: Signal<Out, Bits<7>>,
    pub give_held: Signal<Out, Bits<8>>,
    pub give_charged: Signal<Out, Bits<8>>,
    pub give_units: Signal<Out, Bits<8>>,
    pub given: Signal<In, Bit>,
    /// Of each frame: last chunk 6:0, chunks in the chain 11:7, chunks charged 16:12.
    extents: LutRam<17, 7>,
    /// Frame 6:0, peer 12:7.
    queue: Fifo<13, 3>,
    giving: DFF<Bit>,
    aborting: DFF<Bit>,
    to_peer: DFF<Bits<6>>,
    chain_first: DFF<Bits<7>>,
    chain_last: DFF<Bits<7>>,
    chain_held: DFF<Bits<5>>,
    chain_charged: DFF<Bits<5>>,
    unit_count: DFF<Bits<5>>,
    spends: Signal<Local, Bit>,
    frame: Signal<Local, Bits<7>>,
    queued: Signal<Local, Bits<13>>,
    extent: Signal<Local, Bits<17>>,
}

impl Logic for Reclaimer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, giving, aborting, to_peer, chain_first, chain_last, chain_held);
        dff_setup!(self, clock, chain_charged, unit_count);
        clock!(self, clock, extents, queue);
        self.queue.reset.next = self.reset.val();
        self.spends.next =
            self.transmitted_valid.val() & !(self.free_valid.val() | self.queue.almost_full.val());
        self.transmitted_taken.next = self.spends.val();
        self.free_room.next = !self.queue.almost_full.val();
        self.queue.write.next = self.free_valid.val() | self.spends.val();
        self.queue.data_in.next = bit_cast::<13, 7>(self.transmitted_frame.val())
            | (bit_cast::<13, 6>(self.transmitted_peer.val()) << 7);
        if self.free_valid.val() {
            self.queue.data_in.next = bit_cast::<13, 7>(self.free_frame.val())
                | (bit_cast::<13, 6>(self.free_peer.val()) << 7);
        }
        self.queue.read.next = false;
        self.queued.next = self.queue.data_out.val();
        self.frame.next = self.queued.val().get_bits::<7>(0);
        self.extents.read_address.next = self.frame.val();
        self.extent.next = self.extents.read_data.val();
        self.extents.write_enable.next = self.keep.val();
        self.extents.write_address.next = self.first.val();
        self.extents.write_data.next = bit_cast::<17, 7>(self.last.val())
            | (bit_cast::<17, 5>(self.held.val()) << 7)
            | (bit_cast::<17, 5>(self.charged.val()) << 12);
        self.aborted.next = self.given.val() & self.aborting.q.val();
        if self.given.val() {
            self.giving.d.next = false;
            self.aborting.d.next = false;
        }
        if self.given.val() | !self.giving.q.val() {
            if self.abort.val() & !self.aborting.q.val() {
                self.giving.d.next = true;
                self.aborting.d.next = true;
                self.to_peer.d.next = self.peer.val();
                self.chain_first.d.next = self.first.val();
                self.chain_last.d.next = self.last.val();
                self.chain_held.d.next = self.held.val();
                self.chain_charged.d.next = self.charged.val();
                self.unit_count.d.next = self.units.val();
            } else if !self.queue.empty.val() {
                self.queue.read.next = true;
                self.giving.d.next = true;
                self.to_peer.d.next = self.queued.val().get_bits::<6>(7);
                self.chain_first.d.next = self.frame.val();
                self.chain_last.d.next = self.extent.val().get_bits::<7>(0);
                self.chain_held.d.next = self.extent.val().get_bits::<5>(7);
                self.chain_charged.d.next = self.extent.val().get_bits::<5>(12);
                self.unit_count.d.next = 0.into();
            }
        }
        self.valid.next = self.giving.q.val();
        self.give_peer.next = self.to_peer.q.val();
        self.give_first.next = self.chain_first.q.val();
        self.give_last.next = self.chain_last.q.val();
        self.give_held.next = bit_cast::<8, 5>(self.chain_held.q.val());
        self.give_charged.next = bit_cast::<8, 5>(self.chain_charged.q.val());
        self.give_units.next = bit_cast::<8, 5>(self.unit_count.q.val());
        if self.reset.val() {
            self.giving.d.next = false;
            self.aborting.d.next = false;
        }
    }
}
