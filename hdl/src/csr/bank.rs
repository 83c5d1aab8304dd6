//! The registers below 0x80: those that software writes, and the selection of what is read.
//!
//! ```text
//! cycle 0  `index`     1  one word of each row of eight     2  `value`
//! ```
use crate::leaf::Number;
use nic_regs::csr;
use rust_hdl::prelude::*;

/// What this device can do.
const CAPS3: u64 = csr::CAPS3::RESET
    .with(csr::CAPS3::PUSH, 1)
    .with(csr::CAPS3::RDMA_WRITE, 1)
    .with(csr::CAPS3::RDMA_READ, 1)
    .0 as u64;

/// Word offset of each register, in the order in which [`Bank`] reads them.
const ROWS: [u32; 31] = [
    csr::ID::OFFSET,
    csr::CAPS0::OFFSET,
    csr::CAPS1::OFFSET,
    csr::CAPS2::OFFSET,
    csr::CAPS3::OFFSET,
    csr::CLOCK::OFFSET,
    csr::CONTROL::OFFSET,
    csr::STATUS::OFFSET,
    csr::ADMIN_BASE_LO::OFFSET,
    csr::ADMIN_BASE_HI::OFFSET,
    csr::ADMIN_SIZE::OFFSET,
    csr::ADMIN_TAIL::OFFSET,
    csr::ADMIN_HEAD::OFFSET,
    csr::NODE::OFFSET,
    csr::PCIE::OFFSET,
    csr::REQUESTER::OFFSET,
    csr::READ_TIMEOUT::OFFSET,
    csr::ACK_DELAY::OFFSET,
    csr::RETRY_TIMEOUT::OFFSET,
    csr::RETRY_LIMIT::OFFSET,
    csr::KEEPALIVE::OFFSET,
    csr::CYCLES_LO::OFFSET,
    csr::CYCLES_HI::OFFSET,
    csr::ERROR_QUEUE::OFFSET,
    csr::ERROR_COUNT::OFFSET,
    csr::ERROR_LO::OFFSET,
    csr::ERROR_HI::OFFSET,
    csr::ERROR_POP::OFFSET,
    csr::SAMPLE::OFFSET,
    csr::SAMPLED::OFFSET,
    csr::MODERATION::OFFSET,
];

/// The word number of a register.
pub(super) const fn word(offset: u32) -> u64 {
    (offset / 4) as u64
}

const _: () = {
    let mut at = 0;
    while at < ROWS.len() {
        assert!(word(ROWS[at]) == at as u64, "registers are read by position");
        at += 1;
    }
};

/// One of eight words.
#[derive(LogicBlock, Default)]
pub struct Row {
    pub clock: Signal<In, Clock>,
    pub index: Signal<In, Bits<3>>,
    pub in0: Signal<In, Bits<32>>,
    pub in1: Signal<In, Bits<32>>,
    pub in2: Signal<In, Bits<32>>,
    pub in3: Signal<In, Bits<32>>,
    pub in4: Signal<In, Bits<32>>,
    pub in5: Signal<In, Bits<32>>,
    pub in6: Signal<In, Bits<32>>,
    pub in7: Signal<In, Bits<32>>,
    pub out: Signal<Out, Bits<32>>,
    word: DFF<Bits<32>>,
    low: Signal<Local, Bits<32>>,
    high: Signal<Local, Bits<32>>,
}

