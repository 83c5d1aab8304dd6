//! The admin ring and its commands.

use nic_regs::admin::{
    AdminStatus, COMPLETION_BYTES, DONE, ENTRY_BYTES, NO_QUEUE, Opcode, PeerState,
};
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::csr::{ADMIN_SIZE, CONTROL};
use nic_regs::limits::{
    CREDITS_MAX, DOMAIN_COUNT, EVENT_QUEUE_COUNT, MAX_TRANSFER_BYTES, MSIX_VECTOR_COUNT,
    PEER_COUNT, REGION_COUNT, VI_COUNT,
};
use nic_regs::tpt::{RIGHT_RDMA_READ, RIGHT_RDMA_WRITE, RIGHT_VALID, Region};
use nic_regs::vi::{Reliability, State, rdma};

use crate::bits::{low8, low16, size};
use crate::device::HostBus;
use crate::event::EventQueue;
use crate::nic::Model;
use crate::tpt::Owner;
use crate::trace::Trace;
use crate::vi::{Input, Owed, Remote, Vi};

/// Progress of the admin ring.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AdminRing {
    /// Entries completed since reset.
    pub(crate) head: u16,
    /// An entry could not be read.
    pub(crate) failed: bool,
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

impl Model {
    /// Whether the ring has an entry that it may execute.
    pub(crate) fn admin_busy(&self) -> bool {
        self.csr.admin_tail() != self.admin.head
            && !self.admin.failed
            && CONTROL(self.csr.control).get(CONTROL::ENABLE) == 1
    }

