//! The admin ring and its commands.

use nic_regs::admin::{
    AdminStatus, COMPLETION_BYTES, DONE, ENTRY_BYTES, NO_QUEUE, Opcode, PeerState,
};
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::csr::{ADMIN_BASE_HI, ADMIN_BASE_LO, ADMIN_SIZE, ADMIN_TAIL};
use nic_regs::frame::{Header, MESSAGE_BYTES, Type, flag};
use nic_regs::limits::{
    CREDITS_MAX, DOMAIN_COUNT, EVENT_QUEUE_COUNT, MAX_TRANSFER_BYTES, MSIX_VECTOR_COUNT,
    PEER_COUNT, REGION_COUNT, VI_COUNT,
};
use nic_regs::tpt::{RIGHT_RDMA_READ, RIGHT_RDMA_WRITE, RIGHT_VALID, Region};
use nic_regs::vi::{Reliability, State, rdma};

use crate::bits::{low8, low16, size, small8, small16};
use crate::channel::Channels;
use crate::context::Context;
use crate::event::EventQueue;
use crate::frame::Frame;
use crate::send::FrameSink;
use crate::tpt::Owner;
use crate::trace::Trace;
use crate::vi::{Input, Pending, Remote, Vi};
use crate::work_queue::WorkQueues;

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

/// A command as it lies in the ring.
#[derive(Clone, Copy, Debug)]
struct Command {
    words: [u32; 16],
    bytes: [u8; size(ENTRY_BYTES)],
}

impl Command {
    fn new(bytes: [u8; size(ENTRY_BYTES)]) -> Self {
        let mut words = [0; 16];
        let (dwords, _) = bytes.as_chunks::<4>();
        for (word, dword) in words.iter_mut().zip(dwords) {
            *word = u32::from_le_bytes(*dword);
        }
        Self { words, bytes }
    }

    /// The index, which must be below `count`.
    fn index(&self, count: usize) -> Result<u16, AdminStatus> {
        let index = self.words[1];
        if (index as usize) < count { Ok(low16(index)) } else { Err(AdminStatus::BadIndex) }
    }

    fn wide(&self, low: usize) -> u64 {
        u64::from(self.words[low]) | u64::from(self.words[low + 1]) << 32
    }
}

/// The body of a command is in range.
fn argument(good: bool) -> Result<(), AdminStatus> {
    if good { Ok(()) } else { Err(AdminStatus::BadArgument) }
}

/// The object is in the state that the command needs.
fn state(good: bool) -> Result<(), AdminStatus> {
    if good { Ok(()) } else { Err(AdminStatus::BadState) }
}

/// A field may name this event queue, or none.
fn queue_or_none(queue: u16) -> bool {
    usize::from(queue) < EVENT_QUEUE_COUNT || queue == NO_QUEUE
}