impl Logic for Row {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, word);
        self.low.next = self.in0.val();
        self.high.next = self.in4.val();
        if self.index.val().get_bits::<2>(0) == 1 {
            self.low.next = self.in1.val();
            self.high.next = self.in5.val();
        } else if self.index.val().get_bits::<2>(0) == 2 {
            self.low.next = self.in2.val();
            self.high.next = self.in6.val();
        } else if self.index.val().get_bits::<2>(0) == 3 {
            self.low.next = self.in3.val();
            self.high.next = self.in7.val();
        }
        self.word.d.next = self.low.val();
        if self.index.val().get_bit(2) {
            self.word.d.next = self.high.val();
        }
        self.out.next = self.word.q.val();
    }
}

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct Bank {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Word number, 0 to 31.
    pub index: Signal<In, Bits<5>>,
    /// Pulse.
    pub write: Signal<In, Bit>,
    pub wdata: Signal<In, Bits<32>>,
    pub value: Signal<Out, Bits<32>>,
    // What is read only.
    pub status: Signal<In, Bits<5>>,
    pub admin_head: Signal<In, Bits<16>>,
    pub cycles_low: Signal<In, Bits<32>>,
    pub cycles_high: Signal<In, Bits<32>>,
    pub error_level: Signal<In, Bits<16>>,
    pub error_lost: Signal<In, Bits<16>>,
    pub error_record: Signal<In, Bits<64>>,
    pub sampled: Signal<In, Bits<9>>,
    // What is written.
    pub enable: Signal<Out, Bit>,
    pub admin_base: Signal<Out, Bits<64>>,
    pub admin_log2: Signal<Out, Bits<4>>,
    pub admin_tail: Signal<Out, Bits<16>>,
    pub node: Signal<Out, Bits<8>>,
    pub max_payload: Signal<Out, Bits<3>>,
    pub max_read: Signal<Out, Bits<3>>,
    pub requester: Signal<Out, Bits<16>>,
    pub read_timeout: Signal<Out, Bits<32>>,
    pub ack_delay: Signal<Out, Bits<32>>,
    pub retry_timeout: Signal<Out, Bits<24>>,
    pub retry_limit: Signal<Out, Bits<4>>,
    pub keepalive: Signal<Out, Bits<32>>,
    pub moderation: Signal<Out, Bits<24>>,
    pub error_queue: Signal<Out, Bits<16>>,
    pub error_queue_valid: Signal<Out, Bit>,
    pub sample_vi: Signal<Out, Bits<16>>,
    pub sample_armed: Signal<Out, Bit>,
    row0: Row,
    row1: Row,
    row2: Row,
    row3: Row,
    word: DFF<Bits<32>>,
    row: DFF<Bits<2>>,
    r_enable: DFF<Bit>,
    r_base_lo: DFF<Bits<32>>,
    r_base_hi: DFF<Bits<32>>,
    r_log2: DFF<Bits<4>>,
    r_tail: DFF<Bits<16>>,
    r_node: DFF<Bits<8>>,
    r_max_payload: DFF<Bits<3>>,
    r_max_read: DFF<Bits<3>>,
    r_requester: DFF<Bits<16>>,
    r_read_timeout: DFF<Bits<32>>,
    r_ack_delay: DFF<Bits<32>>,
    r_retry_timeout: DFF<Bits<24>>,
    r_retry_limit: DFF<Bits<4>>,
    r_keepalive: DFF<Bits<32>>,
    r_moderation: DFF<Bits<24>>,
    r_error_queue: DFF<Bits<16>>,
    r_error_valid: DFF<Bit>,
    r_sample_vi: DFF<Bits<16>>,
    r_sample_armed: DFF<Bit>,
    chosen: Signal<Local, Bits<32>>,
    id: Number<32, { csr::ID::RESET.0 as u64 }>,
    caps0: Number<32, { csr::CAPS0::RESET.0 as u64 }>,
    caps1: Number<32, { csr::CAPS1::RESET.0 as u64 }>,
    caps2: Number<32, { csr::CAPS2::RESET.0 as u64 }>,
    caps3: Number<32, { CAPS3 }>,
    khz: Number<32, { csr::CLOCK::RESET.0 as u64 }>,
    reset_payload: Number<3, { csr::PCIE::RESET.get(csr::PCIE::MAX_PAYLOAD) as u64 }>,
    reset_read: Number<3, { csr::PCIE::RESET.get(csr::PCIE::MAX_READ) as u64 }>,
    reset_read_timeout: Number<32, { csr::READ_TIMEOUT::RESET.0 as u64 }>,
    reset_ack_delay: Number<32, { csr::ACK_DELAY::RESET.0 as u64 }>,
    reset_retry_timeout: Number<24, { csr::RETRY_TIMEOUT::RESET.0 as u64 }>,
    reset_retry_limit: Number<4, { csr::RETRY_LIMIT::RESET.0 as u64 }>,
    reset_keepalive: Number<32, { csr::KEEPALIVE::RESET.0 as u64 }>,
    at_control: Number<5, { word(csr::CONTROL::OFFSET) }>,
    at_base_lo: Number<5, { word(csr::ADMIN_BASE_LO::OFFSET) }>,
    at_base_hi: Number<5, { word(csr::ADMIN_BASE_HI::OFFSET) }>,
    at_size: Number<5, { word(csr::ADMIN_SIZE::OFFSET) }>,
    at_tail: Number<5, { word(csr::ADMIN_TAIL::OFFSET) }>,
    at_node: Number<5, { word(csr::NODE::OFFSET) }>,
    at_pcie: Number<5, { word(csr::PCIE::OFFSET) }>,
    at_requester: Number<5, { word(csr::REQUESTER::OFFSET) }>,
    at_read_timeout: Number<5, { word(csr::READ_TIMEOUT::OFFSET) }>,
    at_ack_delay: Number<5, { word(csr::ACK_DELAY::OFFSET) }>,
    at_retry_timeout: Number<5, { word(csr::RETRY_TIMEOUT::OFFSET) }>,
    at_retry_limit: Number<5, { word(csr::RETRY_LIMIT::OFFSET) }>,
    at_keepalive: Number<5, { word(csr::KEEPALIVE::OFFSET) }>,
    at_moderation: Number<5, { word(csr::MODERATION::OFFSET) }>,
    at_error_queue: Number<5, { word(csr::ERROR_QUEUE::OFFSET) }>,
    at_sample: Number<5, { word(csr::SAMPLE::OFFSET) }>,
}

