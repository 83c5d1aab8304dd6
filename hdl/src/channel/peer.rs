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
//! | service | up, down, acknowledged frames (one each time), go back on GAP | 2 |
//! | admin | open, close, query | 2 to 6 |
//!
//! A cycle more when the operation concerns another peer than the one before (its entry is written
//! back, the other's is read), or is the first step of a service. While a frame is being filled and
//! nothing else is to do, its peer's entry is read in advance.
//!
//! The state machine is `control.rs`, with `service.rs`; this block joins it with what it controls:
//! turns, the peer's list and its credits, the next job, marks, timer. What an operation leaves for others passes a
//! register (`effects.rs`).
//!
//! The classes take turns, and so do peers within pick and service, so nothing starves. A frame
//! that the transmitter holds or is about to take is never freed; its operation simply comes round
//! again.
use super::control::Control;
use super::effects::Effects;
use super::facts::Facts;
use super::job::Job;
use super::lists::Lists;
use super::news::ServiceMarks;
use super::service::Service;
use super::timer::Timer;
use super::turns::Turns;
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
    pub gap: Signal<In, Bits<16>>,
    pub limit: Signal<In, Bits<8>>,
    pub heard: Signal<In, Bits<32>>,
    pub reset_tag: Signal<In, Bits<16>>,
    pub write_newest: Signal<Out, Bit>,
    pub newest: Signal<Out, Bits<16>>,
    // Marks of the receiver.
    pub rx_peer: Signal<In, Bits<6>>,
    pub rx_up: Signal<In, Bit>,
    pub rx_down: Signal<In, Bit>,
    pub rx_acked: Signal<In, Bit>,
    pub rx_gapped: Signal<In, Bit>,
    pub rx_heard: Signal<In, Bit>,
    // Marks of the transmitter: those at `peer`, and what becomes of them at `late_peer`.
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
    pub job_gap: Signal<Out, Bit>,
    pub job_tag: Signal<Out, Bits<16>>,
    pub job_taken: Signal<In, Bit>,
    pub hand_valid: Signal<In, Bit>,
    pub hand_data: Signal<In, Bit>,
    pub hand_peer: Signal<In, Bits<6>>,
    pub hand_frame: Signal<In, Bits<7>>,
    control: Control,
    facts: Facts,
    turns: Turns,
    lists: Lists,
    job: Job,
    marks: ServiceMarks,
    timer: Timer,
    service: Service,
    effects: Effects,
    asked: DFF<Bit>,
    asked_peer: DFF<Bits<6>>,
}

