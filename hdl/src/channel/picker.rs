//! Fair choice among 64 peers, in two registered steps: the lowest of each group of eight, then the
//! lowest group.
//!
//! Fairness is by rounds: a peer that was taken is out until no other one is left that wants; so
//! nobody is passed by another one more than twice. A carry chain over 64 peers, as in
//! [`crate::leaf::RoundRobin`], would be the longest path of the channel.
use super::num::Num;
use crate::leaf::FirstOne;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Picker {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub want: Signal<In, Bits<64>>,
    /// The choice was taken. It may be out of date by then: the taker looks again.
    pub took: Signal<In, Bit>,
    pub peer: Signal<Out, Bits<6>>,
    pub valid: Signal<Out, Bit>,
    firsts: [FirstOne<8>; 8],
    group: FirstOne<8>,
    /// Peers that were not taken in this round.
    round: DFF<Bits<64>>,
    /// Groups with somebody, and the lowest of each in four bits.
    filled: DFF<Bits<8>>,
    lowest: DFF<Bits<32>>,
    index: DFF<Bits<6>>,
    any: DFF<Bit>,
    /// `took`, a cycle later: it comes late, and has much to do. The taker does not ask again so soon.
    left: DFF<Bit>,
    /// After a choice the pending bits behind it are on their way for some cycles.
    pause: DFF<Bits<3>>,
    asking: Signal<Local, Bits<64>>,
    some: Signal<Local, Bits<8>>,
    lows: Signal<Local, Bits<32>>,
    shift: Signal<Local, Bits<5>>,
    place: Signal<Local, Bits<3>>,
    taken: Signal<Local, Bits<64>>,
    kept: Signal<Local, Bits<64>>,
    one: Num<64, 1>,
    all: Num<64, { u64::MAX }>,
    zero_3: Num<3, 0>,
    zero_8: Num<8, 0>,
    restart: Num<3, 3>,
}

impl Logic for Picker {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, round, filled, lowest, index, any, pause, left);
        // The lowest of each group.
        self.asking.next = self.want.val() & self.round.q.val();
        for i in 0..8 {
            self.firsts[i].value.next = self.asking.val().get_bits::<8>(i << 3);
        }
        self.some.next = bit_cast::<8, 1>(self.firsts[0].found.val().into())
            | (bit_cast::<8, 1>(self.firsts[1].found.val().into()) << 1)
            | (bit_cast::<8, 1>(self.firsts[2].found.val().into()) << 2)
            | (bit_cast::<8, 1>(self.firsts[3].found.val().into()) << 3)
            | (bit_cast::<8, 1>(self.firsts[4].found.val().into()) << 4)
            | (bit_cast::<8, 1>(self.firsts[5].found.val().into()) << 5)
            | (bit_cast::<8, 1>(self.firsts[6].found.val().into()) << 6)
            | (bit_cast::<8, 1>(self.firsts[7].found.val().into()) << 7);
        self.lows.next = bit_cast::<32, 8>(self.firsts[0].index.val())
            | (bit_cast::<32, 8>(self.firsts[1].index.val()) << 4)
            | (bit_cast::<32, 8>(self.firsts[2].index.val()) << 8)
            | (bit_cast::<32, 8>(self.firsts[3].index.val()) << 12)
            | (bit_cast::<32, 8>(self.firsts[4].index.val()) << 16)
            | (bit_cast::<32, 8>(self.firsts[5].index.val()) << 20)
            | (bit_cast::<32, 8>(self.firsts[6].index.val()) << 24)
            | (bit_cast::<32, 8>(self.firsts[7].index.val()) << 28);
        self.filled.d.next = self.some.val();
        self.lowest.d.next = self.lows.val();
        // The lowest group.
        self.group.value.next = self.filled.q.val();
        self.shift.next = bit_cast::<5, 3>(self.group.index.val().get_bits::<3>(0)) << 2;
        self.place.next = self.lowest.q.val().get_bits::<3>(self.shift.val().index());
        self.taken.next = self.one.val() << self.index.q.val();
        self.kept.next = !self.taken.val();
        if self.pause.q.val() != self.zero_3.val() {
            self.pause.d.next = self.pause.q.val() - 1;
        } else if !self.any.q.val() {
            self.any.d.next = self.group.found.val();
            self.index.d.next = (bit_cast::<6, 3>(self.group.index.val().get_bits::<3>(0)) << 3)
                | bit_cast::<6, 3>(self.place.val());
            if self.filled.q.val() == self.zero_8.val() {
                self.round.d.next = self.all.val();
            }
        }
        self.left.d.next = self.took.val();
        if self.left.q.val() {
            self.any.d.next = false;
            self.pause.d.next = self.restart.val();
            self.round.d.next = self.round.q.val() & self.kept.val();
        }
        self.peer.next = self.index.q.val();
        self.valid.next = self.any.q.val() & !self.left.q.val();
        if self.reset.val() {
            self.any.d.next = false;
            self.left.d.next = false;
            self.pause.d.next = 0.into();
            self.round.d.next = self.all.val();
        }
    }
}
