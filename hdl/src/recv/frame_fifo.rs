//! The frames that the engine was given: up to nine are taken out of staging, the oldest is worked
//! on, and the VIs of the others are known before their turn.
//!
//! ```text
//! staging ==> +-----------+ ==> the oldest frame (`valid`, header, place of its payload)
//!             | FrameFifo | --> the VI of a frame that waits (`peek`)
//!    give --> +-----------+ --> take
//! ```
//! The oldest frame is in registers, and so is what its type is: all of the engine hangs on them.

use crate::leaf::{Fifo, Number};
use nic_regs::frame::Type;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct FrameFifo {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    // Staging.
    pub offered: Signal<In, Bit>,
    pub offered0: Signal<In, Bits<64>>,
    pub offered1: Signal<In, Bits<64>>,
    pub offered2: Signal<In, Bits<64>>,
    pub offered_base: Signal<In, Bits<12>>,
    pub take: Signal<Out, Bit>,
    // The oldest frame, stable until `give` (pulse).
    pub give: Signal<In, Bit>,
    pub valid: Signal<Out, Bit>,
    pub header0: Signal<Out, Bits<64>>,
    pub header1: Signal<Out, Bits<64>>,
    pub header2: Signal<Out, Bits<64>>,
    /// Its type: Data 0, RdmaWrite 1, ReadRequest 2, ReadResponse 3, Message 4, ViAck 5, ViRefuse 6,
    /// Fin 7.
    pub kinds: Signal<Out, Bits<8>>,
    pub base: Signal<Out, Bits<12>>,
    /// Its VI's number has stood for long enough that the descriptor cache's answer is about it.
    pub aged: Signal<Out, Bit>,
    /// The one behind it is here, and needs neither its RDMA header nor to be alone.
    pub follows: Signal<Out, Bit>,
    /// A Data frame that is not the oldest is for this VI; `peeked` (pulse) goes on to the next one.
    pub peek: Signal<Out, Bit>,
    pub peek_vi: Signal<Out, Bits<10>>,
    pub peeked: Signal<In, Bit>,
    // The oldest frame.
    front_valid: DFF<Bit>,
    front0: DFF<Bits<64>>,
    front1: DFF<Bits<64>>,
    front2: DFF<Bits<64>>,
    front_kinds: DFF<Bits<8>>,
    front_base: DFF<Bits<12>>,
    age: DFF<Bits<4>>,
    // Those behind it.
    headers0: Fifo<64, 3>,
    headers1: Fifo<64, 3>,
    headers2: Fifo<64, 3>,
    // Types, and bases 19:8.
    bases: Fifo<20, 3>,
    // Of the frames in flight that were not looked at: VI 9:0, Data 10.
    peeks: Fifo<11, 3>,
    taken: Signal<Local, Bit>,
    /// The front takes the next frame at this edge.
    free: Signal<Local, Bit>,
    behind: Signal<Local, Bit>,
    stored: Signal<Local, Bit>,
    moved: Signal<Local, Bit>,
    held: Signal<Local, Bits<16>>,
    is_data: Signal<Local, Bit>,
    /// The first one that was not looked at is the oldest, or gone: as of a cycle ago, so a hint may
    /// come though its frame has just become the oldest.
    late: DFF<Bit>,
    /// It is a Data frame's, and has been there for a cycle.
    known: DFF<Bit>,
    passes: Signal<Local, Bit>,
    kind: Signal<Local, Bits<8>>,
    kinds_offered: Signal<Local, Bits<8>>,
    plain: Signal<Local, Bits<8>>,
    young: Number<4, 1>,
    plain_kinds: Number<8, 0xe1>,
    kind_data: Number<8, { Type::Data as u64 }>,
    kind_write: Number<8, { Type::RdmaWrite as u64 }>,
    kind_request: Number<8, { Type::ReadRequest as u64 }>,
    kind_response: Number<8, { Type::ReadResponse as u64 }>,
    kind_message: Number<8, { Type::Message as u64 }>,
    kind_ack: Number<8, { Type::ViAck as u64 }>,
    kind_refuse: Number<8, { Type::ViRefuse as u64 }>,
    kind_fin: Number<8, { Type::Fin as u64 }>,
}

