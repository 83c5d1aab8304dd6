//! The admin ring; its commands executed.

pub mod command;

use nic_regs::admin::{AdminStatus, COMPLETION_BYTES, DONE, ENTRY_BYTES, PeerState};
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::csr::{ADMIN_BASE_HI, ADMIN_BASE_LO, ADMIN_SIZE, ADMIN_TAIL};
use nic_regs::frame::{Header, MESSAGE_BYTES, Type, flag};
use nic_regs::vi::State;

use crate::bits::{low16, size, small8, small16};
use crate::channel::Channels;
use crate::context::Context;
use crate::frame::Frame;
use crate::send::FrameSink;
use crate::trace::Trace;
use crate::vi::{Input, Pending, Remote, Vi};
use crate::work_queue::WorkQueues;
use command::Command;

/// The admin ring: its registers and its progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdminRing {
    pub(crate) base_lo: u32,
    pub(crate) base_hi: u32,
    pub(crate) size: ADMIN_SIZE,
    pub(crate) tail: u32,
    /// Entries completed since reset.
    pub(crate) head: u16,
    /// An entry could not be read.
    pub(crate) failed: bool,
}

impl Default for AdminRing {
    fn default() -> Self {
        Self {
            base_lo: ADMIN_BASE_LO::RESET.0,
            base_hi: ADMIN_BASE_HI::RESET.0,
            size: ADMIN_SIZE::RESET,
            tail: ADMIN_TAIL::RESET.0,
            head: 0,
            failed: false,
        }
    }
}

/// The result of a command that is Ok, or why it is not.
type Outcome = Result<u32, AdminStatus>;

/// The object is in the state that the command needs.
fn state(good: bool) -> Result<(), AdminStatus> {
    if good { Ok(()) } else { Err(AdminStatus::BadState) }
}

impl AdminRing {
    /// Whether the ring has an entry that is not completed.
    pub(crate) fn has_work(&self) -> bool {
        low16(self.tail) != self.head
    }

    /// Whether the ring has an entry that it may execute, on a device that is enabled.
    pub(crate) fn is_busy(&self) -> bool {
        self.has_work() && !self.failed
    }

    /// Executes one command.
    pub(crate) fn step(
        &mut self,
        queues: &mut WorkQueues,
        channels: &mut Channels,
        cx: &mut Context<'_>,
    ) {
        let base = (u64::from(self.base_lo) | u64::from(self.base_hi) << 32) & !63;
        let slot = u64::from(self.head) & ((1 << self.size.get(ADMIN_SIZE::LOG2)) - 1);
        let address = base.wrapping_add(ENTRY_BYTES * slot);
        let mut bytes = [0; size(ENTRY_BYTES)];
        if cx.read(address, &mut bytes).is_err() {
            self.failed = true;
            cx.log(ErrorCode::AdminFetch, 0, u32::from(self.head));
            return;
        }
        let (dwords, _) = bytes.as_chunks::<4>();
        let [opcode, index, cookie] = [0, 1, 2].map(|i| u32::from_le_bytes(dwords[i]));
        let outcome = Command::decode(&bytes)
            .and_then(|command| Executor { queues, channels, cx }.execute(command));
        let (status, result) = match outcome {
            Ok(result) => (AdminStatus::Ok, result),
            Err(status) => (status, 0),
        };
        let mut completion = [0; size(COMPLETION_BYTES)];
        let words = [status as u32, result, cookie, DONE];
        for (bytes, word) in completion.chunks_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        cx.write(address, &completion);
        cx.count(Counter::AdminCommands);
        if status != AdminStatus::Ok {
            cx.count(Counter::AdminErrors);
        }
        cx.trace(Trace::Admin { opcode, index, status });
        self.head = self.head.wrapping_add(1);
    }
}

/// What commands work on.
struct Executor<'a, 'h> {
    queues: &'a mut WorkQueues,
    channels: &'a mut Channels,
    cx: &'a mut Context<'h>,
}