impl Logic for PeerHub {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, asked, asked_peer);
        clock!(self, clock, control, facts, turns, lists, job, marks, timer, service, effects);
        self.control.reset.next = self.reset.val();
        self.marks.reset.next = self.reset.val();
        self.timer.reset.next = self.reset.val();
        self.turns.reset.next = self.reset.val();
        self.job.reset.next = self.reset.val();
        self.service.reset.next = self.reset.val();
        self.effects.reset.next = self.reset.val();
        self.peer.next = self.control.peer.val();

        // Whose turn it is.
        self.control.ready.next = self.ready.val();
        self.turns.done.next = self.control.done.val();
        self.turns.more.next = self.service.more.val();
        self.turns.at.next = self.peer.val();
        self.turns.turned.next = self.control.turned.val();
        self.turns.strays.next = self.control.strays.val();
        self.control.turn_valid.next = self.turns.valid.val();
        self.control.turn_class.next = self.turns.turn.val();
        self.control.turn_peer.next = self.turns.peer.val();
        self.control.turn_same.next = self.turns.same.val();
        self.control.filling.next = self.filling.val();
        self.control.filling_peer.next = self.filling_peer.val();
        self.turns.scan.next = self.timer.scan.val();
        self.turns.scan_peer.next = self.timer.scan_peer.val();
        self.turns.tx_want.next = self.tx_want.val();
        self.turns.picks.next = !self.job.valid.val();
        self.turns.put.next = self.put_valid.val();
        self.turns.put_peer.next = self.put_peer.val();
        self.turns.service_want.next = self.marks.want.val();

        // Admin and acceptance. A command's arguments stand until it is answered.
        self.asked.d.next = self.peers.valid.val() & !(self.control.answer.val() | self.old.val());
        self.asked_peer.d.next = self.peers.peer.val().get_bits::<6>(0);
        self.turns.admin.next = self.asked.q.val() & !self.control.answer.val();
        self.turns.admin_peer.next = self.asked_peer.q.val();
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
        self.marks.look_peer.next = self.peer.val();
        self.facts.peer.next = self.peer.val();
        self.facts.open.next = self.open.val();
        self.facts.opening.next = self.opening.val();
        self.facts.acked.next = self.acked.val();
        self.facts.gap.next = self.gap.val();
        self.facts.found.next = self.marks.found.val();
        self.facts.killing.next = self.killing.val();
        self.facts.freed.next = self.lists.freed.val();
        self.facts.head.next = self.lists.head.val();
        self.facts.job_valid.next = self.job.valid.val();
        self.facts.job_data.next = self.job.data.val();
        self.facts.job_peer.next = self.job.to.val();
        self.facts.job_frame.next = self.job.frame.val();
        self.facts.hand_valid.next = self.hand_valid.val();
        self.facts.hand_data.next = self.hand_data.val();
        self.facts.hand_peer.next = self.hand_peer.val();
        self.facts.hand_frame.next = self.hand_frame.val();
        self.facts.put_valid.next = self.put_valid.val();
        self.facts.put_peer.next = self.put_peer.val();
        self.control.is_open.next = self.facts.is_open.val();
        self.control.is_opening.next = self.facts.is_opening.val();
        self.control.peer_busy.next = self.facts.peer_busy.val();
        self.control.dying.next = self.facts.dying.val();
        self.control.todo.next = self.lists.todo.val();
        self.control.opens.next = self.job.opens.val();
        self.control.put_covered.next = self.lists.put_covered.val();
        self.control.outstanding.next = self.lists.outstanding.val();
        self.control.newly.next = self.lists.newly.val();
        self.control.job_full.next = self.job.valid.val();

        // A service.
        self.service.look.next = self.control.look.val();
        self.service.found.next = self.marks.found.val();
        self.control.looked.next = self.service.looked.val();
        self.service.work.next = self.control.serve.val();
        self.service.ends.next = self.control.done.val();
        self.service.is_up.next = self.facts.is_up.val();
        self.service.is_down.next = self.facts.is_down.val();
        self.service.all_freed.next = self.facts.all_freed.val();
        self.service.one_left.next = self.facts.one_left.val();
        self.service.gap_is_head.next = self.facts.gap_is_head.val();
        self.service.head_busy.next = self.facts.head_busy.val();
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
        self.timer.scan_taken.next = self.turns.scan_taken.val();
        self.timer.stamp.next = self.lists.stamp.val();
        self.timer.tries.next = self.lists.tries.val();
        self.lists.longest.next = self.timer.longest.val();
        self.timer.sent.next = self.lists.sent.val();
        self.timer.heard.next = self.heard.val();
        self.control.expired.next = self.timer.expired.val();
        self.control.quiet.next = self.timer.quiet.val();
        self.control.silent.next = self.timer.silent.val();
        self.control.hopeless.next = self.timer.hopeless.val();
        self.now.next = self.timer.now.val();
        self.marks.rx_heard.next = self.rx_heard.val();
        self.marks.forget.next = self.lists.forget.val();
        self.control.heard.next = self.marks.heard.val();
        self.lists.heard.next = self.marks.heard.val();

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
        self.job.put_loose.next = self.put_unsequenced.val();
        self.job.peer.next = self.peer.val();
        self.job.is_open.next = self.facts.is_open.val();
        self.job.is_opening.next = self.facts.is_opening.val();
        self.job.found.next = self.tx_found.val();
        self.job.reset_tag.next = self.reset_tag.val();
        self.job.todo.next = self.lists.todo.val();
        self.job.at_tail.next = self.lists.at_tail.val();
        self.job.turn.next = self.lists.turn.val();
        self.job.number.next = self.lists.number.val();
        self.job.loose.next = self.lists.loose.val();
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
        self.job_gap.next = self.job.gap.val();
        self.job_tag.next = self.job.tag.val();
        self.job.taken.next = self.job_taken.val();

        // The pool.
        self.control.put_stale.next = self.put_stale.val();
        self.control.put_unsequenced.next = self.put_unsequenced.val();
        self.control.yields.next = self.put_large.val() & self.job.owes.val();
        self.put_taken.next = self.control.put_taken.val();
        self.control.free_room.next = self.free_room.val();

        // What it leaves behind.
        self.effects.peer.next = self.peer.val();
        self.effects.syn.next = self.control.tx_syn.val();
        self.effects.ack.next = self.control.tx_ack.val();
        self.effects.data.next = self.control.tx_data.val() | self.service.obey.val();
        self.effects.tx_clear.next = self.job.clear.val();
        self.effects.blocks.next = self.job.blocks.val();
        self.effects.clear.next = self.service.clear.val();
        self.effects.renew.next = self.service.renew.val();
        self.effects.up.next = self.service.up.val();
        self.effects.down.next = self.service.down.val();
        self.effects.newly.next = self.lists.counts.val();
        self.effects.newest.next = self.lists.number_after.val();
        self.effects.fresh.next = self.control.fresh.val();
        self.effects.pops.next = self.service.pop.val();
        self.effects.head.next = self.lists.head.val();
        self.effects.frees.next = self.control.free_put.val();
        self.effects.put.next = self.put_frame.val();
        self.late_peer.next = self.effects.peer_out.val();
        self.tx_syn.next = self.effects.syn_out.val();
        self.tx_ack.next = self.effects.ack_out.val();
        self.tx_data.next = self.effects.data_out.val();
        self.tx_blocks.next = self.effects.blocks_out.val();
        self.tx_clear.next = self.effects.tx_clear_out.val();
        self.up.next = self.effects.up_out.val();
        self.down.next = self.effects.down_out.val();
        self.write_newest.next = self.effects.write_newest.val();
        self.newest.next = self.effects.newest_out.val();
        self.free_valid.next = self.effects.free_out.val();
        self.free_frame.next = self.effects.frame_out.val();
        self.marks.rx_peer.next = self.rx_peer.val();
        self.marks.rx_up.next = self.rx_up.val();
        self.marks.rx_down.next = self.rx_down.val();
        self.marks.rx_acked.next = self.rx_acked.val();
        self.marks.rx_gapped.next = self.rx_gapped.val();
        self.marks.look_clear.next = self.service.takes_over.val();
        self.marks.hub_peer.next = self.effects.peer_out.val();
        self.marks.hub_clear.next = self.effects.clear_out.val();
        self.marks.hub_renew.next = self.effects.renew_out.val();
    }
}