    /// Executes one command.
    pub(crate) fn admin_step(&mut self, host: &mut dyn HostBus) {
        let log2 = ADMIN_SIZE(self.csr.admin_size).get(ADMIN_SIZE::LOG2);
        let slot = u64::from(self.admin.head) & ((1 << log2) - 1);
        let address = self.csr.admin_base() + ENTRY_BYTES * slot;
        let mut bytes = [0; size(ENTRY_BYTES)];
        if self.host_read(host, address, &mut bytes).is_err() {
            self.admin.failed = true;
            self.log(ErrorCode::AdminFetch, 0, u32::from(self.admin.head));
            return;
        }
        let command = Command::new(bytes);
        let outcome = match Opcode::from_bits(command.words[0]) {
            Some(opcode) => self.execute(opcode, &command, host),
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
        host.write(address, &completion);
        self.count(Counter::AdminCommands);
        if status != AdminStatus::Ok {
            self.count(Counter::AdminErrors);
        }
        self.trace(Trace::Admin { opcode: command.words[0], index: command.words[1], status });
        self.admin.head = self.admin.head.wrapping_add(1);
    }

    fn execute(&mut self, opcode: Opcode, c: &Command, host: &mut dyn HostBus) -> Outcome {
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
            Opcode::EventDestroy => self.event_destroy(c, host),
            Opcode::PeerOpen => self.admin_peer_open(c),
            Opcode::PeerClose => self.admin_peer_close(c, host),
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
        state(self.regions.get(index).is_none())?;
        self.regions.set(index, region);
        Ok(0)
    }

    /// Host accesses are immediate here, so all that the fence has to wait for is in the
    /// descriptors at hand.
    fn region_clear(&mut self, c: &Command) -> Outcome {
        let index = c.index(REGION_COUNT)?;
        state(self.regions.get(index).is_some())?;
        self.regions.clear(index);
        self.forget_all_caches();
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
        state(self.vi(index).state == State::Free)?;
        let owner = Owner { tag: low16(c.words[4] >> 16), domain };
        let allows = self.rdma_bits(c.words[7]);
        let vi = self.vi_mut(index);
        *vi = Vi { owner, level, max_transfer, event_queues, allows, ..Vi::default() };
        vi.go(Input::Create);
        Ok(0)
    }

    /// The RDMA that a word of a command allows, on a device that has it.
    const fn rdma_bits(&self, word: u32) -> u32 {
        let write = if self.features.rdma_write { rdma::WRITE } else { 0 };
        let read = if self.features.rdma_read { rdma::READ } else { 0 };
        word & (write | read)
    }

    fn vi_destroy(&mut self, c: &Command) -> Outcome {
        let index = c.index(VI_COUNT)?;
        state(self.vi(index).state == State::Idle)?;
        if self.vis.first_owed(index).is_some() {
            return Err(AdminStatus::Busy);
        }
        self.clear_work(index);
        self.vi_mut(index).go(Input::Destroy);
        Ok(0)
    }

    fn vi_connect(&mut self, c: &Command) -> Outcome {
        let index = c.index(VI_COUNT)?;
        let remote = Remote {
            node: low8(c.words[4]),
            vi: low16(c.words[4] >> 16),
            connection: low16(c.words[5]),
            allows: self.rdma_bits(c.words[5] >> rdma::PEER_LSB),
        };
        argument(usize::from(remote.node) < PEER_COUNT)?;
        state(self.vi(index).state == State::Idle)?;
        if self.vis.first_owed(index).is_some() {
            return Err(AdminStatus::Busy);
        }
        let vi = self.vi_mut(index);
        vi.remote = remote;
        vi.message = 0;
        vi.go(Input::Connect);
        self.make_ready(index);
        Ok(0)
    }

    fn vi_disconnect(&mut self, c: &Command) -> Outcome {
        let index = c.index(VI_COUNT)?;
        let before = self.vi(index);
        state(before.state != State::Free)?;
        let tells = before.state == State::Connected || before.stopped_untold();
        self.clear_work(index);
        self.vi_mut(index).go(Input::Disconnect);
        if tells {
            self.owe(index, Owed::Fin);
        }
        Ok(0)
    }

    fn clear_work(&mut self, vi: u16) {
        self.vi_mut(vi).clear_work();
        self.events.forget_vi(vi);
        self.forget_caches(vi);
    }

    fn vi_query(&mut self, c: &Command) -> Outcome {
        let index = c.index(VI_COUNT)?;
        let vi = self.vi(index);
        Ok(vi.state as u32
            | (vi.reason as u32) << 4
            | u32::from(self.is_sending(index)) << 12
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
        state(!self.events.queues[index].exists)?;
        self.events.queues[index] = queue;
        Ok(0)
    }

    fn event_destroy(&mut self, c: &Command, host: &mut dyn HostBus) -> Outcome {
        let number = c.index(EVENT_QUEUE_COUNT)?;
        let queue = &mut self.events.queues[usize::from(number)];
        state(queue.exists)?;
        queue.exists = false;
        // What was put off is now lost.
        self.drain(number, host);
        Ok(0)
    }

    fn admin_peer_open(&mut self, c: &Command) -> Outcome {
        let node = low8(u32::from(c.index(PEER_COUNT)?));
        let granted = low8(c.words[5]);
        argument((1..=CREDITS_MAX).contains(&usize::from(granted)))?;
        state(self.channels.peer(node).state == PeerState::Closed)?;
        self.peer_open(node, c.words[4], granted);
        Ok(0)
    }

    fn admin_peer_close(&mut self, c: &Command, host: &mut dyn HostBus) -> Outcome {
        let node = low8(u32::from(c.index(PEER_COUNT)?));
        state(self.channels.peer(node).state != PeerState::Closed)?;
        self.peer_close(node, host);
        Ok(0)
    }

    fn message_send(&mut self, c: &Command) -> Outcome {
        let (node, domain) = (low8(c.words[1]), low8(c.words[1] >> 8));
        if usize::from(node) >= PEER_COUNT || !is_domain(domain) {
            return Err(AdminStatus::BadIndex);
        }
        match self.send_message(node, u16::from(domain), &c.bytes[16..]) {
            AdminStatus::Ok => Ok(0),
            status => Err(status),
        }
    }

    fn message_queue(&mut self, c: &Command) -> Outcome {
        let domain = usize::from(c.index(DOMAIN_COUNT)?);
        let queue = low16(c.words[4]);
        argument(queue_or_none(queue))?;
        self.message_queues[domain] = queue;
        Ok(0)
    }
}
