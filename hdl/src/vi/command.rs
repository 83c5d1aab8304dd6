//! Admin's operations on VIs (contract 1.4): their order behind announcements, their checks, their
//! answers.
//!
//! Completions that wait to be reported when a call comes are reported first (`waiting` entries
//! are counted down), and a VI whose announcement is under way is left alone until that has ended:
//! nothing completed before a ViDisconnect is lost to it, except what a full queue has deferred.

use crate::ifs::ViAdminServer;
use crate::leaf::Number;
use nic_regs::admin::AdminStatus;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Commands {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub admin: ViAdminServer,
    /// An operation on `vi` wants the pipeline / was taken over / is in stage 2.
    pub request: Signal<Out, Bit>,
    pub vi: Signal<Out, Bits<10>>,
    pub loaded: Signal<In, Bit>,
    pub at: Signal<In, Bit>,
    /// An operation that may have something to report is on its way.
    pub settling: Signal<In, Bit>,
    // From the completion writer.
    pub waiting: Signal<In, Bits<6>>,
    pub served: Signal<In, Bit>,
    pub announcing: Signal<In, Bit>,
    pub announcing_vi: Signal<In, Bits<10>>,
    // The VI in stage 2.
    pub state: Signal<In, Bits<2>>,
    pub control_pending: Signal<In, Bit>,
    pub stop_reason: Signal<In, Bits<8>>,
    pub sending: Signal<In, Bit>,
    pub receiving: Signal<In, Bit>,
    pub create: Signal<Out, Bit>,
    pub destroy: Signal<Out, Bit>,
    pub connect: Signal<Out, Bit>,
    pub disconnect: Signal<Out, Bit>,
    /// The configuration of ViCreate and of ViConnect, as in [`super::lifecycle`].
    pub new_config: Signal<Out, Bits<64>>,
    pub new_connection: Signal<Out, Bits<40>>,
    seen: DFF<Bit>,
    wait_count: DFF<Bits<6>>,
    busy: DFF<Bit>,
    same_vi: DFF<Bit>,
    op: Signal<Local, Bits<8>>,
    is_free: Signal<Local, Bit>,
    is_idle: Signal<Local, Bit>,
    needs_idle: Signal<Local, Bit>,
    send_queue: Signal<Local, Bits<9>>,
    recv_queue: Signal<Local, Bits<9>>,
    reason: Signal<Local, Bits<8>>,
    result: Signal<Local, Bits<32>>,
    /// Shifted left by an operation's number: one-hot.
    one: Number<8, 1>,
    bad_state: Number<4, { AdminStatus::BadState as u64 }>,
    still_busy: Number<4, { AdminStatus::Busy as u64 }>,
}

impl Logic for Commands {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, seen, wait_count, busy, same_vi);
        self.vi.next = self.admin.vi.val().get_bits::<10>(0);
        self.request.next = self.admin.valid.val()
            & self.seen.q.val()
            & (!self.busy.q.val())
            & (!self.wait_count.q.val().any())
            & (!(self.announcing.val() & self.same_vi.q.val()));
        // A cycle old: in the first cycle of an announcement the operation may still go before it.
        self.same_vi.d.next = self.announcing_vi.val() == self.admin.vi.val().get_bits::<10>(0);
        if self.admin.valid.val() & (!self.seen.q.val()) & (!self.settling.val()) {
            self.seen.d.next = true;
            self.wait_count.d.next = self.waiting.val();
        } else if self.served.val() & self.wait_count.q.val().any() {
            self.wait_count.d.next = self.wait_count.q.val() - 1;
        }
        if self.loaded.val() {
            self.busy.d.next = true;
        }

        self.op.next = 0.into();
        if self.at.val() {
            self.op.next = self.one.val() << self.admin.op.val();
            self.busy.d.next = false;
            self.seen.d.next = false;
        }
        self.is_free.next = !self.state.val().any();
        self.is_idle.next = (!self.state.val().get_bit(1)) & self.state.val().get_bit(0);
        self.needs_idle.next = self.op.val().get_bit(1) | self.op.val().get_bit(2);
        self.create.next = self.op.val().get_bit(0) & self.is_free.val();
        self.destroy.next =
            self.op.val().get_bit(1) & self.is_idle.val() & (!self.control_pending.val());
        self.connect.next =
            self.op.val().get_bit(2) & self.is_idle.val() & (!self.control_pending.val());
        self.disconnect.next = self.op.val().get_bit(3) & (!self.is_free.val());

        self.send_queue.next = bit_cast::<9, 8>(self.admin.send_queue.val().get_bits::<8>(0))
            | (bit_cast::<9, 1>(self.admin.send_queue.val().get_bits::<8>(8).any().into()) << 8);
        self.recv_queue.next = bit_cast::<9, 8>(self.admin.recv_queue.val().get_bits::<8>(0))
            | (bit_cast::<9, 1>(self.admin.recv_queue.val().get_bits::<8>(8).any().into()) << 8);
        self.new_config.next = bit_cast::<64, 6>(self.admin.domain.val().get_bits::<6>(0))
            | (bit_cast::<64, 3>(self.admin.reliability.val()) << 6)
            | (bit_cast::<64, 16>(self.admin.tag.val()) << 9)
            | (bit_cast::<64, 9>(self.send_queue.val()) << 25)
            | (bit_cast::<64, 9>(self.recv_queue.val()) << 34)
            | (bit_cast::<64, 19>(self.admin.max_transfer.val().get_bits::<19>(0)) << 43)
            | (bit_cast::<64, 2>(self.admin.allows.val()) << 62);
        self.new_connection.next = bit_cast::<40, 6>(self.admin.peer.val().get_bits::<6>(0))
            | (bit_cast::<40, 16>(self.admin.peer_vi.val()) << 6)
            | (bit_cast::<40, 16>(self.admin.connection.val()) << 22)
            | (bit_cast::<40, 2>(self.admin.allows.val()) << 38);

        self.admin.done.next = self.at.val();
        self.admin.status.next = 0.into();
        if (self.op.val().get_bit(0) & (!self.is_free.val()))
            | (self.needs_idle.val() & (!self.is_idle.val()))
            | (self.op.val().get_bit(3) & self.is_free.val())
        {
            self.admin.status.next = self.bad_state.val();
        } else if self.needs_idle.val() & self.control_pending.val() {
            self.admin.status.next = self.still_busy.val();
        }
        // A stop reason is shown only in Error.
        self.reason.next = 0.into();
        if self.state.val().get_bit(1) & self.state.val().get_bit(0) {
            self.reason.next = self.stop_reason.val();
        }
        self.result.next = bit_cast::<32, 2>(self.state.val())
            | (bit_cast::<32, 8>(self.reason.val()) << 4)
            | (bit_cast::<32, 1>((self.sending.val() | self.control_pending.val()).into()) << 12)
            | (bit_cast::<32, 1>(self.receiving.val().into()) << 13);
        self.admin.result.next = 0.into();
        if self.op.val().get_bit(4) & (!self.is_free.val()) {
            self.admin.result.next = self.result.val();
        }
        if self.reset.val() {
            self.seen.d.next = false;
            self.busy.d.next = false;
        }
    }
}
