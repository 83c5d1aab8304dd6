//! Simulated nodes on a network that run by themselves: what the simulator that processes share and
//! a world in a program's own process have in common.
//!
//! | module | what |
//! |---|---|
//! | `mesh` | the wires between the nodes |
//! | [`live`] | a world that a thread runs, and the bus of a node for programs of this process |
//!
//! The clock runs while something is under way, and then as long as a NIC's timers may still have
//! work: what they do when nothing is outstanding (keepalives), or while a channel waits for a node
//! that nobody uses, does not keep it running.

pub mod live;
mod mesh;

use nic_model::device::{Device, HostBus};
use nic_model::link::Faults;
use nic_regs::csr;
use nic_regs::doorbell::{EVENT_OFFSET, PAGE_BYTES};

use host_driver::bus::{DOORBELL_BAR, REGISTER_BAR};

use mesh::Mesh;

/// Most cycles of a register read.
pub(crate) const ANSWER_CYCLES: u64 = 1_000_000;
/// Cycles that the clock goes on after a device has come to rest.
const REST_CYCLES: u64 = 4_096;
/// Most cycles that the clock runs so that others notice that a node is not used any more.
const NOTICE_MAX: u64 = 1 << 22;
/// Writes after which the device is read, which it answers behind them: what is written faster than
/// the device takes it waits with whoever writes.
const POSTED_MAX: u32 = 256;
/// Widest piece of a BAR write, in bytes; it does not cross a multiple of it.
const LINE_BYTES: u64 = 64;

/// The host of a node.
pub(crate) trait NodeHost: HostBus {
    /// Whether the device used its host since the last call.
    fn take_busy(&mut self) -> bool;

    /// Whether the device wrote something since the last call that a waiting program wants to see
    /// at once. It ends a run early.
    fn take_touched(&mut self) -> bool {
        false
    }
}

/// A NIC and its host.
struct Node<H> {
    device: Box<dyn Device + Send>,
    host: H,
    /// Writes since the last read.
    posted: u32,
    retry_timeout: u64,
    retry_limit: u64,
    moderation: u64,
    keepalive: u64,
}

impl<H> Node<H> {
    fn new(device: Box<dyn Device + Send>, host: H) -> Self {
        let mut node = Self {
            device,
            host,
            posted: 0,
            retry_timeout: 0,
            retry_limit: 0,
            moderation: 0,
            keepalive: 0,
        };
        node.set_timers();
        node
    }

    fn set_timers(&mut self) {
        self.retry_timeout = csr::RETRY_TIMEOUT::RESET.0.into();
        self.retry_limit = csr::RETRY_LIMIT::RESET.0.into();
        self.moderation = csr::MODERATION::RESET.0.into();
        self.keepalive = csr::KEEPALIVE::RESET.0.into();
    }

    /// Longest time in which the device does nothing although something is outstanding.
    fn patience(&self) -> u64 {
        let doublings = self.retry_limit.clamp(1, 15) - 1;
        (self.retry_timeout << doublings) + self.moderation + REST_CYCLES
    }

    /// Notes what a write says about the device's timers.
    fn note(&mut self, offset: u64, value: u32) {
        let value = value.into();
        match u32::try_from(offset) {
            Ok(csr::RETRY_TIMEOUT::OFFSET) => self.retry_timeout = value & 0xff_ffff,
            Ok(csr::RETRY_LIMIT::OFFSET) => self.retry_limit = value & 0xf,
            Ok(csr::MODERATION::OFFSET) => self.moderation = value & 0xff_ffff,
            Ok(csr::KEEPALIVE::OFFSET) => self.keepalive = value,
            Ok(csr::CONTROL::OFFSET) if value & u64::from(csr::CONTROL::SOFT_RESET.mask()) != 0 => {
                self.set_timers();
            }
            _ => {}
        }
    }
}

/// The pieces of a write as a device takes them: none crosses a line.
pub(crate) fn pieces(offset: u64, data: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let (mut at, mut left) = (offset, data);
    core::iter::from_fn(move || {
        let line = usize::try_from(LINE_BYTES - at % LINE_BYTES).unwrap_or(1);
        let (piece, rest) = left.split_at(line.min(left.len()));
        let start = at;
        (at, left) = (at + piece.len() as u64, rest);
        (!piece.is_empty()).then_some((start, piece))
    })
}

/// See the module.
pub(crate) struct World<H> {
    nodes: Vec<Node<H>>,
    mesh: Mesh,
    now: u64,
    /// The clock runs until then.
    until: u64,
    /// Those who are used have noticed by then that another is not any more.
    noticed: u64,
}

impl<H> core::fmt::Debug for World<H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "World({} nodes at cycle {})", self.nodes.len(), self.now)
    }
}

impl<H: NodeHost> World<H> {
    /// A world of these nodes, whose wires all have this latency, in cycles, and these faults.
    pub(crate) fn new(
        latency: u64,
        faults: &Faults,
        nodes: impl IntoIterator<Item = (Box<dyn Device + Send>, H)>,
    ) -> Self {
        let nodes: Vec<_> =
            nodes.into_iter().map(|(device, host)| Node::new(device, host)).collect();
        let mesh = Mesh::new(nodes.len(), latency, faults);
        Self { nodes, mesh, now: 0, until: REST_CYCLES, noticed: 0 }
    }

