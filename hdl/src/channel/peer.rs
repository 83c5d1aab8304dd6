//! The peer machine: everything about sending to a peer, one operation at a time, for all 64 peers.
//!
//! ```text
//! Ready --(another peer's turn)--> Look -> Ready
//!   |----(work)------------------> Look -> Ready
//!   |----(scan)--> Judge --------> Look | Command
//!   `----(open, close)--> Command -> Look
//! ```
//! | class of operation | what | cycles |
//! |---|---|---|
//! | scan | retry time-outs, keepalive, silence of one peer | 3 |
//! | pick | choose the next frame or control frame for the transmitter | 2 |
//! | put | append a committed frame to its peer's list, or send it at once | 2 |
//! | service | up, down, acknowledged frames (one each time), go back on NAK | 2 |
//! | admin | open, close, query | 2 to 6 |
//!
//! A cycle more when the operation concerns another peer than the one before (its entry is written
//! back, the other's is read), or is the first step of a service. While a frame is being filled and
//! nothing else is to do, its peer's entry is read in advance.
//!
//! The state machine is `control.rs`, with `service.rs`; this block joins it with what it controls:
//! turns, the peer's list and its credits, the next job, pending bits, timer. What an operation leaves
//! for others passes a register (`op_outputs.rs`).
//!
//! The classes take turns, and so do peers within pick and service, so nothing starves. A frame
//! that the transmitter holds or is about to take is never freed; its operation simply comes round
//! again.
use super::comparisons::Comparisons;
use super::control::Control;
use super::job::Job;
use super::lists::Lists;
use super::op_outputs::OpOutputs;
use super::scheduler::Scheduler;
use super::service::Service;
use super::service_requests::ServicePendingOps;
use super::timer::Timer;
use crate::ifs::PeerServer;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct PeerHub {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ready: Signal<In, Bit>,
    pub retry_timeout: Signal<In, Bits<24>>,
    pub retry_limit: Signal<In, Bits<4>>,
    pub keepalive: Signal<In, Bits<32>>,
    pub peers: PeerServer,
    /// A command that waits: PeerOpen, while something from before the last one is still here.
    pub old: Signal<In, Bit>,
    pub now: Signal<Out, Bits<32>>,
    // Acceptance: state, command, tables at `peer`.
    pub open: Signal<In, Bits<64>>,
    pub opening: Signal<In, Bits<64>>,
    pub peer: Signal<Out, Bits<6>>,
    // `write_newest` and `free_valid` are at `late_peer`.
    pub command: Signal<Out, Bit>,
    pub command_open: Signal<Out, Bit>,
    pub command_epoch: Signal<Out, Bits<32>>,
    pub command_credits: Signal<Out, Bits<8>>,
    pub command_reason: Signal<Out, Bits<3>>,
    pub command_done: Signal<In, Bit>,
    pub acked: Signal<In, Bits<16>>,
    pub nak: Signal<In, Bits<16>>,
    pub limit: Signal<In, Bits<8>>,
    pub alive: Signal<In, Bits<32>>,
    pub reset_tag: Signal<In, Bits<16>>,
    pub write_newest: Signal<Out, Bit>,
    pub newest: Signal<Out, Bits<16>>,
    // Pending operations of the receiver.
    pub rx_peer: Signal<In, Bits<6>>,
    pub rx_up: Signal<In, Bit>,
    pub rx_down: Signal<In, Bit>,
    pub rx_acked: Signal<In, Bit>,
    pub rx_go_back: Signal<In, Bit>,
    pub rx_alive: Signal<In, Bit>,
    // Pending operations of the transmitter: those at `peer`, and what becomes of them at `late_peer`.
    pub tx_want: Signal<In, Bits<64>>,
    pub tx_found: Signal<In, Bits<7>>,
    pub late_peer: Signal<Out, Bits<6>>,
    pub tx_clear: Signal<Out, Bits<7>>,
    pub tx_syn: Signal<Out, Bit>,
    pub tx_ack: Signal<Out, Bit>,
    pub tx_data: Signal<Out, Bit>,
    pub tx_blocks: Signal<Out, Bit>,
    // Notices, at `late_peer`.
    pub up: Signal<Out, Bit>,
    pub down: Signal<Out, Bit>,
    pub killing: Signal<In, Bits<64>>,
    // Pool.
    pub put_valid: Signal<In, Bit>,
    pub put_peer: Signal<In, Bits<6>>,
    pub put_frame: Signal<In, Bits<7>>,
    pub put_unsequenced: Signal<In, Bit>,
    pub put_stale: Signal<In, Bit>,
    pub put_large: Signal<In, Bit>,
    pub put_units: Signal<In, Bits<5>>,
    pub put_taken: Signal<Out, Bit>,
    pub filling: Signal<In, Bit>,
    pub filling_peer: Signal<In, Bits<6>>,
    pub free_valid: Signal<Out, Bit>,
    pub free_frame: Signal<Out, Bits<7>>,
    pub free_room: Signal<In, Bit>,
    // Transmitter: the job, as in `LinkTx`.
    pub job_valid: Signal<Out, Bit>,
    pub job_data: Signal<Out, Bit>,
    pub job_kind: Signal<Out, Bits<8>>,
    pub job_peer: Signal<Out, Bits<6>>,
    pub job_frame: Signal<Out, Bits<7>>,
    pub job_number: Signal<Out, Bits<16>>,
    pub job_unsequenced: Signal<Out, Bit>,
    pub job_again: Signal<Out, Bit>,
    pub job_nak: Signal<Out, Bit>,
    pub job_tag: Signal<Out, Bits<16>>,
    pub job_taken: Signal<In, Bit>,
    pub in_flight_valid: Signal<In, Bit>,
    pub in_flight_data: Signal<In, Bit>,
    pub in_flight_peer: Signal<In, Bits<6>>,
    pub in_flight_frame: Signal<In, Bits<7>>,
    control: Control,
    comparisons: Comparisons,
    scheduler: Scheduler,
    lists: Lists,
    job: Job,
    pending_ops: ServicePendingOps,
    timer: Timer,
    service: Service,
    op_outputs: OpOutputs,
    asked: DFF<Bit>,
    asked_peer: DFF<Bits<6>>,
}

