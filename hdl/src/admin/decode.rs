//! What a command is: the owner of its object, the checks that need no owner (contract 1.4), and
//! whether it is fenced.
//!
//! One cycle: `take` registers everything; a region's sums are registered in each cycle and so are
//! valid with the flags.

use crate::leaf::Number;
use nic_regs::admin::{NO_QUEUE, Opcode};
use nic_regs::limits;
use nic_regs::vi::Reliability;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Decoder {
    pub clock: Signal<In, Clock>,
    // The entry, two dwords each; stable.
    pub quad0: Signal<In, Bits<64>>,
    pub quad2: Signal<In, Bits<64>>,
    pub quad3: Signal<In, Bits<64>>,
    pub quad4: Signal<In, Bits<64>>,
    pub quad5: Signal<In, Bits<64>>,
    pub take: Signal<In, Bit>,
    /// One-hot: 0 region table, 1 VIs, 2 event queues, 3 peers, 4 message to send; none: no call.
    pub owner: Signal<Out, Bits<5>>,
    pub bad_opcode: Signal<Out, Bit>,
    pub bad_index: Signal<Out, Bit>,
    pub bad_argument: Signal<Out, Bit>,
    pub fenced: Signal<Out, Bit>,
    owner_now: DFF<Bits<5>>,
    opcode_flag: DFF<Bit>,
    index_flag: DFF<Bit>,
    argument_flag: DFF<Bit>,
    fence_flag: DFF<Bit>,
    /// The region's last byte, with the carry.
    va_sum: DFF<Bits<65>>,
    bus_sum: DFF<Bits<65>>,
    opcode: Signal<Local, Bits<32>>,
    index: Signal<Local, Bits<32>>,
    node: Signal<Local, Bits<8>>,
    message_domain: Signal<Local, Bits<8>>,
    word4: Signal<Local, Bits<32>>,
    word5: Signal<Local, Bits<32>>,
    word6: Signal<Local, Bits<32>>,
    word8: Signal<Local, Bits<32>>,
    word9: Signal<Local, Bits<32>>,
    word10: Signal<Local, Bits<32>>,
    length_less_one: Signal<Local, Bits<32>>,
    region_bad: Signal<Local, Bit>,
    wraps: Signal<Local, Bit>,
    pages_differ: Signal<Local, Bit>,
    reliability_bad: Signal<Local, Bit>,
    queue_bad: Signal<Local, Bit>,
    queue_bad_send: Signal<Local, Bit>,
    queue_bad_recv: Signal<Local, Bit>,
    vi_bad: Signal<Local, Bit>,
    event_bad: Signal<Local, Bit>,
    credits_bad: Signal<Local, Bit>,
    owner_tpt: Number<5, 1>,
    owner_vi: Number<5, 2>,
    owner_event_queue: Number<5, 4>,
    owner_peer: Number<5, 8>,
    owner_message: Number<5, 16>,
    op_region_set: Number<32, { Opcode::RegionSet as u64 }>,
    op_region_clear: Number<32, { Opcode::RegionClear as u64 }>,
    op_vi_create: Number<32, { Opcode::ViCreate as u64 }>,
    op_vi_destroy: Number<32, { Opcode::ViDestroy as u64 }>,
    op_vi_connect: Number<32, { Opcode::ViConnect as u64 }>,
    op_vi_disconnect: Number<32, { Opcode::ViDisconnect as u64 }>,
    op_vi_query: Number<32, { Opcode::ViQuery as u64 }>,
    op_event_create: Number<32, { Opcode::EventCreate as u64 }>,
    op_event_destroy: Number<32, { Opcode::EventDestroy as u64 }>,
    op_peer_open: Number<32, { Opcode::PeerOpen as u64 }>,
    op_peer_close: Number<32, { Opcode::PeerClose as u64 }>,
    op_peer_query: Number<32, { Opcode::PeerQuery as u64 }>,
    op_message_send: Number<32, { Opcode::MessageSend as u64 }>,
    op_message_queue: Number<32, { Opcode::MessageQueue as u64 }>,
    opcodes: Number<32, { Opcode::MessageQueue as u64 + 1 }>,
    regions: Number<32, { limits::REGION_COUNT as u64 }>,
    vi_count: Number<32, { limits::VI_COUNT as u64 }>,
    event_queues: Number<32, { limits::EVENT_QUEUE_COUNT as u64 }>,
    event_queues_16: Number<16, { limits::EVENT_QUEUE_COUNT as u64 }>,
    peers: Number<32, { limits::PEER_COUNT as u64 }>,
    peers_8: Number<8, { limits::PEER_COUNT as u64 }>,
    domains: Number<32, { limits::DOMAIN_COUNT as u64 }>,
    domains_8: Number<8, { limits::DOMAIN_COUNT as u64 }>,
    vectors: Number<8, { limits::MSIX_VECTOR_COUNT as u64 }>,
    credits_max: Number<8, { limits::CREDITS_MAX as u64 }>,
    max_transfer: Number<32, { limits::MAX_TRANSFER_BYTES as u64 }>,
    no_queue: Number<16, { NO_QUEUE as u64 }>,
    level_unreliable: Number<8, { Reliability::Unreliable as u64 }>,
    level_delivery: Number<8, { Reliability::Delivery as u64 }>,
    level_reception: Number<8, { Reliability::Reception as u64 }>,
}