    /// Cycles run so far.
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// The host of a node.
    pub(crate) fn host(&mut self, node: usize) -> &mut H {
        &mut self.nodes[node].host
    }

    /// What is around the nodes, in order, to change it.
    pub(crate) fn hosts_mut(&mut self) -> impl Iterator<Item = &mut H> {
        self.nodes.iter_mut().map(|node| &mut node.host)
    }

    /// Says whether somebody uses a node; at first nobody does.
    pub(crate) fn set_used(&mut self, node: usize, used: bool) {
        self.mesh.set_used(node, used);
    }

    /// Frames that the network dropped because their source was not the node that sent them.
    pub(crate) const fn forged(&self) -> u64 {
        self.mesh.forged()
    }

    /// Whether the clock runs.
    pub(crate) const fn is_running(&self) -> bool {
        self.now < self.until
    }

    /// Lets the clock run some cycles more, at least.
    pub(crate) fn run_for(&mut self, cycles: u64) {
        self.until = self.until.max(self.now.saturating_add(cycles));
    }

    /// Lets the clock run until no device that something was told, and then waits, has more to do.
    pub(crate) fn patience(&self) -> u64 {
        self.nodes.iter().map(Node::patience).max().unwrap_or(REST_CYCLES)
    }

    /// Lets the clock run until a device that was told something of no consequence rests again.
    pub(crate) fn rest(&mut self) {
        self.run_for(REST_CYCLES);
    }

    /// Runs some cycles of every node. True if a host was touched, which ends them early.
    pub(crate) fn run(&mut self, cycles: u64) -> bool {
        let mut touched = false;
        for _ in 0..cycles {
            for (number, node) in self.nodes.iter_mut().enumerate() {
                node.device.step(self.now, &mut node.host, &mut self.mesh.end(number));
                touched |= node.host.take_touched();
            }
            self.now += 1;
            if touched {
                break;
            }
        }
        let used = self.nodes.iter_mut().fold(false, |used, node| used | node.host.take_busy());
        if used | self.mesh.take_busy() {
            self.run_for(self.patience());
        } else if self.nodes.iter().any(|node| node.device.busy()) {
            self.rest();
        }
        touched
    }

    /// Reads 1 to 8 bytes of a BAR. None if the device does not answer, [`ANSWER_CYCLES`].
    pub(crate) fn read(&mut self, node: usize, bar: u8, offset: u64, length: usize) -> Option<u64> {
        self.nodes[node].posted = 0;
        self.nodes[node].device.bar_read(bar, offset, length);
        let end = self.now + ANSWER_CYCLES;
        while self.now < end {
            if let Some(value) = self.nodes[node].device.bar_response() {
                return Some(value);
            }
            self.run(1);
        }
        None
    }

    /// Writes bytes of a BAR.
    pub(crate) fn write(&mut self, node: usize, bar: u8, offset: u64, data: &[u8]) {
        for (at, piece) in pieces(offset, data) {
            if bar == REGISTER_BAR
                && let Some(value) = piece.first_chunk().map(|value| u32::from_le_bytes(*value))
            {
                self.nodes[node].note(at, value);
            }
            self.write_quietly(node, bar, at, piece);
        }
        // Who waits for events tells so by a doorbell, which begins nothing.
        let is_event = bar == DOORBELL_BAR && offset % PAGE_BYTES == EVENT_OFFSET;
        self.run_for(if is_event { REST_CYCLES } else { self.patience() });
    }

    /// Writes a piece of a BAR that is of no consequence: nothing is outstanding after it.
    pub(crate) fn write_quietly(&mut self, node: usize, bar: u8, offset: u64, data: &[u8]) {
        self.nodes[node].device.bar_write(bar, offset, data);
        self.nodes[node].posted += 1;
        if self.nodes[node].posted >= POSTED_MAX {
            // A device that does not answer is found by the next read of its user.
            let _ = self.read(node, REGISTER_BAR, csr::ID::OFFSET.into(), 4);
        }
    }

    /// Forgets what was written to a device's timers: it was reset. The clock does not run for them
    /// any more.
    pub(crate) fn reset_timers(&mut self, node: usize) {
        self.nodes[node].set_timers();
        let longest = self.now.saturating_add(self.patience());
        self.noticed = self.noticed.min(self.now.saturating_add(self.notice()));
        self.until = self.until.min(longest.max(self.noticed));
    }

    /// Lets the clock run until those who are used notice that a node is not any more: their next
    /// keepalive is answered.
    pub(crate) fn run_until_noticed(&mut self) {
        self.noticed = self.now.saturating_add(self.notice());
        self.until = self.until.max(self.noticed);
    }

    /// How long that takes.
    fn notice(&self) -> u64 {
        let used = self.nodes.iter().enumerate().filter(|(node, _)| self.mesh.is_used(*node));
        let longest = used.map(|(_, node)| node.keepalive).max();
        longest.map_or(0, |longest| (longest + self.patience()).min(NOTICE_MAX))
    }

    /// Puts another device in a node's place.
    pub(crate) fn replace(&mut self, node: usize, device: Box<dyn Device + Send>) {
        self.mesh.cut(node, self.now);
        self.nodes[node].device = device;
    }
}
