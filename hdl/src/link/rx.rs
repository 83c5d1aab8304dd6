//! Link receiver: takes beats off the link, never holds them off, and gives whole good frames to
//! the channel.
//!
//! ```text
//! pins -> register -> position, CRC, header, payload writes -> verdict -> `frame`, stable header
//! ```
//! Payload goes to staging as it arrives; nothing there counts until the channel commits. The
//! header of a frame stays stable for at least three cycles after its verdict, because the next
//! frame is at least four beats long; shorter runts never reach the header registers. A frame that
//! never ends only counts beats, up to a ceiling above every legal length.
use crate::channel::num::Num;
use crate::leaf::Crc32Step;
use nic_regs::frame::{CRC_INIT, HEADER_BEATS, MESSAGE_BYTES, RDMA_HEADER_BYTES, Type, VERSION};
use nic_regs::limits::LINK_PAYLOAD_BYTES;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct LinkRx {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub enable: Signal<In, Bit>,
    pub node: Signal<In, Bits<8>>,
    pub sample_vi: Signal<In, Bits<16>>,
    pub sample_armed: Signal<In, Bit>,
    pub stamp_first_beat_in: Signal<Out, Bit>,
    pub rx_valid: Signal<In, Bit>,
    pub rx_data: Signal<In, Bits<64>>,
    pub rx_last: Signal<In, Bit>,
    // To staging.
    /// First beat of a frame.
    pub start: Signal<Out, Bit>,
    pub write: Signal<Out, Bit>,
    /// Number of the payload beat.
    pub offset: Signal<Out, Bits<10>>,
    pub data: Signal<Out, Bits<64>>,
    /// Payload beats that the header tells.
    pub beats: Signal<Out, Bits<10>>,
    // To acceptance.
    /// The last beat of a frame is being checked; `frame` or `misfit` may follow a cycle later.
    pub coming: Signal<Out, Bit>,
    /// Its source node and payload length, from before its last beat on.
    pub coming_from: Signal<Out, Bits<6>>,
    pub coming_length: Signal<Out, Bits<13>>,
    /// A good frame for this node.
    pub frame: Signal<Out, Bit>,
    /// A SYN or SYN-ACK for this node in another link version.
    pub misfit: Signal<Out, Bit>,
    pub header0: Signal<Out, Bits<64>>,
    pub header1: Signal<Out, Bits<64>>,
    pub header2: Signal<Out, Bits<64>>,
    /// FramesReceived, DropCrc, DropLength, DropVersion, DropNode.
    pub tally: Signal<Out, Bits<5>>,
    crc: Crc32Step,
    in_valid: DFF<Bit>,
    in_data: DFF<Bits<64>>,
    in_last: DFF<Bit>,
    position: DFF<Bits<10>>,
    state: DFF<Bits<32>>,
    taking: DFF<Bit>,
    early0: DFF<Bits<64>>,
    early1: DFF<Bits<64>>,
    early2: DFF<Bits<64>>,
    due_position: DFF<Bits<14>>,
    start_out: DFF<Bit>,
    write_out: DFF<Bit>,
    offset_out: DFF<Bits<10>>,
    data_out: DFF<Bits<64>>,
    done: DFF<Bit>,
    crc_good: DFF<Bit>,
    length_good: DFF<Bit>,
    held0: DFF<Bits<64>>,
    held1: DFF<Bits<64>>,
    held2: DFF<Bits<64>>,
    held_beats: DFF<Bits<10>>,
    tally_bits: DFF<Bits<5>>,
    stamp: DFF<Bit>,
    sum: Signal<Local, Bits<32>>,
    wanted_crc: Signal<Local, Bits<64>>,
    padded: Signal<Local, Bits<17>>,
    payload: Signal<Local, Bits<14>>,
    due_beats: Signal<Local, Bits<14>>,
    at: Signal<Local, Bits<14>>,
    early_kind: Signal<Local, Bits<8>>,
    early_to: Signal<Local, Bits<8>>,
    known: Signal<Local, Bit>,
    is_write: Signal<Local, Bit>,
    is_data: Signal<Local, Bit>,
    early_length: Signal<Local, Bits<16>>,
    bad_length: Signal<Local, Bit>,
    /// It must be sequenced, and is not.
    unsequenced: Signal<Local, Bit>,
    end_limit: Signal<Local, Bits<14>>,
    is_first: Signal<Local, Bit>,
    in_payload: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
    ending: Signal<Local, Bit>,
    version_good: Signal<Local, Bit>,
    here: Signal<Local, Bit>,
    kind: Signal<Local, Bits<8>>,
    crc_init: Num<32, { CRC_INIT as u64 }>,
    zero_10: Num<10, 0>,
    one_10: Num<10, 1>,
    two_10: Num<10, 2>,
    header_beats: Num<10, { HEADER_BEATS as u64 }>,
    header_beats_14: Num<14, { HEADER_BEATS as u64 }>,
    /// Where the CRC of the longest frame stands, and of the longest one without an RDMA header.
    end_max: Num<10, { (HEADER_BEATS + Type::RdmaWrite.payload_max() / 8) as u64 }>,
    end_max_14: Num<14, { (HEADER_BEATS + Type::RdmaWrite.payload_max() / 8) as u64 }>,
    end_plain_14: Num<14, { (HEADER_BEATS + LINK_PAYLOAD_BYTES / 8) as u64 }>,
    ceiling: Num<10, 1000>,
    version: Num<8, { VERSION as u64 }>,
    message_bytes: Num<16, { MESSAGE_BYTES as u64 }>,
    rdma_bytes: Num<16, { RDMA_HEADER_BYTES as u64 }>,
    zero_2: Num<2, 0>,
    type_data: Num<8, { Type::Data as u64 }>,
    type_message: Num<8, { Type::Message as u64 }>,
    type_write: Num<8, { Type::RdmaWrite as u64 }>,
    type_request: Num<8, { Type::ReadRequest as u64 }>,
    /// The last one for the receive engine.
    type_last: Num<8, { Type::ReadResponse as u64 }>,
    type_ack: Num<8, { Type::Ack as u64 }>,
    type_syn: Num<8, { Type::Syn as u64 }>,
    type_synack: Num<8, { Type::SynAck as u64 }>,
    type_refused: Num<8, { Type::MessageRefused as u64 }>,
}