impl Logic for Bank {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            word,
            row,
            r_enable,
            r_base_lo,
            r_base_hi,
            r_log2,
            r_tail,
            r_node,
            r_max_payload,
            r_max_read,
            r_requester,
            r_read_timeout,
            r_ack_delay,
            r_retry_timeout,
            r_retry_limit,
            r_keepalive,
            r_moderation,
            r_error_queue,
            r_error_valid,
            r_sample_vi,
            r_sample_armed
        );
        clock!(self, clock, row0, row1, row2, row3);
        self.row0.index.next = self.index.val().get_bits::<3>(0);
        self.row1.index.next = self.index.val().get_bits::<3>(0);
        self.row2.index.next = self.index.val().get_bits::<3>(0);
        self.row3.index.next = self.index.val().get_bits::<3>(0);

        // 0x00 to 0x1c.
        self.row0.in0.next = self.id.val();
        self.row0.in1.next = self.caps0.val();
        self.row0.in2.next = self.caps1.val();
        self.row0.in3.next = self.caps2.val();
        self.row0.in4.next = self.caps3.val();
        self.row0.in5.next = self.khz.val();
        self.row0.in6.next = bit_cast::<32, 1>(self.r_enable.q.val().into());
        self.row0.in7.next = bit_cast::<32, 5>(self.status.val());
        // 0x20 to 0x3c.
        self.row1.in0.next = self.r_base_lo.q.val();
        self.row1.in1.next = self.r_base_hi.q.val();
        self.row1.in2.next = bit_cast::<32, 4>(self.r_log2.q.val());
        self.row1.in3.next = bit_cast::<32, 16>(self.r_tail.q.val());
        self.row1.in4.next = bit_cast::<32, 16>(self.admin_head.val());
        self.row1.in5.next = bit_cast::<32, 8>(self.r_node.q.val());
        self.row1.in6.next = bit_cast::<32, 3>(self.r_max_payload.q.val())
            | (bit_cast::<32, 3>(self.r_max_read.q.val()) << 4);
        self.row1.in7.next = bit_cast::<32, 16>(self.r_requester.q.val());
        // 0x40 to 0x5c.
        self.row2.in0.next = self.r_read_timeout.q.val();
        self.row2.in1.next = self.r_ack_delay.q.val();
        self.row2.in2.next = bit_cast::<32, 24>(self.r_retry_timeout.q.val());
        self.row2.in3.next = bit_cast::<32, 4>(self.r_retry_limit.q.val());
        self.row2.in4.next = self.r_keepalive.q.val();
        self.row2.in5.next = self.cycles_low.val();
        self.row2.in6.next = self.cycles_high.val();
        self.row2.in7.next = bit_cast::<32, 16>(self.r_error_queue.q.val())
            | (bit_cast::<32, 1>(self.r_error_valid.q.val().into()) << 31);
        // 0x60 to 0x7c.
        self.row3.in0.next = bit_cast::<32, 16>(self.error_level.val())
            | (bit_cast::<32, 16>(self.error_lost.val()) << 16);
        self.row3.in1.next = self.error_record.val().get_bits::<32>(0);
        self.row3.in2.next = self.error_record.val().get_bits::<32>(32);
        self.row3.in3.next = 0.into();
        self.row3.in4.next = bit_cast::<32, 16>(self.r_sample_vi.q.val())
            | (bit_cast::<32, 1>(self.r_sample_armed.q.val().into()) << 31);
        self.row3.in5.next = bit_cast::<32, 9>(self.sampled.val());
        self.row3.in6.next = bit_cast::<32, 24>(self.r_moderation.q.val());
        self.row3.in7.next = 0.into();
        self.row.d.next = self.index.val().get_bits::<2>(3);
        self.chosen.next = self.row0.out.val();
        if self.row.q.val() == 1 {
            self.chosen.next = self.row1.out.val();
        } else if self.row.q.val() == 2 {
            self.chosen.next = self.row2.out.val();
        } else if self.row.q.val() == 3 {
            self.chosen.next = self.row3.out.val();
        }
        self.word.d.next = self.chosen.val();
        self.value.next = self.word.q.val();

        if self.write.val() {
            if self.index.val() == self.at_control.val() {
                self.r_enable.d.next = self.wdata.val().get_bit(0);
            } else if self.index.val() == self.at_base_lo.val() {
                self.r_base_lo.d.next = self.wdata.val();
            } else if self.index.val() == self.at_base_hi.val() {
                self.r_base_hi.d.next = self.wdata.val();
            } else if self.index.val() == self.at_size.val() {
                self.r_log2.d.next = self.wdata.val().get_bits::<4>(0);
            } else if self.index.val() == self.at_tail.val() {
                self.r_tail.d.next = self.wdata.val().get_bits::<16>(0);
            } else if self.index.val() == self.at_node.val() {
                self.r_node.d.next = self.wdata.val().get_bits::<8>(0);
            } else if self.index.val() == self.at_pcie.val() {
                self.r_max_payload.d.next = self.wdata.val().get_bits::<3>(0);
                self.r_max_read.d.next = self.wdata.val().get_bits::<3>(4);
            } else if self.index.val() == self.at_requester.val() {
                self.r_requester.d.next = self.wdata.val().get_bits::<16>(0);
            } else if self.index.val() == self.at_read_timeout.val() {
                self.r_read_timeout.d.next = self.wdata.val();
            } else if self.index.val() == self.at_ack_delay.val() {
                self.r_ack_delay.d.next = self.wdata.val();
            } else if self.index.val() == self.at_retry_timeout.val() {
                self.r_retry_timeout.d.next = self.wdata.val().get_bits::<24>(0);
            } else if self.index.val() == self.at_retry_limit.val() {
                self.r_retry_limit.d.next = self.wdata.val().get_bits::<4>(0);
            } else if self.index.val() == self.at_keepalive.val() {
                self.r_keepalive.d.next = self.wdata.val();
            } else if self.index.val() == self.at_moderation.val() {
                self.r_moderation.d.next = self.wdata.val().get_bits::<24>(0);
            } else if self.index.val() == self.at_error_queue.val() {
                self.r_error_queue.d.next = self.wdata.val().get_bits::<16>(0);
                self.r_error_valid.d.next = self.wdata.val().get_bit(31);
            } else if self.index.val() == self.at_sample.val() {
                self.r_sample_vi.d.next = self.wdata.val().get_bits::<16>(0);
                self.r_sample_armed.d.next = self.wdata.val().get_bit(31);
            }
        }

        self.enable.next = self.r_enable.q.val();
        self.admin_base.next = (bit_cast::<64, 32>(self.r_base_hi.q.val()) << 32)
            | bit_cast::<64, 32>(self.r_base_lo.q.val());
        self.admin_log2.next = self.r_log2.q.val();
        self.admin_tail.next = self.r_tail.q.val();
        self.node.next = self.r_node.q.val();
        self.max_payload.next = self.r_max_payload.q.val();
        self.max_read.next = self.r_max_read.q.val();
        self.requester.next = self.r_requester.q.val();
        self.read_timeout.next = self.r_read_timeout.q.val();
        self.ack_delay.next = self.r_ack_delay.q.val();
        self.retry_timeout.next = self.r_retry_timeout.q.val();
        self.retry_limit.next = self.r_retry_limit.q.val();
        self.keepalive.next = self.r_keepalive.q.val();
        self.moderation.next = self.r_moderation.q.val();
        self.error_queue.next = self.r_error_queue.q.val();
        self.error_queue_valid.next = self.r_error_valid.q.val();
        self.sample_vi.next = self.r_sample_vi.q.val();
        self.sample_armed.next = self.r_sample_armed.q.val();
        if self.reset.val() {
            self.r_enable.d.next = false;
            self.r_base_lo.d.next = 0.into();
            self.r_base_hi.d.next = 0.into();
            self.r_log2.d.next = 0.into();
            self.r_tail.d.next = 0.into();
            self.r_node.d.next = 0.into();
            self.r_max_payload.d.next = self.reset_payload.val();
            self.r_max_read.d.next = self.reset_read.val();
            self.r_requester.d.next = 0.into();
            self.r_read_timeout.d.next = self.reset_read_timeout.val();
            self.r_ack_delay.d.next = self.reset_ack_delay.val();
            self.r_retry_timeout.d.next = self.reset_retry_timeout.val();
            self.r_retry_limit.d.next = self.reset_retry_limit.val();
            self.r_keepalive.d.next = self.reset_keepalive.val();
            self.r_moderation.d.next = 0.into();
            self.r_error_queue.d.next = 0.into();
            self.r_error_valid.d.next = false;
            self.r_sample_vi.d.next = 0.into();
            self.r_sample_armed.d.next = false;
        }
    }
}
