//! The queue of write packets: payload pieces and statuses, in the order in which they go out.
//!
//! ```text
//! Scatter --packets, beats--> +--------+ ==> req_address, req_length
//!  Finish --packet, beats---> | Writer | ==> w_data, w_last
//!                             +--------+
//! ```
//! A packet's beats come with it or later, and wait for no other block than the write port, which is
//! told of the packet at once.

use crate::leaf::{Fifo, Number};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Writer {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulses: a packet, a beat of the oldest packet that lacks beats.
    pub packet: Signal<In, Bit>,
    pub address: Signal<In, Bits<64>>,
    pub length: Signal<In, Bits<13>>,
    /// The packet is the last of its message / a status.
    pub is_final: Signal<In, Bit>,
    pub is_status: Signal<In, Bit>,
    /// It is of the VI that is sampled.
    pub sampled: Signal<In, Bit>,
    pub beat: Signal<In, Bit>,
    pub data: Signal<In, Bits<64>>,
    /// The packet's last beat.
    pub last: Signal<In, Bit>,
    /// No room for a packet / stop sending beats (six more may come).
    pub full: Signal<Out, Bit>,
    pub high: Signal<Out, Bit>,
    /// Everything was accepted.
    pub empty: Signal<Out, Bit>,
    /// Pulse: a status was accepted.
    pub status_written: Signal<Out, Bit>,
    /// Pulses: the sampled VI's last payload of a message, its status was accepted.
    pub data_stamp: Signal<Out, Bit>,
    pub status_stamp: Signal<Out, Bit>,
    pub req_valid: Signal<Out, Bit>,
    pub req_address: Signal<Out, Bits<64>>,
    pub req_length: Signal<Out, Bits<13>>,
    pub req_ready: Signal<In, Bit>,
    pub w_valid: Signal<Out, Bit>,
    pub w_data: Signal<Out, Bits<64>>,
    pub w_last: Signal<Out, Bit>,
    pub w_ready: Signal<In, Bit>,
    // Packets that the write port was not told of; those that were not sent to the end: status 0,
    // final 1, sampled 2.
    requests: Fifo<77, 2>,
    packets: Fifo<3, 2>,
    beats: Fifo<65, 5>,
    moved: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    /// Level at which beats stop: six can be on the way.
    high_mark: Number<16, 26>,
}

impl Logic for Writer {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, requests, packets, beats);
        self.requests.reset.next = self.reset.val();
        self.packets.reset.next = self.reset.val();
        self.beats.reset.next = self.reset.val();
        self.packets.write.next = self.packet.val();
        self.packets.data_in.next = bit_cast::<3, 1>(self.is_status.val().into())
            | (bit_cast::<3, 1>(self.is_final.val().into()) << 1)
            | (bit_cast::<3, 1>(self.sampled.val().into()) << 2);
        self.requests.write.next = self.packet.val();
        self.requests.data_in.next =
            bit_cast::<77, 64>(self.address.val()) | (bit_cast::<77, 13>(self.length.val()) << 64);
        self.req_valid.next = !self.requests.empty.val();
        self.req_address.next = self.requests.data_out.val().get_bits::<64>(0);
        self.req_length.next = self.requests.data_out.val().get_bits::<13>(64);
        self.requests.read.next = (!self.requests.empty.val()) & self.req_ready.val();
        self.beats.write.next = self.beat.val();
        self.beats.data_in.next =
            bit_cast::<65, 64>(self.data.val()) | (bit_cast::<65, 1>(self.last.val().into()) << 64);
        self.full.next = self.packets.full.val();
        self.high.next = self.beats.level.val() >= self.high_mark.val();
        self.empty.next = self.packets.empty.val();
        self.w_valid.next = !self.beats.empty.val();
        self.w_data.next = self.beats.data_out.val().get_bits::<64>(0);
        self.w_last.next = self.beats.data_out.val().get_bit(64);
        self.moved.next = (!self.beats.empty.val()) & self.w_ready.val();
        self.ends.next = self.moved.val() & self.beats.data_out.val().get_bit(64);
        self.beats.read.next = self.moved.val();
        self.packets.read.next = self.ends.val();
        self.data_stamp.next = self.ends.val()
            & self.packets.data_out.val().get_bit(1)
            & self.packets.data_out.val().get_bit(2);
        self.status_stamp.next = self.ends.val()
            & self.packets.data_out.val().get_bit(0)
            & self.packets.data_out.val().get_bit(2);
        self.status_written.next = self.ends.val() & self.packets.data_out.val().get_bit(0);
    }
}
