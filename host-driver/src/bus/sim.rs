//! A world of simulated nodes: devices, their hosts, the links between them, one clock.
//!
//! ```text
//!  thread a                 thread b              baton: one thread runs at a time, in a seeded order
//!     | SimBus (node 0)        | SimBus (node 1)
//!     v                        v
//!  +------------------------ World ----------------------------+
//!  | node 0: Device <-> SimHost      node 1: Device <-> SimHost |
//!  |           |  Link ends (wire, faults)  |                   |
//!  +-----------+----------------------------+-------------------+
//! ```
//! Time passes only in `relax`, in register reads and in waits. With the same seed and the same
//! program a run takes the same number of cycles, also with several threads, if each of them holds
//! a [`Seat`]: create all seats first, then start the threads, and let each enter its seat. A
//! thread with a seat must not block on anything but the world while another one waits for the
//! baton (join threads from a thread without a seat). A thread of the library (`Bus::thread_seat`)
//! is a guest: it has turns among the seats, and where there are none, while a thread without a seat
//! lets time pass.

mod baton;
mod crew;
mod empty_slot;
mod host;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use nic_model::device::{Device, Link};
use nic_model::link::{Side, Wire};
use nic_regs::doorbell::{EVENT_OFFSET, PAGE_BYTES};
use nic_regs::limits::CLOCK_KHZ;

use crate::bus::{Bar, Bus, DOORBELL_BAR, Dma, Irq, ThreadSeat, Wait, register_name};
use crate::dma::DmaMemory;
use crate::error::{Error, Result};
use crate::sync::{Signal, lock};

use baton::Baton;
pub use baton::{BatonGuard, Seat};
use crew::Crew;
use empty_slot::EmptySlot;
pub use host::{IommuFault, MSI_BASE, MSI_END, SimHost};
pub use wire::{NoLink, SharedWire};

/// Settings of a world.
#[derive(Clone, Copy, Debug)]
pub struct WorldConfig {
    /// Seed of the order in which threads run.
    pub seed: u64,
    /// Most cycles that one `relax` runs.
    pub quantum: u64,
    /// Most cycles that a register read may take.
    pub read_limit: u64,
    /// Cycles without any activity after which unbounded waits are a deadlock (a panic that names
    /// who waits for what).
    pub deadlock_limit: u64,
    /// Cycles that all devices must rest for [`World::run_until_idle`].
    pub idle_cycles: u64,
    /// Clock of the devices, in kHz.
    pub clock_khz: u32,
    /// Words that the processor writes to a line at once, 1 to 8.
    pub line_words: usize,
    /// Cycles that the nodes run side by side, on a thread each, before they meet; at most the
    /// latency of every link. Programs see what happened only there. 1: one after the other.
    pub stretch: u64,
}

impl Default for WorldConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            quantum: 64,
            read_limit: 1_000_000,
            deadlock_limit: 25_000_000,
            idle_cycles: 2_000,
            clock_khz: CLOCK_KHZ,
            line_words: 8,
            stretch: 1,
        }
    }
}

struct Node {
    device: Box<dyn Device + Send>,
    host: SimHost,
    link: Box<dyn Link + Send>,
}

impl Node {
    /// Runs some cycles. True if its host saw something small.
    fn run(&mut self, now: u64, cycles: u64) -> bool {
        for cycle in 0..cycles {
            self.device.step(now + cycle, &mut self.host, &mut *self.link);
        }
        self.host.take_touched()
    }
}

struct State {
    config: WorldConfig,
    now: u64,
    last_activity: u64,
    nodes: Vec<Node>,
    crew: Crew,
    baton: Baton,
}

impl State {
    /// Runs up to `cycles` cycles. True if a host saw something small, which ends them early.
    fn advance(&mut self, cycles: u64) -> bool {
        let end = self.now + cycles;
        while self.now < end {
            if self.pass((end - self.now).min(self.config.stretch.max(1))) {
                return true;
            }
        }
        false
    }