impl Executor<'_, '_> {
    /// Executes a command: its state is checked, then whether it is Busy or the peer down.
    fn execute(&mut self, command: Command) -> Outcome {
        match command {
            Command::Nop => {}
            Command::RegionSet { index, region } => {
                state(self.queues.regions.get(index).is_none())?;
                self.queues.regions.set(index, region);
            }
            // Host accesses are immediate here, so all that the fence has to wait for is in the
            // descriptors that were fetched.
            Command::RegionClear { index } => {
                state(self.queues.regions.get(index).is_some())?;
                self.queues.regions.clear(index);
                self.queues.forget_all_fetched();
            }
            Command::ViCreate { index, owner, level, event_queues, max_transfer, allows } => {
                let allows = self.queues.rdma_bits(allows);
                let vi = &mut self.queues.vis[index];
                state(vi.state == State::Free)?;
                *vi = Vi { owner, level, max_transfer, event_queues, allows, ..Vi::default() };
                vi.go(Input::Create);
            }
            Command::ViDestroy { index } => {
                self.idle_vi(index)?;
                self.queues.clear_work(index);
                self.queues.vis[index].go(Input::Destroy);
            }
            Command::ViConnect { index, remote } => {
                self.idle_vi(index)?;
                let allows = self.queues.rdma_bits(remote.allows);
                let vi = &mut self.queues.vis[index];
                vi.remote = Remote { allows, ..remote };
                vi.message = 0;
                vi.go(Input::Connect);
                self.queues.vis.make_ready(index);
            }
            Command::ViDisconnect { index } => {
                let before = &self.queues.vis[index];
                state(before.state != State::Free)?;
                let notify = before.state == State::Connected || before.stopped_silently();
                self.queues.clear_work(index);
                self.queues.vis[index].go(Input::Disconnect);
                if notify {
                    self.queues.vis.set_pending(index, Pending::Fin);
                }
            }
            Command::ViQuery { index } => return Ok(self.queues.vis.query(index)),
            Command::EventCreate { index, queue } => {
                state(self.queues.events.create(index, queue))?;
            }
            Command::EventDestroy { index } => {
                let WorkQueues { events, vis, .. } = &mut *self.queues;
                state(events.destroy(index, vis, self.cx))?;
            }
            Command::MessageQueue { domain, queue } => {
                self.queues.events.message_queues[usize::from(domain)] = queue;
            }
            Command::PeerOpen { node, epoch, credits } => {
                state(self.channels.peer(node).state == PeerState::Closed)?;
                self.channels.open(node, epoch, credits, self.cx);
            }
            Command::PeerClose { node } => {
                state(self.channels.peer(node).state != PeerState::Closed)?;
                self.channels.close(node, self.queues, self.cx);
            }
            Command::PeerQuery { node } => return Ok(self.channels.peer(node).state as u32),
            Command::MessageSend { node, domain, text } => {
                self.send_message(node, domain, &text)?;
            }
        }
        Ok(0)
    }

    /// The VI is Idle, and no control frame to its old peer is pending.
    fn idle_vi(&self, index: u16) -> Result<(), AdminStatus> {
        state(self.queues.vis[index].state == State::Idle)?;
        match self.queues.vis.first_pending(index) {
            Some(_) => Err(AdminStatus::Busy),
            None => Ok(()),
        }
    }

    fn send_message(&mut self, node: u8, domain: u8, text: &[u8]) -> Result<(), AdminStatus> {
        if !self.channels.is_open(node) {
            return Err(AdminStatus::PeerDown);
        }
        let header = Header {
            kind: small8(Type::Message as usize),
            length: small16(MESSAGE_BYTES),
            dst_node: node,
            dst_vi: domain.into(),
            flags: flag::SEQUENCED,
            ..Header::default()
        };
        if !self.channels.admits(node, &header) {
            return Err(AdminStatus::Busy);
        }
        self.channels.enqueue(Frame { header, payload: text.to_vec() });
        self.cx.count(Counter::MessagesSent);
        Ok(())
    }
}
