//! A clock that runs while something is pending: what a simulator that processes share and a
//! simulation in a program's own process have in common.
//!
//! The clock runs while a device or the network works, and then as long as a device's timers may
//! still have work. Timers that fire although nothing is outstanding (keepalives), or while a channel
//! waits for a node that nobody uses, do not keep it running.

use std::sync::{Arc, Mutex};

use nic_model::link::Faults;
use nic_regs::csr;
use nic_regs::doorbell::{EVENT_OFFSET, PAGE_BYTES};
use nic_regs::limits::RETRY_CYCLES_MAX;

use host_driver::bus::{DOORBELL_BAR, REGISTER_BAR};
use host_driver::sync::lock;

use super::network::{Mesh, Network, SharedNetwork};
use super::{NodeHost, SimulatedDevice, Simulation};

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

/// What is known of a device's timers, and its use.
#[derive(Debug)]
struct Timers {
    /// Writes since the last read.
    posted: u32,
    retry_timeout: u64,
    retry_limit: u64,
    moderation: u64,
    keepalive: u64,
    /// A program uses the node.
    used: bool,
}

impl Timers {
    fn new() -> Self {
        let mut timers = Self {
            posted: 0,
            retry_timeout: 0,
            retry_limit: 0,
            moderation: 0,
            keepalive: 0,
            used: false,
        };
        timers.reset();
        timers
    }

    fn reset(&mut self) {
        self.retry_timeout = csr::RETRY_TIMEOUT::RESET.0.into();
        self.retry_limit = csr::RETRY_LIMIT::RESET.0.into();
        self.moderation = csr::MODERATION::RESET.0.into();
        self.keepalive = csr::KEEPALIVE::RESET.0.into();
    }