    /// Runs one cycle of every node, in order of their numbers. True if a host saw something small
    /// (a status, an event, an interrupt) that a waiting program may want to look at.
    fn step(&mut self) -> bool {
        self.pass(1)
    }

    /// Runs some cycles of every node: one in turn, more of them side by side.
    fn pass(&mut self, cycles: u64) -> bool {
        let touched = if cycles > 1 {
            self.crew.run(&mut self.nodes, self.now, cycles)
        } else {
            let mut touched = false;
            for node in &mut self.nodes {
                touched |= node.run(self.now, cycles);
            }
            touched
        };
        self.now += cycles;
        if touched {
            self.last_activity = self.now;
        }
        touched
    }
}

pub(crate) struct Shared {
    id: u64,
    state: Mutex<State>,
    turn: Condvar,
    /// Copy of `State::now`, readable without the lock.
    now: AtomicU64,
    clock_khz: u32,
}

/// The simulated world; clones are the same world.
#[derive(Clone)]
pub struct World {
    shared: Arc<Shared>,
}

impl core::fmt::Debug for World {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "World({} at cycle {})", self.shared.id, self.now())
    }
}

impl World {
    /// A world without nodes.
    #[must_use]
    pub fn new(config: WorldConfig) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let baton = Baton::new(config.seed);
        let state = State {
            config,
            now: 0,
            last_activity: 0,
            nodes: Vec::new(),
            crew: Crew::default(),
            baton,
        };
        Self {
            shared: Arc::new(Shared {
                id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
                state: Mutex::new(state),
                turn: Condvar::new(),
                now: AtomicU64::new(0),
                clock_khz: config.clock_khz,
            }),
        }
    }

    /// Adds a node and gives its bus. The link ends of the nodes are the caller's to connect.
    pub fn add_node(
        &self,
        device: Box<dyn Device + Send>,
        link: Box<dyn Link + Send>,
    ) -> Arc<SimBus> {
        let mut state = lock(&self.shared.state);
        let node = state.nodes.len();
        state.nodes.push(Node { device, host: SimHost::new(node), link });
        Arc::new(SimBus { shared: Arc::clone(&self.shared), node })
    }

    /// A world of two nodes on a wire, and their buses.
    #[must_use]
    pub fn pair(
        config: WorldConfig,
        devices: [Box<dyn Device + Send>; 2],
        wire: Wire,
    ) -> (Self, [Arc<SimBus>; 2], SharedWire) {
        let world = Self::new(config);
        let wire = SharedWire::new(wire);
        let [a, b] = devices;
        let buses = [world.add_node(a, wire.end(Side::A)), world.add_node(b, wire.end(Side::B))];
        (world, buses, wire)
    }

    /// Cycles run so far.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.shared.now.load(Ordering::Acquire)
    }

    /// A place in the baton for one thread; see the module's text for the order of things.
    #[must_use]
    pub fn join_baton(&self, name: &str) -> Seat {
        Seat::new(Arc::clone(&self.shared), name, false)
    }

    /// Runs `cycles` cycles.
    pub fn run(&self, cycles: u64) {
        let mut state = self.shared.enter();
        let end = state.now + cycles;
        while state.now < end {
            let left = end - state.now;
            let guests = state.baton.has_guests();
            let quantum = if guests { state.config.quantum } else { left };
            state.advance(left.min(quantum));
            if guests {
                state = self.shared.let_guests_run(state);
            }
        }
        self.shared.publish(&state);
    }

    /// Runs up to `cycles` cycles, fewer if a host saw something small that a waiting program may
    /// want to look at. True then.
    #[must_use]
    pub fn advance(&self, cycles: u64) -> bool {
        let mut state = self.shared.enter();
        let touched = state.advance(cycles);
        self.shared.publish(&state);
        touched
    }

    /// Whether a device has work of its own under way. Frames on a wire and timers are not.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        lock(&self.shared.state).nodes.iter().any(|node| node.device.busy())
    }

    /// Time in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.shared.now_ns()
    }

    /// Runs until no device has had work for a while; gives the cycles run.
    ///
    /// # Errors
    /// [`Error::StillBusy`] after `max_cycles`.
    pub fn run_until_idle(&self, max_cycles: u64) -> Result<u64> {
        let mut state = self.shared.enter();
        let start = state.now;
        let mut resting = 0;
        while resting < state.config.idle_cycles {
            if state.now - start >= max_cycles {
                let busy = |(i, node): (usize, &Node)| node.device.busy().then_some(i);
                let nodes = state.nodes.iter().enumerate().filter_map(busy).collect();
                self.shared.publish(&state);
                return Err(Error::StillBusy { cycles: max_cycles, nodes });
            }
            let touched = state.step();
            if touched && state.baton.has_guests() {
                state = self.shared.let_guests_run(state);
            }
            let busy = touched || state.nodes.iter().any(|node| node.device.busy());
            resting = if busy { 0 } else { resting + 1 };
        }
        self.shared.publish(&state);
        Ok(state.now - start)
    }

    /// Accesses of a node's device to host memory that no mapping allowed, oldest first (at most
    /// 1,024 are kept).
    #[must_use]
    pub fn faults(&self, node: usize) -> Vec<IommuFault> {
        lock(&self.shared.state).nodes[node].host.faults().to_vec()
    }

    /// How many interrupts a node's device raised.
    #[must_use]
    pub fn interrupt_count(&self, node: usize) -> u64 {
        lock(&self.shared.state).nodes[node].host.interrupt_count()
    }

    /// Pulls a node's card out: from now on its reads give all ones, writes to it lead nowhere, and
    /// it does nothing any more, neither to its host nor on its link.
    pub fn unplug(&self, node: usize) {
        lock(&self.shared.state).nodes[node].device = Box::new(EmptySlot::default());
    }

    /// Cuts a node from the world by replacing its link end.
    pub fn replace_link(&self, node: usize, link: Box<dyn Link + Send>) -> Box<dyn Link + Send> {
        core::mem::replace(&mut lock(&self.shared.state).nodes[node].link, link)
    }
}