impl Logic for Decoder {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            owner_now,
            opcode_flag,
            index_flag,
            argument_flag,
            fence_flag,
            va_sum,
            bus_sum
        );
        self.opcode.next = self.quad0.val().get_bits::<32>(0);
        self.index.next = self.quad0.val().get_bits::<32>(32);
        self.node.next = self.quad0.val().get_bits::<8>(32);
        self.message_domain.next = self.quad0.val().get_bits::<8>(40);
        self.word4.next = self.quad2.val().get_bits::<32>(0);
        self.word5.next = self.quad2.val().get_bits::<32>(32);
        self.word6.next = self.quad3.val().get_bits::<32>(0);
        self.word8.next = self.quad4.val().get_bits::<32>(0);
        self.word9.next = self.quad4.val().get_bits::<32>(32);
        self.word10.next = self.quad5.val().get_bits::<32>(0);

        // RegionSet.
        self.length_less_one.next = self.word8.val() - 1;
        self.va_sum.d.next =
            bit_cast::<65, 64>(self.quad2.val()) + bit_cast::<65, 32>(self.length_less_one.val());
        self.bus_sum.d.next =
            bit_cast::<65, 64>(self.quad3.val()) + bit_cast::<65, 32>(self.length_less_one.val());
        self.wraps.next = self.va_sum.q.val().get_bit(64) | self.bus_sum.q.val().get_bit(64);
        self.pages_differ.next =
            self.quad2.val().get_bits::<12>(0) != self.quad3.val().get_bits::<12>(0);
        self.region_bad.next = (self.word8.val() == 0)
            | (!self.word10.val().get_bit(8))
            | (self.word10.val().get_bits::<5>(11) != 0)
            | (self.word10.val().get_bits::<8>(0) >= self.domains_8.val())
            | (self.word9.val().get_bits::<16>(16) == 0)
            | self.pages_differ.val();

        // ViCreate.
        self.reliability_bad.next = (self.word4.val().get_bits::<8>(8)
            != self.level_unreliable.val())
            & (self.word4.val().get_bits::<8>(8) != self.level_delivery.val())
            & (self.word4.val().get_bits::<8>(8) != self.level_reception.val());
        self.queue_bad_send.next = (self.word5.val().get_bits::<16>(0)
            >= self.event_queues_16.val())
            & (self.word5.val().get_bits::<16>(0) != self.no_queue.val());
        self.queue_bad_recv.next = (self.word5.val().get_bits::<16>(16)
            >= self.event_queues_16.val())
            & (self.word5.val().get_bits::<16>(16) != self.no_queue.val());
        self.vi_bad.next = (self.word4.val().get_bits::<8>(0) >= self.domains_8.val())
            | self.reliability_bad.val()
            | self.queue_bad_send.val()
            | self.queue_bad_recv.val()
            | (self.word6.val() == 0)
            | (self.word6.val() > self.max_transfer.val());

        // EventCreate, PeerOpen, MessageQueue.
        self.event_bad.next = (self.word6.val().get_bits::<3>(1) == 0)
            | (self.word6.val().get_bits::<8>(8) >= self.domains_8.val())
            | (self.word6.val().get_bits::<8>(16) >= self.vectors.val())
            | (self.word4.val().get_bits::<6>(0) != 0);
        self.credits_bad.next = (self.word5.val().get_bits::<8>(0) == 0)
            | (self.word5.val().get_bits::<8>(0) > self.credits_max.val());
        self.queue_bad.next = (self.word4.val().get_bits::<16>(0) >= self.event_queues_16.val())
            & (self.word4.val().get_bits::<16>(0) != self.no_queue.val());

        self.owner.next = self.owner_now.q.val();
        self.bad_opcode.next = self.opcode_flag.q.val();
        self.bad_index.next = self.index_flag.q.val();
        self.bad_argument.next = self.argument_flag.q.val()
            | (self.wraps.val() & (self.opcode.val() == self.op_region_set.val()));
        self.fenced.next = self.fence_flag.q.val();
        if self.take.val() {
            self.opcode_flag.d.next = self.opcode.val() >= self.opcodes.val();
            self.index_flag.d.next = false;
            self.argument_flag.d.next = false;
            self.fence_flag.d.next = false;
            self.owner_now.d.next = 0.into();
            if (self.opcode.val() == self.op_region_set.val())
                | (self.opcode.val() == self.op_region_clear.val())
            {
                self.owner_now.d.next = self.owner_tpt.val();
                self.index_flag.d.next = self.index.val() >= self.regions.val();
                self.argument_flag.d.next =
                    (self.opcode.val() == self.op_region_set.val()) & self.region_bad.val();
                self.fence_flag.d.next = self.opcode.val() == self.op_region_clear.val();
            } else if (self.opcode.val() == self.op_vi_create.val())
                | (self.opcode.val() == self.op_vi_query.val())
            {
                self.owner_now.d.next = self.owner_vi.val();
                self.index_flag.d.next = self.index.val() >= self.vi_count.val();
                self.argument_flag.d.next =
                    (self.opcode.val() == self.op_vi_create.val()) & self.vi_bad.val();
            } else if (self.opcode.val() == self.op_vi_destroy.val())
                | (self.opcode.val() == self.op_vi_disconnect.val())
            {
                self.owner_now.d.next = self.owner_vi.val();
                self.index_flag.d.next = self.index.val() >= self.vi_count.val();
                self.fence_flag.d.next = true;
            } else if self.opcode.val() == self.op_vi_connect.val() {
                self.owner_now.d.next = self.owner_vi.val();
                self.index_flag.d.next = self.index.val() >= self.vi_count.val();
                self.argument_flag.d.next = self.word4.val().get_bits::<8>(0) >= self.peers_8.val();
            } else if (self.opcode.val() == self.op_event_create.val())
                | (self.opcode.val() == self.op_event_destroy.val())
            {
                self.owner_now.d.next = self.owner_event_queue.val();
                self.index_flag.d.next = self.index.val() >= self.event_queues.val();
                self.argument_flag.d.next =
                    (self.opcode.val() == self.op_event_create.val()) & self.event_bad.val();
            } else if (self.opcode.val() == self.op_peer_open.val())
                | (self.opcode.val() == self.op_peer_close.val())
                | (self.opcode.val() == self.op_peer_query.val())
            {
                self.owner_now.d.next = self.owner_peer.val();
                self.index_flag.d.next = self.index.val() >= self.peers.val();
                self.argument_flag.d.next =
                    (self.opcode.val() == self.op_peer_open.val()) & self.credits_bad.val();
            } else if self.opcode.val() == self.op_message_send.val() {
                self.owner_now.d.next = self.owner_message.val();
                self.index_flag.d.next = (self.node.val() >= self.peers_8.val())
                    | (self.message_domain.val() >= self.domains_8.val());
            } else if self.opcode.val() == self.op_message_queue.val() {
                self.owner_now.d.next = self.owner_event_queue.val();
                self.index_flag.d.next = self.index.val() >= self.domains.val();
                self.argument_flag.d.next = self.queue_bad.val();
            }
        }
    }
}
