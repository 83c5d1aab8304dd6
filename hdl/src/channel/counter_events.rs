//! The channel's events for the counters: a pulse for each, at its counter's number.
use super::num::Num;
use nic_regs::counter::Counter;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct CounterEvents {
    /// FramesSent, FramesRetransmitted, AcksSent, ResetsSent.
    pub tx: Signal<In, Bits<4>>,
    /// FramesReceived, DropCrc, DropLength, DropVersion, DropNode.
    pub rx: Signal<In, Bits<5>>,
    /// DropNode, DropTag, DropOrder, DropDuplicate, DropStaging.
    pub drops: Signal<In, Bits<5>>,
    /// PeersLost.
    pub lost: Signal<In, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    count_sent: Num<6, { Counter::FramesSent as u64 }>,
    count_alive: Num<6, { Counter::FramesReceived as u64 }>,
    count_again: Num<6, { Counter::FramesRetransmitted as u64 }>,
    count_crc: Num<6, { Counter::DropCrc as u64 }>,
    count_length: Num<6, { Counter::DropLength as u64 }>,
    count_version: Num<6, { Counter::DropVersion as u64 }>,
    count_node: Num<6, { Counter::DropNode as u64 }>,
    count_tag: Num<6, { Counter::DropTag as u64 }>,
    count_order: Num<6, { Counter::DropOrder as u64 }>,
    count_duplicate: Num<6, { Counter::DropDuplicate as u64 }>,
    count_staging: Num<6, { Counter::DropStaging as u64 }>,
    count_acks: Num<6, { Counter::AcksSent as u64 }>,
    count_resets: Num<6, { Counter::ResetsSent as u64 }>,
    count_lost: Num<6, { Counter::PeersLost as u64 }>,
}

impl Logic for CounterEvents {
    #[hdl_gen]
    fn update(&mut self) {
        // A frame is dropped for its node by the link receiver or by acceptance, never by both in
        // one cycle.
        self.counts.next = (bit_cast::<64, 1>(self.tx.val().get_bit(0).into())
            << self.count_sent.val())
            | (bit_cast::<64, 1>(self.tx.val().get_bit(1).into()) << self.count_again.val())
            | (bit_cast::<64, 1>(self.tx.val().get_bit(2).into()) << self.count_acks.val())
            | (bit_cast::<64, 1>(self.tx.val().get_bit(3).into()) << self.count_resets.val())
            | (bit_cast::<64, 1>(self.rx.val().get_bit(0).into()) << self.count_alive.val())
            | (bit_cast::<64, 1>(self.rx.val().get_bit(1).into()) << self.count_crc.val())
            | (bit_cast::<64, 1>(self.rx.val().get_bit(2).into()) << self.count_length.val())
            | (bit_cast::<64, 1>(self.rx.val().get_bit(3).into()) << self.count_version.val())
            | (bit_cast::<64, 1>(self.rx.val().get_bit(4).into()) << self.count_node.val())
            | (bit_cast::<64, 1>(self.drops.val().get_bit(0).into()) << self.count_node.val())
            | (bit_cast::<64, 1>(self.drops.val().get_bit(1).into()) << self.count_tag.val())
            | (bit_cast::<64, 1>(self.drops.val().get_bit(2).into()) << self.count_order.val())
            | (bit_cast::<64, 1>(self.drops.val().get_bit(3).into()) << self.count_duplicate.val())
            | (bit_cast::<64, 1>(self.drops.val().get_bit(4).into()) << self.count_staging.val())
            | (bit_cast::<64, 1>(self.lost.val().into()) << self.count_lost.val());
    }
}
