//! Chunks of the pool: the free list, and the chains that frames are made of.
//!
//! One table holds, for each chunk, the following one: of its frame, or of the free list. A whole
//! frame goes back in one step, because its first and last chunk and their number are known. One
//! chunk, the `spare`, is taken off the list in advance, so that a frame grows without a pause.
//! After reset a counter builds the list; then `ready` rises.
use super::num::Num;
use crate::leaf::LutRam;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Chunks {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    /// The number of the building step, for tables that are cleared along.
    pub building: Signal<Out, Bits<7>>,
    /// A free chunk.
    pub spare: Signal<Out, Bits<7>>,
    pub spare_valid: Signal<Out, Bit>,
    /// Takes the spare.
    pub take: Signal<In, Bit>,
    /// Also puts it behind `link_from` (a cycle later).
    pub link: Signal<In, Bit>,
    pub link_from: Signal<In, Bits<7>>,
    // Gives a chain back; it is taken in a cycle with `give` and `given`.
    pub give: Signal<In, Bit>,
    pub give_first: Signal<In, Bits<7>>,
    pub give_last: Signal<In, Bits<7>>,
    pub give_count: Signal<In, Bits<8>>,
    pub given: Signal<Out, Bit>,
    // The transmitter follows a chain.
    pub chunk: Signal<In, Bits<7>>,
    pub chunk_after: Signal<Out, Bits<7>>,
    /// Free chunks.
    pub level: Signal<Out, Bits<8>>,
    chain: LutRam<7, 7>,
    chain_tx: LutRam<7, 7>,
    step: DFF<Bits<8>>,
    head: DFF<Bits<7>>,
    /// Chunks in the list.
    listed: DFF<Bits<8>>,
    one: DFF<Bits<7>>,
    one_valid: DFF<Bit>,
    linking: DFF<Bit>,
    linked_from: DFF<Bits<7>>,
    linked_to: DFF<Bits<7>>,
    built: Signal<Local, Bit>,
    refill: Signal<Local, Bit>,
    splice: Signal<Local, Bit>,
    write: Signal<Local, Bit>,
    write_at: Signal<Local, Bits<7>>,
    write_to: Signal<Local, Bits<7>>,
    build_at: Signal<Local, Bits<7>>,
    zero_8: Num<8, 0>,
    all: Num<8, { nic_regs::limits::POOL_CHUNK_COUNT as u64 }>,
}

impl Logic for Chunks {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            step,
            head,
            listed,
            one,
            one_valid,
            linking,
            linked_from,
            linked_to
        );
        clock!(self, clock, chain, chain_tx);
        self.built.next = self.step.q.val().get_bit(7);
        self.build_at.next = self.step.q.val().get_bits::<7>(0);
        self.ready.next = self.built.val();
        self.building.next = self.build_at.val();
        self.refill.next = self.built.val()
            & (!self.one_valid.q.val())
            & (self.listed.q.val() != self.zero_8.val());
        self.splice.next =
            self.built.val() & self.give.val() & !(self.linking.q.val() | self.refill.val());
        self.given.next = self.splice.val();
        self.chain.read_address.next = self.head.q.val();
        self.write.next = false;
        self.linking.d.next = self.link.val();
        self.linked_from.d.next = self.link_from.val();
        self.linked_to.d.next = self.one.q.val();
        self.write_at.next = self.linked_from.q.val();
        self.write_to.next = self.linked_to.q.val();
        if !self.built.val() {
            self.step.d.next = self.step.q.val() + 1;
            self.write.next = true;
            self.write_at.next = self.build_at.val();
            self.write_to.next = self.build_at.val() + 1;
        } else if self.linking.q.val() {
            self.write.next = true;
        } else if self.splice.val() {
            self.write.next = true;
            self.write_at.next = self.give_last.val();
            self.write_to.next = self.head.q.val();
            self.head.d.next = self.give_first.val();
            self.listed.d.next = self.listed.q.val() + self.give_count.val();
        }
        if self.take.val() {
            self.one_valid.d.next = false;
        }
        if self.refill.val() {
            self.one_valid.d.next = true;
            self.one.d.next = self.head.q.val();
            self.head.d.next = self.chain.read_data.val();
            self.listed.d.next = self.listed.q.val() - 1;
        }
        self.spare.next = self.one.q.val();
        self.spare_valid.next = self.one_valid.q.val();
        self.level.next = self.listed.q.val() + bit_cast::<8, 1>(self.one_valid.q.val().into());
        self.chain.write_enable.next = self.write.val();
        self.chain.write_address.next = self.write_at.val();
        self.chain.write_data.next = self.write_to.val();
        self.chain_tx.write_enable.next = self.write.val();
        self.chain_tx.write_address.next = self.write_at.val();
        self.chain_tx.write_data.next = self.write_to.val();
        self.chain_tx.read_address.next = self.chunk.val();
        self.chunk_after.next = self.chain_tx.read_data.val();
        if self.reset.val() {
            self.step.d.next = 0.into();
            self.head.d.next = 0.into();
            self.listed.d.next = self.all.val();
            self.one_valid.d.next = false;
            self.linking.d.next = false;
        }
    }
}