impl Shared {
    /// The state, for a thread that is about to act on the world.
    fn enter(&self) -> MutexGuard<'_, State> {
        let state = lock(&self.state);
        state.baton.check_turn(self.id);
        state
    }

    fn publish(&self, state: &State) {
        self.now.store(state.now, Ordering::Release);
    }

    /// Lets time pass, up to a quantum or to `limit` cycles, then gives the baton on.
    fn relax(&self, wait: Wait, limit: u64) {
        let mut state = self.enter();
        state.baton.note(self.id, wait);
        let cycles = state.config.quantum.min(limit);
        state.advance(cycles);
        self.publish(&state);
        let quiet = state.now - state.last_activity;
        if quiet > state.config.deadlock_limit && !wait.bounded && state.baton.all_unbounded() {
            let text = state.baton.describe(wait);
            drop(state);
            panic!("nothing happened for {quiet} simulated cycles, and nothing will: {text}");
        }
        drop(state);
        self.pass_baton(wait);
    }

    /// Gives guests their turns, if this thread has no seat.
    fn let_guests_run<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.publish(&state);
        drop(state);
        self.pass_baton(Wait::bounded("a run of the world", 0));
        self.enter()
    }
}

/// A node's bus.
pub struct SimBus {
    shared: Arc<Shared>,
    node: usize,
}

impl core::fmt::Debug for SimBus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SimBus(world {}, node {})", self.shared.id, self.node)
    }
}

impl SimBus {
    /// The node's number in its world.
    #[must_use]
    pub const fn node(&self) -> usize {
        self.node
    }

    /// Writes 1 to 64 bytes to a BAR, well-formed or not.
    pub fn write_raw(&self, bar: u8, offset: u64, data: &[u8]) {
        let mut state = self.shared.enter();
        let event_doorbell = bar == DOORBELL_BAR && offset % PAGE_BYTES == EVENT_OFFSET;
        if !event_doorbell {
            state.last_activity = state.now;
        }
        state.nodes[self.node].device.bar_write(bar, offset, data);
    }