impl Logic for PeerHub {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, asked, asked_peer);
        clock!(
            self,
            clock,
            control,
            comparisons,
            scheduler,
            lists,
            job,
            pending_ops,
            timer,
            service,
            op_outputs
        );
        self.control.reset.next = self.reset.val();
        self.pending_ops.reset.next = self.reset.val();
        self.timer.reset.next = self.reset.val();
        self.scheduler.reset.next = self.reset.val();
        self.job.reset.next = self.reset.val();
        self.service.reset.next = self.reset.val();
        self.op_outputs.reset.next = self.reset.val();
        self.peer.next = self.control.peer.val();

        // Whose turn it is.
        self.control.ready.next = self.ready.val();
        self.scheduler.done.next = self.control.done.val();
        self.scheduler.more.next = self.service.more.val();
        self.scheduler.at.next = self.peer.val();
        self.scheduler.turned.next = self.control.turned.val();
        self.scheduler.strays.next = self.control.strays.val();
        self.control.turn_valid.next = self.scheduler.valid.val();
        self.control.turn_class.next = self.scheduler.turn.val();
        self.control.turn_peer.next = self.scheduler.peer.val();
        self.control.turn_same.next = self.scheduler.same.val();
        self.control.filling.next = self.filling.val();
        self.control.filling_peer.next = self.filling_peer.val();
        self.scheduler.scan.next = self.timer.scan.val();
        self.scheduler.scan_peer.next = self.timer.scan_peer.val();
        self.scheduler.tx_want.next = self.tx_want.val();
        self.scheduler.picks.next = !self.job.valid.val();
        self.scheduler.put.next = self.put_valid.val();
        self.scheduler.put_peer.next = self.put_peer.val();
        self.scheduler.service_want.next = self.pending_ops.want.val();

        // Admin and acceptance. A command's arguments stand until it is answered.
        self.asked.d.next = self.peers.valid.val() & !(self.control.answer.val() | self.old.val());
        self.asked_peer.d.next = self.peers.peer.val().get_bits::<6>(0);
        self.scheduler.admin.next = self.asked.q.val() & !self.control.answer.val();
        self.scheduler.admin_peer.next = self.asked_peer.q.val();
        self.control.op.next = self.peers.op.val();
        self.peers.done.next = self.control.answer.val();
        self.peers.status.next = self.control.status.val();
        self.peers.state.next = self.control.saw.val();
        self.command.next = self.control.command.val();
        self.command_open.next = self.control.command_open.val();
        self.command_epoch.next = self.peers.epoch.val();
        self.command_credits.next = self.peers.credits.val();
        self.command_reason.next = self.control.command_reason.val();
        self.control.command_done.next = self.command_done.val();

        // What an operation goes by.
        self.pending_ops.look_peer.next = self.peer.val();
        self.comparisons.peer.next = self.peer.val();
        self.comparisons.open.next = self.open.val();
        self.comparisons.opening.next = self.opening.val();
        self.comparisons.acked.next = self.acked.val();
        self.comparisons.nak.next = self.nak.val();
        self.comparisons.found.next = self.pending_ops.found.val();
        self.comparisons.killing.next = self.killing.val();
        self.comparisons.freed.next = self.lists.freed.val();
        self.comparisons.head.next = self.lists.head.val();
        self.comparisons.job_valid.next = self.job.valid.val();
        self.comparisons.job_data.next = self.job.data.val();
        self.comparisons.job_peer.next = self.job.to.val();
        self.comparisons.job_frame.next = self.job.frame.val();
        self.comparisons.in_flight_valid.next = self.in_flight_valid.val();
        self.comparisons.in_flight_data.next = self.in_flight_data.val();
        self.comparisons.in_flight_peer.next = self.in_flight_peer.val();
        self.comparisons.in_flight_frame.next = self.in_flight_frame.val();
        self.comparisons.put_valid.next = self.put_valid.val();
        self.comparisons.put_peer.next = self.put_peer.val();
        self.control.is_open.next = self.comparisons.is_open.val();
        self.control.is_opening.next = self.comparisons.is_opening.val();
        self.control.peer_busy.next = self.comparisons.peer_busy.val();
        self.control.dying.next = self.comparisons.dying.val();
        self.control.todo.next = self.lists.todo.val();
        self.control.opens.next = self.job.opens.val();
        self.control.put_covered.next = self.lists.put_covered.val();
        self.control.outstanding.next = self.lists.outstanding.val();
        self.control.newly.next = self.lists.newly.val();
        self.control.job_full.next = self.job.valid.val();

        // A service.
        self.service.look.next = self.control.look.val();
        self.service.found.next = self.pending_ops.found.val();
        self.control.looked.next = self.service.looked.val();
        self.service.work.next = self.control.serve.val();
        self.service.ends.next = self.control.done.val();
        self.service.is_up.next = self.comparisons.is_up.val();
        self.service.is_down.next = self.comparisons.is_down.val();
        self.service.all_freed.next = self.comparisons.all_freed.val();
        self.service.one_left.next = self.comparisons.one_left.val();
        self.service.nak_is_head.next = self.comparisons.nak_is_head.val();
        self.service.head_busy.next = self.comparisons.head_busy.val();
        self.service.live.next = self.lists.live.val();
        self.service.outstanding.next = self.lists.outstanding.val();
        self.service.obeyed.next = self.lists.obeyed.val();

        // Time.
        self.timer.filling.next = self.filling.val() | self.put_valid.val();
        self.timer.retry_timeout.next = self.retry_timeout.val();
        self.timer.retry_limit.next = self.retry_limit.val();
        self.timer.keepalive.next = self.keepalive.val();
        self.timer.open.next = self.open.val();
        self.timer.opening.next = self.opening.val();
        self.timer.scan_taken.next = self.scheduler.scan_taken.val();
        self.timer.stamp.next = self.lists.stamp.val();
        self.timer.tries.next = self.lists.tries.val();
        self.lists.longest.next = self.timer.longest.val();
        self.timer.sent.next = self.lists.sent.val();
        self.timer.alive.next = self.alive.val();
        self.control.expired.next = self.timer.expired.val();
        self.control.quiet.next = self.timer.quiet.val();
        self.control.silent.next = self.timer.silent.val();
        self.control.hopeless.next = self.timer.hopeless.val();
        self.now.next = self.timer.now.val();
        self.pending_ops.rx_alive.next = self.rx_alive.val();
        self.pending_ops.forget.next = self.lists.forget.val();
        self.control.alive.next = self.pending_ops.alive.val();
        self.lists.alive.next = self.pending_ops.alive.val();

        // The peer's list.
        self.lists.now.next = self.timer.now.val();
        self.lists.peer.next = self.peer.val();
        self.lists.peer_after.next = self.control.peer_after.val();
        self.lists.load.next = self.control.load.val();
        self.lists.append.next = self.control.append.val();
        self.lists.direct.next = self.control.direct.val();
        self.lists.frame.next = self.put_frame.val();
        self.lists.unsequenced.next = self.put_unsequenced.val();
        self.lists.big.next = self.put_large.val();
        self.lists.units.next = self.put_units.val();
        self.lists.limit.next = self.limit.val();
        self.lists.take.next = self.job.take.val();
        self.lists.sends.next = self.job.sends.val();
        self.lists.pop.next = self.service.pop.val();
        self.lists.progress.next = self.service.progress.val();
        self.lists.again.next = self.control.again.val();
        self.lists.rewind.next = self.control.rewind.val() | self.service.obey.val();
        self.lists.obey.next = self.service.obey.val();
        self.lists.fresh.next = self.control.fresh.val();

        // The next job.
        self.job.choose.next = self.control.pick.val();
        self.job.direct.next = self.control.direct.val();
        self.job.put.next = self.put_frame.val();
        self.job.put_no_sequence.next = self.put_unsequenced.val();
        self.job.peer.next = self.peer.val();
        self.job.is_open.next = self.comparisons.is_open.val();
        self.job.is_opening.next = self.comparisons.is_opening.val();
        self.job.found.next = self.tx_found.val();
        self.job.reset_tag.next = self.reset_tag.val();
        self.job.todo.next = self.lists.todo.val();
        self.job.at_tail.next = self.lists.at_tail.val();
        self.job.turn.next = self.lists.turn.val();
        self.job.number.next = self.lists.number.val();
        self.job.no_sequence.next = self.lists.no_sequence.val();
        self.job.wide.next = self.lists.wide.val();
        self.job.newly.next = self.lists.newly.val();
        self.job.covered.next = self.lists.turn_covered.val();
        self.job_valid.next = self.job.valid.val();
        self.job_data.next = self.job.data.val();
        self.job_kind.next = self.job.kind.val();
        self.job_peer.next = self.job.to.val();
        self.job_frame.next = self.job.frame.val();
        self.job_number.next = self.job.seq.val();
        self.job_unsequenced.next = self.job.unsequenced.val();
        self.job_again.next = self.job.again.val();
        self.job_nak.next = self.job.nak.val();
        self.job_tag.next = self.job.tag.val();
        self.job.taken.next = self.job_taken.val();

        // The pool.
        self.control.put_stale.next = self.put_stale.val();
        self.control.put_unsequenced.next = self.put_unsequenced.val();
        self.control.yields.next = self.put_large.val() & self.job.needs.val();
        self.put_taken.next = self.control.put_taken.val();
        self.control.free_room.next = self.free_room.val();

        // What it leaves behind.
        self.op_outputs.peer.next = self.peer.val();
        self.op_outputs.syn.next = self.control.tx_syn.val();
        self.op_outputs.ack.next = self.control.tx_ack.val();
        self.op_outputs.data.next = self.control.tx_data.val() | self.service.obey.val();
        self.op_outputs.tx_clear.next = self.job.clear.val();
        self.op_outputs.blocks.next = self.job.blocks.val();
        self.op_outputs.clear.next = self.service.clear.val();
        self.op_outputs.renew.next = self.service.renew.val();
        self.op_outputs.up.next = self.service.up.val();
        self.op_outputs.down.next = self.service.down.val();
        self.op_outputs.newly.next = self.lists.counts.val();
        self.op_outputs.newest.next = self.lists.number_after.val();
        self.op_outputs.fresh.next = self.control.fresh.val();
        self.op_outputs.pops.next = self.service.pop.val();
        self.op_outputs.head.next = self.lists.head.val();
        self.op_outputs.frees.next = self.control.free_put.val();
        self.op_outputs.put.next = self.put_frame.val();
        self.late_peer.next = self.op_outputs.peer_out.val();
        self.tx_syn.next = self.op_outputs.syn_out.val();
        self.tx_ack.next = self.op_outputs.ack_out.val();
        self.tx_data.next = self.op_outputs.data_out.val();
        self.tx_blocks.next = self.op_outputs.blocks_out.val();
        self.tx_clear.next = self.op_outputs.tx_clear_out.val();
        self.up.next = self.op_outputs.up_out.val();
        self.down.next = self.op_outputs.down_out.val();
        self.write_newest.next = self.op_outputs.write_newest.val();
        self.newest.next = self.op_outputs.newest_out.val();
        self.free_valid.next = self.op_outputs.free_out.val();
        self.free_frame.next = self.op_outputs.frame_out.val();
        self.pending_ops.rx_peer.next = self.rx_peer.val();
        self.pending_ops.rx_up.next = self.rx_up.val();
        self.pending_ops.rx_down.next = self.rx_down.val();
        self.pending_ops.rx_acked.next = self.rx_acked.val();
        self.pending_ops.rx_go_back.next = self.rx_go_back.val();
        self.pending_ops.look_clear.next = self.service.takes_over.val();
        self.pending_ops.hub_peer.next = self.op_outputs.peer_out.val();
        self.pending_ops.hub_clear.next = self.op_outputs.clear_out.val();
        self.pending_ops.hub_renew.next = self.op_outputs.renew_out.val();
    }
}
