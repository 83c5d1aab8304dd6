//! A peer is down (contract 6.1, 7.7): one operation for every VI stops those that are connected to
//! it. A kill is over when its ViErrors were handed to the event block: PeerDown follows them.

use crate::ifs::KillServer;
use crate::leaf::Number;
use nic_regs::desc::status;
use nic_regs::limits::VI_COUNT;
use nic_regs::vi::StopReason;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Kills {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub port: KillServer,
    /// The completion writer has room for the ViErrors.
    pub room: Signal<In, Bit>,
    /// An operation on `vi` wants the pipeline / was taken over / is in stage 2, on `at_vi`, whose
    /// peer is `peer`.
    pub request: Signal<Out, Bit>,
    pub vi: Signal<Out, Bits<10>>,
    pub loaded: Signal<In, Bit>,
    pub at: Signal<In, Bit>,
    pub at_vi: Signal<In, Bits<10>>,
    pub peer: Signal<In, Bits<6>>,
    /// The VI stops if it is Connected; `stop_word` as in [`super::lifecycle`].
    pub stops: Signal<Out, Bit>,
    pub stop_word: Signal<Out, Bits<37>>,
    // From the completion writer.
    pub waiting: Signal<In, Bits<6>>,
    pub served: Signal<In, Bit>,
    scan_at: DFF<Bits<11>>,
    /// Announcements to be made before the kill is over.
    ends: DFF<Bit>,
    wait_count: DFF<Bits<6>>,
    peer8: Signal<Local, Bits<8>>,
    last_vi: Number<10, { VI_COUNT as u64 - 1 }>,
    peer_down: Number<37, { StopReason::PeerDown as u64 | (status::TRANSPORT_ERROR as u64) << 17 }>,
}

impl Logic for Kills {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, scan_at, ends, wait_count);
        self.request.next =
            self.port.valid.val() & (!self.scan_at.q.val().get_bit(10)) & self.room.val();
        self.vi.next = self.scan_at.q.val().get_bits::<10>(0);
        if self.loaded.val() {
            self.scan_at.d.next = self.scan_at.q.val() + 1;
        }
        self.peer8.next = bit_cast::<8, 6>(self.peer.val());
        self.stops.next = self.at.val() & (self.peer8.val() == self.port.peer.val());
        self.stop_word.next = self.peer_down.val();
        self.port.done.next = false;
        if self.at.val() & (self.at_vi.val() == self.last_vi.val()) {
            self.ends.d.next = true;
            self.wait_count.d.next = self.waiting.val() + 1;
        } else if self.ends.q.val() & (!self.wait_count.q.val().any()) {
            self.port.done.next = true;
            self.ends.d.next = false;
            self.scan_at.d.next = 0.into();
        } else if self.ends.q.val() & (self.served.val() | (!self.waiting.val().any())) {
            self.wait_count.d.next = self.wait_count.q.val() - 1;
        }
        if self.reset.val() {
            self.scan_at.d.next = 0.into();
            self.ends.d.next = false;
        }
    }
}