fn is_domain(domain: u8) -> bool {
    usize::from(domain) < DOMAIN_COUNT
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
        let address = base + ENTRY_BYTES * slot;
        let mut bytes = [0; size(ENTRY_BYTES)];
        if cx.read(address, &mut bytes).is_err() {
            self.failed = true;
            cx.log(ErrorCode::AdminFetch, 0, u32::from(self.head));
            return;
        }
        let command = Command::new(bytes);
        let outcome = match Opcode::from_bits(command.words[0]) {
            Some(opcode) => Executor { queues, channels, cx }.execute(opcode, &command),
            None => Err(AdminStatus::BadOpcode),
        };
        let (status, result) = match outcome {
            Ok(result) => (AdminStatus::Ok, result),
            Err(status) => (status, 0),
        };
        let mut completion = [0; size(COMPLETION_BYTES)];
        let words = [status as u32, result, command.words[2], DONE];
        for (bytes, word) in completion.chunks_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        cx.write(address, &completion);
        cx.count(Counter::AdminCommands);
        if status != AdminStatus::Ok {
            cx.count(Counter::AdminErrors);
        }
        cx.trace(Trace::Admin { opcode: command.words[0], index: command.words[1], status });
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
    fn execute(&mut self, opcode: Opcode, c: &Command) -> Outcome {
        match opcode {
            Opcode::Nop => Ok(0),
            Opcode::RegionSet => self.region_set(c),
            Opcode::RegionClear => self.region_clear(c),
            Opcode::ViCreate => self.vi_create(c),
            Opcode::ViDestroy => self.vi_destroy(c),
            Opcode::ViConnect => self.vi_connect(c),
            Opcode::ViDisconnect => self.vi_disconnect(c),
            Opcode::ViQuery => self.vi_query(c),
            Opcode::EventCreate => self.event_create(c),
            Opcode::EventDestroy => self.event_destroy(c),
            Opcode::PeerOpen => self.peer_open(c),
            Opcode::PeerClose => self.peer_close(c),
            Opcode::PeerQuery => {
                let node = low8(u32::from(c.index(PEER_COUNT)?));
                Ok(self.channels.peer(node).state as u32)
            }
            Opcode::MessageSend => self.message_send(c),
            Opcode::MessageQueue => self.message_queue(c),
        }
    }

    fn region_set(&mut self, c: &Command) -> Outcome {
        let index = c.index(REGION_COUNT)?;
        let region = Region {
            va_base: c.wide(4),
            bus_base: c.wide(6),
            length: c.words[8],
            tag: low16(c.words[9]),
            generation: low16(c.words[9] >> 16),
            domain: low8(c.words[10]),
            rights: low8(c.words[10] >> 8),
        };
        let known = RIGHT_VALID | RIGHT_RDMA_WRITE | RIGHT_RDMA_READ;
        argument(region.length != 0)?;
        argument(region.rights & RIGHT_VALID != 0 && region.rights & !known == 0)?;
        argument(is_domain(region.domain) && region.generation != 0)?;
        argument(region.va_base % 4096 == region.bus_base % 4096)?;
        for base in [region.va_base, region.bus_base] {
            argument(base.checked_add(u64::from(region.length) - 1).is_some())?;
        }
        state(self.queues.regions.get(index).is_none())?;
        self.queues.regions.set(index, region);
        Ok(0)
    }

    /// Host accesses are immediate here, so all that the fence has to wait for is in the
    /// descriptors that were fetched.
    fn region_clear(&mut self, c: &Command) -> Outcome {
        let index = c.index(REGION_COUNT)?;
        state(self.queues.regions.get(index).is_some())?;
        self.queues.regions.clear(index);
        self.queues.forget_all_fetched();
        Ok(0)
    }

    fn vi_create(&mut self, c: &Command) -> Outcome {
        let index = c.index(VI_COUNT)?;
        let domain = low8(c.words[4]);
        let level = Reliability::from_bits(c.words[4] >> 8 & 0xff);
        let event_queues = [low16(c.words[5]), low16(c.words[5] >> 16)];
        let max_transfer = c.words[6];
        argument(is_domain(domain))?;
        let level = level.ok_or(AdminStatus::BadArgument)?;
        argument(event_queues.into_iter().all(queue_or_none))?;
        argument((1..=MAX_TRANSFER_BYTES).contains(&max_transfer))?;
        state(self.queues.vis[index].state == State::Free)?;
        let owner = Owner { tag: low16(c.words[4] >> 16), domain };
        let allows = self.queues.rdma_bits(c.words[7]);
        let vi = &mut self.queues.vis[index];
        *vi = Vi { owner, level, max_transfer, event_queues, allows, ..Vi::default() };
        vi.go(Input::Create);
        Ok(0)
    }

    fn vi_destroy(&mut self, c: &Command) -> Outcome {
        let index = c.index(VI_COUNT)?;
        state(self.queues.vis[index].state == State::Idle)?;
        if self.queues.vis.first_pending(index).is_some() {
            return Err(AdminStatus::Busy);
        }
        self.queues.clear_work(index);
        self.queues.vis[index].go(Input::Destroy);
        Ok(0)
    }

    fn vi_connect(&mut self, c: &Command) -> Outcome {
        let index = c.index(VI_COUNT)?;
        let remote = Remote {
            node: low8(c.words[4]),
            vi: low16(c.words[4] >> 16),
            connection: low16(c.words[5]),
            allows: self.queues.rdma_bits(c.words[5] >> rdma::PEER_LSB),
        };
        argument(usize::from(remote.node) < PEER_COUNT)?;
        state(self.queues.vis[index].state == State::Idle)?;
        if self.queues.vis.first_pending(index).is_some() {
            return Err(AdminStatus::Busy);
        }
        let vi = &mut self.queues.vis[index];
        vi.remote = remote;
        vi.message = 0;
        vi.go(Input::Connect);
        self.queues.vis.make_ready(index);
        Ok(0)
    }

    fn vi_disconnect(&mut self, c: &Command) -> Outcome {
        let index = c.index(VI_COUNT)?;
        let before = &self.queues.vis[index];
        state(before.state != State::Free)?;
        let notify = before.state == State::Connected || before.stopped_silently();
        self.queues.clear_work(index);
        self.queues.vis[index].go(Input::Disconnect);
        if notify {
            self.queues.vis.set_pending(index, Pending::Fin);
        }
        Ok(0)
    }

    fn vi_query(&mut self, c: &Command) -> Outcome {
        let index = c.index(VI_COUNT)?;
        let vi = &self.queues.vis[index];
        Ok(vi.state as u32
            | (vi.reason as u32) << 4
            | u32::from(self.queues.vis.is_sending(index)) << 12
            | u32::from(vi.recv.is_some()) << 13)
    }

    fn event_create(&mut self, c: &Command) -> Outcome {
        let index = usize::from(c.index(EVENT_QUEUE_COUNT)?);
        let queue = EventQueue {
            exists: true,
            base: c.wide(4),
            log2: c.words[6] & 0xf,
            wide: c.words[6] >> 4 & 1 == 1,
            domain: low8(c.words[6] >> 8),
            vector: low8(c.words[6] >> 16),
            ..EventQueue::default()
        };
        argument((2..=15).contains(&queue.log2) && is_domain(queue.domain))?;
        argument(usize::from(queue.vector) < MSIX_VECTOR_COUNT)?;
        argument(queue.base.is_multiple_of(64))?;
        state(!self.queues.events.queues[index].exists)?;
        self.queues.events.queues[index] = queue;
        Ok(0)
    }

    fn event_destroy(&mut self, c: &Command) -> Outcome {
        let number = c.index(EVENT_QUEUE_COUNT)?;
        let queue = &mut self.queues.events.queues[usize::from(number)];
        state(queue.exists)?;
        queue.exists = false;
        // What was deferred is now lost.
        self.queues.events.drain(number, &mut self.queues.vis, self.cx);
        Ok(0)
    }

    fn peer_open(&mut self, c: &Command) -> Outcome {
        let node = low8(u32::from(c.index(PEER_COUNT)?));
        let granted = low8(c.words[5]);
        argument((1..=CREDITS_MAX).contains(&usize::from(granted)))?;
        state(self.channels.peer(node).state == PeerState::Closed)?;
        self.channels.open(node, c.words[4], granted, self.cx);
        Ok(0)
    }

    fn peer_close(&mut self, c: &Command) -> Outcome {
        let node = low8(u32::from(c.index(PEER_COUNT)?));
        state(self.channels.peer(node).state != PeerState::Closed)?;
        self.channels.close(node, self.queues, self.cx);
        Ok(0)
    }

    fn message_send(&mut self, c: &Command) -> Outcome {
        let (node, domain) = (low8(c.words[1]), low8(c.words[1] >> 8));
        if usize::from(node) >= PEER_COUNT || !is_domain(domain) {
            return Err(AdminStatus::BadIndex);
        }
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
        self.channels.enqueue(Frame { header, payload: c.bytes[16..].to_vec() });
        self.cx.count(Counter::MessagesSent);
        Ok(0)
    }

    fn message_queue(&mut self, c: &Command) -> Outcome {
        let domain = usize::from(c.index(DOMAIN_COUNT)?);
        let queue = low16(c.words[4]);
        argument(queue_or_none(queue))?;
        self.queues.events.message_queues[domain] = queue;
        Ok(0)
    }
}