    /// Reads 1 to 8 bytes from a BAR, well-formed or not.
    ///
    /// # Errors
    /// [`Error::ReadTimeout`] if the device does not answer.
    pub fn read_raw(&self, bar: u8, offset: u64, length: usize) -> Result<u64> {
        let mut state = self.shared.enter();
        state.nodes[self.node].device.bar_read(bar, offset, length);
        for _ in 0..state.config.read_limit {
            if let Some(value) = state.nodes[self.node].device.bar_response() {
                self.shared.publish(&state);
                return Ok(value);
            }
            state.step();
        }
        self.shared.publish(&state);
        let cycles = state.config.read_limit;
        Err(Error::ReadTimeout { register: register_name(bar, offset), bar, cycles })
    }
}

impl Bar for SimBus {
    #[expect(clippy::cast_possible_truncation, reason = "the answer to a read of 4 bytes")]
    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        self.read_raw(bar, offset, 4).map(|value| value as u32)
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) {
        self.write_raw(bar, offset, &value.to_le_bytes());
    }

    fn write64(&self, bar: u8, offset: u64, value: u64) {
        self.write_raw(bar, offset, &value.to_le_bytes());
    }

    fn write_line(&self, bar: u8, offset: u64, words: &[u64]) {
        let split = lock(&self.shared.state).config.line_words.clamp(1, 8);
        let mut offset = offset;
        for piece in words.chunks(split) {
            let bytes: Vec<u8> = piece.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.write_raw(bar, offset, &bytes);
            offset += bytes.len() as u64;
        }
    }
}

impl Dma for SimBus {
    fn map(&self, memory: &DmaMemory) -> Result<u64> {
        Ok(self.shared.enter().nodes[self.node].host.map(memory))
    }

    fn unmap(&self, bus_address: u64) {
        self.shared.enter().nodes[self.node].host.unmap(bus_address);
    }
}

impl Irq for SimBus {
    fn message(&self, vector: u16) -> (u64, u32) {
        (MSI_BASE, u32::from(vector))
    }

    fn take_interrupt(&self, vector: u16) -> bool {
        self.shared.enter().nodes[self.node].host.take_interrupt(vector)
    }

    fn wait_interrupt(&self, vector: u16, bound_ns: u64, wait: Wait) -> bool {
        let end = self.shared.now_ns().saturating_add(bound_ns);
        loop {
            if self.take_interrupt(vector) {
                return true;
            }
            let now = self.shared.now_ns();
            if now >= end {
                return false;
            }
            self.shared.relax(wait, self.shared.cycles(end - now));
        }
    }

    fn raise_interrupt(&self, vector: u16) {
        lock(&self.shared.state).nodes[self.node].host.raise_interrupt(vector);
    }
}

impl Shared {
    fn now_ns(&self) -> u64 {
        let cycles = u128::from(self.now.load(Ordering::Acquire));
        u64::try_from(cycles * 1_000_000 / u128::from(self.clock_khz)).unwrap_or(u64::MAX)
    }

    /// Cycles of a time, rounded up.
    fn cycles(&self, ns: u64) -> u64 {
        let cycles = (u128::from(ns) * u128::from(self.clock_khz)).div_ceil(1_000_000);
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }
}

impl Bus for SimBus {
    fn relax(&self, wait: Wait) {
        self.shared.relax(wait, u64::MAX);
    }

    fn now_ns(&self) -> u64 {
        self.shared.now_ns()
    }

    fn wait_signal(&self, signal: &Signal, seen: u64, bound_ns: u64, wait: Wait) {
        let end = self.shared.now_ns().saturating_add(bound_ns);
        while signal.count() == seen && self.shared.now_ns() < end {
            let left = end - self.shared.now_ns();
            self.shared.relax(wait, self.shared.cycles(left));
        }
    }

    fn thread_seat(&self, name: &str) -> Box<dyn ThreadSeat> {
        Box::new(Seat::new(Arc::clone(&self.shared), name, true))
    }

    fn name(&self) -> String {
        format!("of node {}", self.node)
    }
}