    /// Longest time in which the device does nothing although something is outstanding.
    fn longest(&self) -> u64 {
        let doublings = self.retry_limit.clamp(1, 15) - 1;
        let time_out = (self.retry_timeout << doublings).min(RETRY_CYCLES_MAX);
        time_out + self.moderation + REST_CYCLES
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
                self.reset();
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
#[derive(Debug)]
pub(crate) struct OnDemand<H> {
    simulation: Simulation<H>,
    network: Arc<Mutex<Mesh>>,
    timers: Vec<Timers>,
    /// The clock runs until then.
    until: u64,
    /// The nodes in use have noticed by then that another node is not used any more.
    noticed: u64,
    /// Nothing happened in the last run: the clock only runs for timers.
    idle: bool,
}

impl<H: NodeHost + 'static> OnDemand<H> {
    /// Connects these nodes by a mesh of wires, which all have this latency, in cycles, and these
    /// faults.
    pub(crate) fn new(
        latency: u64,
        faults: &Faults,
        nodes: impl IntoIterator<Item = (SimulatedDevice, H)>,
    ) -> Self {
        let nodes: Vec<_> = nodes.into_iter().collect();
        let timers = nodes.iter().map(|_| Timers::new()).collect();
        let network = Arc::new(Mutex::new(Mesh::new(nodes.len(), latency, faults)));
        let simulation = Simulation::new(network.clone(), nodes);
        Self { simulation, network, timers, until: REST_CYCLES, noticed: 0, idle: false }
    }

    /// Cycles run so far.
    pub(crate) const fn now(&self) -> u64 {
        self.simulation.now()
    }

    /// The host of a node.
    pub(crate) fn host(&mut self, node: usize) -> &mut H {
        self.simulation.host_mut(node)
    }

    /// The hosts of all nodes, in order.
    pub(crate) fn hosts(&mut self) -> impl Iterator<Item = &mut H> {
        self.simulation.hosts()
    }

    /// Says whether a program uses a node; at first none does.
    pub(crate) fn set_used(&mut self, node: usize, used: bool) {
        self.timers[node].used = used;
        lock(&self.network).set_used(node, used);
    }

    /// Frames that the network dropped because their source was not the node that sent them.
    pub(crate) fn forged(&self) -> u64 {
        lock(&self.network).forged()
    }

    /// Whether the clock runs.
    pub(crate) const fn is_running(&self) -> bool {
        self.now() < self.until
    }

    /// Whether nothing happened in the last run: no device works, and nothing is on the network.
    pub(crate) const fn is_idle(&self) -> bool {
        self.idle
    }

    /// Lets the clock run some cycles more, at least.
    pub(crate) fn run_for(&mut self, cycles: u64) {
        self.until = self.until.max(self.now().saturating_add(cycles));
    }

    /// Lets the clock run until a device rests again after a write that started nothing.
    pub(crate) fn rest(&mut self) {
        self.run_for(REST_CYCLES);
    }

    /// Longest time, in cycles, after which a device may act on something that is outstanding.
    fn longest(&self) -> u64 {
        self.timers.iter().map(Timers::longest).max().unwrap_or(REST_CYCLES)
    }

    /// Runs some cycles of every node. True if a host was touched, which ends them early.
    pub(crate) fn run(&mut self, cycles: u64) -> bool {
        let touched = self.simulation.run(cycles);
        let used = self.hosts().fold(false, |used, host| used | host.take_busy());
        let sent = lock(&self.network).take_busy();
        let busy = self.simulation.busy_nodes().next().is_some();
        self.idle = !(used | sent | busy);
        if used | sent {
            self.run_for(self.longest());
        } else if busy {
            self.rest();
        }
        touched
    }

    /// Reads 1 to 8 bytes of a BAR. None if the device does not answer within [`ANSWER_CYCLES`].
    pub(crate) fn read(&mut self, node: usize, bar: u8, offset: u64, length: usize) -> Option<u64> {
        self.timers[node].posted = 0;
        let start = self.now();
        let value = self.simulation.read(node, (bar, offset), length, ANSWER_CYCLES);
        if self.now() > start {
            // Looks at what the devices did meanwhile.
            self.run(0);
        }
        value
    }

    /// Writes bytes of a BAR.
    pub(crate) fn write(&mut self, node: usize, bar: u8, offset: u64, data: &[u8]) {
        for (at, piece) in pieces(offset, data) {
            if bar == REGISTER_BAR
                && let Some(value) = piece.first_chunk().map(|value| u32::from_le_bytes(*value))
            {
                self.timers[node].note(at, value);
            }
            self.write_quietly(node, bar, at, piece);
        }
        // An event doorbell moves a consumer index and starts nothing.
        let is_event = bar == DOORBELL_BAR && offset % PAGE_BYTES == EVENT_OFFSET;
        self.run_for(if is_event { REST_CYCLES } else { self.longest() });
    }

    /// Writes a piece of a BAR after which nothing is outstanding.
    pub(crate) fn write_quietly(&mut self, node: usize, bar: u8, offset: u64, data: &[u8]) {
        self.simulation.write(node, bar, offset, data);
        self.timers[node].posted += 1;
        if self.timers[node].posted >= POSTED_MAX {
            // A device that does not answer is found by the next read of its user.
            let _ = self.read(node, REGISTER_BAR, csr::ID::OFFSET.into(), 4);
        }
    }

    /// Forgets what was written to a device's timers: it was reset. The clock does not run for them
    /// any more.
    pub(crate) fn reset_timers(&mut self, node: usize) {
        self.timers[node].reset();
        let longest = self.now().saturating_add(self.longest());
        self.noticed = self.noticed.min(self.now().saturating_add(self.notice()));
        self.until = self.until.min(longest.max(self.noticed));
    }

    /// Lets the clock run until the nodes in use notice that a node is not used any more: their next
    /// keepalive is answered.
    pub(crate) fn run_until_noticed(&mut self) {
        self.noticed = self.now().saturating_add(self.notice());
        self.until = self.until.max(self.noticed);
    }

    /// How long that takes, in cycles.
    fn notice(&self) -> u64 {
        let used = self.timers.iter().filter(|timers| timers.used);
        let longest = used.map(|timers| timers.keepalive).max();
        longest.map_or(0, |longest| (longest + self.longest()).min(NOTICE_MAX))
    }

    /// Puts a wrapper around the network, as [`Simulation::wrap_network`].
    pub(crate) fn wrap_network(&mut self, wrap: impl FnOnce(SharedNetwork) -> SharedNetwork) {
        self.simulation.wrap_network(wrap);
    }

    /// Puts another device in a node's place.
    pub(crate) fn replace(&mut self, node: usize, device: SimulatedDevice) {
        self.simulation.replace(node, device);
    }
}