impl Logic for FrameFifo {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, front_valid, front0, front1, front2, front_base, front_kinds);
        dff_setup!(self, clock, late, known, age);
        clock!(self, clock, headers0, headers1, headers2, bases, peeks);
        self.headers0.reset.next = self.reset.val();
        self.headers1.reset.next = self.reset.val();
        self.headers2.reset.next = self.reset.val();
        self.bases.reset.next = self.reset.val();
        self.peeks.reset.next = self.reset.val();
        self.free.next = self.give.val() | (!self.front_valid.q.val());
        self.behind.next = !self.headers0.empty.val();
        self.taken.next =
            self.offered.val() & (!self.headers0.full.val()) & (!self.peeks.full.val());
        self.take.next = self.taken.val();
        // Without a frame in front there is none behind it.
        self.stored.next = self.taken.val()
            & (self.behind.val() | (self.front_valid.q.val() & (!self.give.val())));
        self.headers0.write.next = self.stored.val();
        self.headers1.write.next = self.stored.val();
        self.headers2.write.next = self.stored.val();
        self.bases.write.next = self.stored.val();
        self.headers0.data_in.next = self.offered0.val();
        self.headers1.data_in.next = self.offered1.val();
        self.headers2.data_in.next = self.offered2.val();
        self.kind.next = self.offered0.val().get_bits::<8>(8);
        self.is_data.next = self.kind.val() == self.kind_data.val();
        self.kinds_offered.next = bit_cast::<8, 1>(self.is_data.val().into())
            | (bit_cast::<8, 1>((self.kind.val() == self.kind_write.val()).into()) << 1)
            | (bit_cast::<8, 1>((self.kind.val() == self.kind_request.val()).into()) << 2)
            | (bit_cast::<8, 1>((self.kind.val() == self.kind_response.val()).into()) << 3)
            | (bit_cast::<8, 1>((self.kind.val() == self.kind_message.val()).into()) << 4)
            | (bit_cast::<8, 1>((self.kind.val() == self.kind_ack.val()).into()) << 5)
            | (bit_cast::<8, 1>((self.kind.val() == self.kind_refuse.val()).into()) << 6)
            | (bit_cast::<8, 1>((self.kind.val() == self.kind_fin.val()).into()) << 7);
        self.bases.data_in.next = bit_cast::<20, 8>(self.kinds_offered.val())
            | (bit_cast::<20, 12>(self.offered_base.val()) << 8);
        self.plain.next = self.bases.data_out.val().get_bits::<8>(0) & self.plain_kinds.val();
        self.follows.next = self.behind.val() & self.plain.val().any();
        self.moved.next = self.give.val() & self.behind.val();
        self.headers0.read.next = self.moved.val();
        self.headers1.read.next = self.moved.val();
        self.headers2.read.next = self.moved.val();
        self.bases.read.next = self.moved.val();

        self.aged.next = self.age.q.val().get_bit(3);
        self.age.d.next = (self.age.q.val() << 1) | self.young.val();
        if self.free.val() {
            self.age.d.next = 0.into();
            self.front_valid.d.next = self.behind.val() | self.taken.val();
            self.front0.d.next = self.offered0.val();
            self.front1.d.next = self.offered1.val();
            self.front2.d.next = self.offered2.val();
            self.front_base.d.next = self.offered_base.val();
            self.front_kinds.d.next = self.kinds_offered.val();
            if self.behind.val() {
                self.front0.d.next = self.headers0.data_out.val();
                self.front1.d.next = self.headers1.data_out.val();
                self.front2.d.next = self.headers2.data_out.val();
                self.front_base.d.next = self.bases.data_out.val().get_bits::<12>(8);
                self.front_kinds.d.next = self.bases.data_out.val().get_bits::<8>(0);
            }
        }
        self.valid.next = self.front_valid.q.val();
        self.header0.next = self.front0.q.val();
        self.header1.next = self.front1.q.val();
        self.header2.next = self.front2.q.val();
        self.base.next = self.front_base.q.val();
        self.kinds.next = self.front_kinds.q.val();

        // The oldest one needs no look: it asks itself.
        self.peeks.write.next = self.taken.val();
        self.peeks.data_in.next = bit_cast::<11, 10>(self.offered1.val().get_bits::<10>(0))
            | (bit_cast::<11, 1>(
                (self.is_data.val() & (!self.offered1.val().get_bits::<6>(10).any())).into(),
            ) << 10);
        self.held.next =
            self.headers0.level.val() + bit_cast::<16, 1>(self.front_valid.q.val().into());
        self.passes.next = (!self.peeks.empty.val())
            & (self.peeked.val() | self.late.q.val() | (!self.peeks.data_out.val().get_bit(10)));
        self.known.d.next = (!self.peeks.empty.val())
            & (!self.passes.val())
            & self.peeks.data_out.val().get_bit(10);
        self.late.d.next = (self.peeks.level.val() >= self.held.val()) & (!self.passes.val());
        self.peek.next = self.known.q.val() & (!self.late.q.val());
        self.peek_vi.next = self.peeks.data_out.val().get_bits::<10>(0);
        self.peeks.read.next = self.passes.val();
        if self.reset.val() {
            self.late.d.next = false;
            self.known.d.next = false;
            self.front_valid.d.next = false;
        }
    }
}