impl Logic for LinkRx {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, in_valid, in_data, in_last, position, state, taking, early0);
        dff_setup!(self, clock, early1, early2, due_position, start_out, write_out, offset_out);
        dff_setup!(self, clock, data_out, done, crc_good, length_good, held0, held1, held2);
        dff_setup!(self, clock, held_beats, tally_bits, stamp);
        self.in_valid.d.next = self.rx_valid.val();
        self.in_data.d.next = self.rx_data.val();
        self.in_last.d.next = self.rx_last.val();

        // Where we are in the frame.
        self.is_first.next = self.position.q.val() == self.zero_10.val();
        self.takes.next = self.taking.q.val();
        if self.is_first.val() {
            self.takes.next = self.enable.val();
        }
        self.crc.state.next = self.state.q.val();
        self.crc.data.next = self.in_data.q.val();
        self.sum.next = !self.state.q.val();
        self.wanted_crc.next = bit_cast::<64, 32>(self.sum.val());
        if self.in_valid.q.val() {
            self.state.d.next = self.crc.result.val();
            self.taking.d.next = self.takes.val();
            if self.position.q.val() != self.ceiling.val() {
                self.position.d.next = self.position.q.val() + 1;
            }
            if self.is_first.val() {
                self.early0.d.next = self.in_data.q.val();
            }
            if self.position.q.val() == self.one_10.val() {
                self.early1.d.next = self.in_data.q.val();
            }
            if self.position.q.val() == self.two_10.val() {
                self.early2.d.next = self.in_data.q.val();
            }
            if self.in_last.q.val() {
                self.state.d.next = self.crc_init.val();
                self.position.d.next = 0.into();
            }
        }

        // Where the header says that the CRC stands.
        self.padded.next = bit_cast::<17, 16>(self.early0.q.val().get_bits::<16>(16)) + 7;
        self.payload.next = self.padded.val().get_bits::<14>(3);
        self.due_beats.next = self.payload.val() + self.header_beats_14.val();
        self.due_position.d.next = self.due_beats.val();
        self.early_kind.next = self.early0.q.val().get_bits::<8>(8);
        self.known.next = ((self.early_kind.val() >= self.type_data.val())
            & (self.early_kind.val() <= self.type_last.val()))
            | ((self.early_kind.val() >= self.type_ack.val())
                & (self.early_kind.val() <= self.type_refused.val()));
        self.at.next = bit_cast::<14, 10>(self.position.q.val());
        // Lengths and flags that do not go with the type. Types below 16 are for the receive engine.
        self.is_data.next = self.early_kind.val() == self.type_data.val();
        self.is_write.next = self.early_kind.val() == self.type_write.val();
        self.early_length.next = self.early0.q.val().get_bits::<16>(16);
        self.bad_length.next =
            self.is_write.val() & (self.early_length.val() < self.rdma_bytes.val());
        if self.early_kind.val() == self.type_message.val() {
            self.bad_length.next = self.early_length.val() != self.message_bytes.val();
        } else if self.early_kind.val() == self.type_request.val() {
            self.bad_length.next = self.early_length.val() != self.rdma_bytes.val();
        }
        self.unsequenced.next = (!self.early_kind.val().get_bits::<4>(4).any())
            & (!self.is_data.val())
            & (!self.is_write.val())
            & (!self.early1.q.val().get_bit(51));
        self.end_limit.next = self.end_plain_14.val();
        if self.is_write.val() {
            self.end_limit.next = self.end_max_14.val();
        }

        // Payload.
        self.in_payload.next = (self.position.q.val() >= self.header_beats.val())
            & (self.position.q.val() < self.end_max.val());
        self.start_out.d.next = self.in_valid.q.val() & self.is_first.val();
        self.write_out.d.next = self.in_valid.q.val()
            & self.taking.q.val()
            & self.in_payload.val()
            & !self.in_last.q.val();
        self.offset_out.d.next = self.position.q.val() - self.header_beats.val();
        self.data_out.d.next = self.in_data.q.val();
        self.start.next = self.start_out.q.val();
        self.write.next = self.write_out.q.val();
        self.offset.next = self.offset_out.q.val();
        self.data.next = self.data_out.q.val();

        // The last beat.
        self.ending.next = self.in_valid.q.val()
            & self.in_last.q.val()
            & (self.position.q.val() >= self.header_beats.val());
        self.coming.next = self.ending.val();
        self.coming_from.next = self.early0.q.val().get_bits::<6>(32);
        self.coming_length.next = self.early0.q.val().get_bits::<13>(16);
        self.done.d.next =
            self.in_valid.q.val() & self.in_last.q.val() & self.takes.val() & self.enable.val();
        self.crc_good.d.next = self.in_data.q.val() == self.wanted_crc.val();
        self.length_good.d.next = (self.at.val() == self.due_position.q.val())
            & (self.position.q.val() >= self.header_beats.val())
            & (self.due_position.q.val() <= self.end_limit.val())
            & (!self.bad_length.val())
            & (!self.unsequenced.val())
            & self.known.val();
        if self.ending.val() {
            self.held0.d.next = self.early0.q.val();
            self.held1.d.next = self.early1.q.val();
            self.held2.d.next = self.early2.q.val();
            self.held_beats.d.next = self.payload.val().get_bits::<10>(0);
        }

        // The verdict.
        self.kind.next = self.held0.q.val().get_bits::<8>(8);
        self.version_good.next = self.held0.q.val().get_bits::<8>(0) == self.version.val();
        self.here.next = (self.held0.q.val().get_bits::<8>(40) == self.node.val())
            & (self.held0.q.val().get_bits::<2>(38) == self.zero_2.val());
        self.frame.next = false;
        self.misfit.next = false;
        self.tally_bits.d.next = 0.into();
        if self.done.q.val() {
            if !self.crc_good.q.val() {
                self.tally_bits.d.next = 2.into();
            } else if !self.length_good.q.val() {
                self.tally_bits.d.next = 4.into();
            } else if !self.version_good.val() {
                self.tally_bits.d.next = 8.into();
                self.misfit.next = self.here.val()
                    & ((self.kind.val() == self.type_syn.val())
                        | (self.kind.val() == self.type_synack.val()));
            } else if !self.here.val() {
                self.tally_bits.d.next = 16.into();
            } else {
                self.tally_bits.d.next = 1.into();
                self.frame.next = true;
            }
        }
        self.tally.next = self.tally_bits.q.val();
        self.header0.next = self.held0.q.val();
        self.header1.next = self.held1.q.val();
        self.header2.next = self.held2.q.val();
        self.beats.next = self.held_beats.q.val();

        // Anatomy: the header's second beat names the VI.
        self.early_to.next = self.early0.q.val().get_bits::<8>(40);
        self.stamp.d.next = self.in_valid.q.val()
            & self.taking.q.val()
            & self.sample_armed.val()
            & (self.position.q.val() == self.one_10.val())
            & (self.is_data.val()
                | self.is_write.val()
                | (self.early_kind.val() == self.type_request.val())
                | (self.early_kind.val() == self.type_last.val()))
            & (self.early_to.val() == self.node.val())
            & (self.in_data.q.val().get_bits::<16>(0) == self.sample_vi.val());
        self.stamp_first_beat_in.next = self.stamp.q.val();
        if self.reset.val() {
            // The frame under way is followed to its end, and not taken.
            self.state.d.next = self.crc_init.val();
            self.taking.d.next = false;
            self.start_out.d.next = false;
            self.write_out.d.next = false;
            self.done.d.next = false;
            self.tally_bits.d.next = 0.into();
            self.stamp.d.next = false;
        }
    }
}
