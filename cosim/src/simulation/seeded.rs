//! The deterministic scheduler: time passes only while a program waits, and of the program's threads
//! one runs at a time, in a seeded order.
//!
//! ```text
//!  thread a                  thread b            one of them has the token
//!     | SeededBus (node 0)      | SeededBus (node 1)
//!     v                         v
//!  +-------------------- SeededSimulation ----------------------+
//!  | node 0: Device <-> HostMemory  node 1: Device <-> HostMemory |
//!  |           `------------- Network --------------'             |
//!  +--------------------------------------------------------------+
//! ```
//! Time passes in `relax`, in register reads and in waits. With the same seed and the same program a
//! run takes the same number of cycles, also with several threads, if each of them has a [`Slot`]:
//! create all slots first, then start the threads, and let each enter its slot. A thread with a slot
//! must not block on anything but the simulation while another one waits for the token (join threads
//! from a thread without a slot). A thread of the library (`Bus::spawn`) gets the token like the
//! others, and where no other thread has a slot, while a thread without one lets time pass.

#[cfg(test)]
mod tests;
mod token;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use nic_model::link::Wire;
use nic_regs::doorbell::{EVENT_OFFSET, PAGE_BYTES};
use nic_regs::limits::CLOCK_KHZ;
use nic_regs::pci::MSI_BASE;

use host_driver::bus::{Bar, Bus, DOORBELL_BAR, Dma, Irq, Wait, program_vectors, register_name};
use host_driver::error::{Error, Result};
use host_driver::sync::{Signal, lock};
use port::mapped::check_readable;
use port::memory::DmaMemory;

use super::host::{HostMemory, IommuFault};
use super::network::SharedNetwork;
use super::{SimulatedDevice, Simulation};

use token::Token;
pub use token::{Slot, TokenGuard};

/// Settings of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct SimulationConfig {
    /// Seed of the order in which threads run.
    pub seed: u64,
    /// Most cycles that one `relax` runs.
    pub quantum: u64,
    /// Most cycles that a register read may take.
    pub read_limit: u64,
    /// Cycles without any activity after which unbounded waits are a deadlock (a panic that names
    /// who waits for what).
    pub deadlock_limit: u64,
    /// Cycles that all devices must rest for [`SeededSimulation::run_until_idle`].
    pub idle_cycles: u64,
    /// Clock of the devices, in kHz.
    pub clock_khz: u32,
    /// Words that the processor writes to a line at once, 1 to 8.
    pub line_words: usize,
    /// Cycles that the nodes run side by side, on a thread each, before they meet; at most the
    /// latency of every link. Programs see what happened only there. 1: one after the other.
    pub stretch: u64,
}

impl Default for SimulationConfig {
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

struct State {
    config: SimulationConfig,
    simulation: Simulation<HostMemory>,
    last_activity: u64,
    token: Token,
}

impl State {
    const fn now(&self) -> u64 {
        self.simulation.now()
    }

    /// Runs up to `cycles` cycles. True if a host saw something small (a status, an event, an
    /// interrupt), which ends them early, since a waiting program may want to look at it.
    fn advance(&mut self, cycles: u64) -> bool {
        let end = self.now() + cycles;
        let mut touched = false;
        while self.now() < end && !touched {
            let left = end - self.now();
            touched = match self.config.stretch.min(left) {
                0 | 1 => self.simulation.run(left),
                stretch => self.simulation.run_side_by_side(stretch),
            };
        }
        if touched {
            self.last_activity = self.now();
        }
        touched
    }
}

struct Shared {
    id: u64,
    state: Mutex<State>,
    /// The token was handed on.
    handed: Condvar,
    /// Copy of [`State::now`], readable without the lock.
    now: AtomicU64,
    clock_khz: u32,
}

/// See the module; clones are the same simulation.
#[derive(Clone)]
pub struct SeededSimulation {
    shared: Arc<Shared>,
}

impl core::fmt::Debug for SeededSimulation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SeededSimulation({} at cycle {})", self.shared.id, self.now())
    }
}

impl SeededSimulation {
    /// Connects these devices to the ports of a network. Gives the buses of the nodes.
    pub fn new(
        config: SimulationConfig,
        network: SharedNetwork,
        devices: impl IntoIterator<Item = SimulatedDevice>,
    ) -> (Self, Vec<Arc<SeededBus>>) {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let node = |(number, device)| (device, HostMemory::new(number));
        let nodes: Vec<_> = devices.into_iter().enumerate().map(node).collect();
        let count = nodes.len();
        let state = State {
            config,
            simulation: Simulation::new(network, nodes),
            last_activity: 0,
            token: Token::new(config.seed),
        };
        let shared = Arc::new(Shared {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(state),
            handed: Condvar::new(),
            now: AtomicU64::new(0),
            clock_khz: config.clock_khz,
        });
        let bus = |node| Arc::new(SeededBus { shared: Arc::clone(&shared), node });
        let buses = (0..count).map(bus).collect();
        (Self { shared }, buses)
    }

    /// Two nodes on a wire, and their buses.
    ///
    /// # Panics
    /// Never: two devices have two buses.
    #[must_use]
    pub fn pair(
        config: SimulationConfig,
        devices: [SimulatedDevice; 2],
        wire: Wire,
    ) -> (Self, [Arc<SeededBus>; 2], Arc<Mutex<Wire>>) {
        let wire = Arc::new(Mutex::new(wire));
        let (simulation, buses) = Self::new(config, wire.clone(), devices);
        (simulation, buses.try_into().expect("two buses"), wire)
    }

    /// One node whose cable leads nowhere, and its bus.
    #[must_use]
    pub fn single(config: SimulationConfig, device: SimulatedDevice) -> (Self, Arc<SeededBus>) {
        let wire = Arc::new(Mutex::new(Wire::new(1)));
        let (simulation, mut buses) = Self::new(config, wire, [device]);
        simulation.set_connected(0, false);
        (simulation, buses.remove(0))
    }

    /// Cycles run so far.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.shared.now.load(Ordering::Acquire)
    }

    /// A slot for one thread; the module's text says in which order to use it.
    #[must_use]
    pub fn slot(&self, name: &str) -> Slot {
        Slot::new(Arc::clone(&self.shared), name, false)
    }

    /// Runs `cycles` cycles.
    pub fn run(&self, cycles: u64) {
        let mut state = self.shared.enter();
        let end = state.now() + cycles;
        while state.now() < end {
            let left = end - state.now();
            let library = state.token.has_library_threads();
            let quantum = if library { state.config.quantum } else { left };
            state.advance(left.min(quantum));
            if library {
                state = self.shared.let_library_threads_run(state);
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
        lock(&self.shared.state).simulation.busy_nodes().next().is_some()
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
        let start = state.now();
        let mut resting = 0;
        while resting < state.config.idle_cycles {
            if state.now() - start >= max_cycles {
                let nodes = state.simulation.busy_nodes().collect();
                self.shared.publish(&state);
                return Err(Error::StillBusy { cycles: max_cycles, nodes });
            }
            let touched = state.advance(1);
            if touched && state.token.has_library_threads() {
                state = self.shared.let_library_threads_run(state);
            }
            let busy = touched || state.simulation.busy_nodes().next().is_some();
            resting = if busy { 0 } else { resting + 1 };
        }
        self.shared.publish(&state);
        Ok(state.now() - start)
    }

    /// Accesses of a node's device to host memory that no mapping allowed, oldest first (at most
    /// 1,024 are kept).
    #[must_use]
    pub fn faults(&self, node: usize) -> Vec<IommuFault> {
        lock(&self.shared.state).simulation.host(node).faults().to_vec()
    }

    /// How many interrupts a node's device raised.
    #[must_use]
    pub fn interrupt_count(&self, node: usize) -> u64 {
        lock(&self.shared.state).simulation.host(node).interrupt_count()
    }

    /// Pulls a node's card out: from now on its reads give all ones, writes to it lead nowhere, and
    /// it does nothing any more, neither to its host nor on its link.
    pub fn unplug(&self, node: usize) {
        lock(&self.shared.state).simulation.unplug(node);
    }

    /// Puts a wrapper around the network: an observer or a fault injector.
    pub fn wrap_network(&self, wrap: impl FnOnce(SharedNetwork) -> SharedNetwork) {
        lock(&self.shared.state).simulation.wrap_network(wrap);
    }

    /// Pulls a node's cable out, or puts it back. What is on the wire then stays there.
    pub fn set_connected(&self, node: usize, is_connected: bool) {
        lock(&self.shared.state).simulation.set_connected(node, is_connected);
    }
}

impl Shared {
    /// The state, for a thread that is about to act on the simulation.
    fn enter(&self) -> MutexGuard<'_, State> {
        let state = lock(&self.state);
        state.token.check(self.id);
        state
    }

    fn publish(&self, state: &State) {
        self.now.store(state.now(), Ordering::Release);
    }

    /// Lets time pass, up to a quantum or to `limit` cycles, then hands the token on.
    fn relax(&self, wait: Wait, limit: u64) {
        let mut state = self.enter();
        state.token.note(self.id, wait);
        let cycles = state.config.quantum.min(limit);
        state.advance(cycles);
        self.publish(&state);
        let quiet = state.now() - state.last_activity;
        if quiet > state.config.deadlock_limit && !wait.bounded && state.token.all_unbounded() {
            let text = state.token.describe(wait);
            drop(state);
            panic!("nothing happened for {quiet} simulated cycles, and nothing will: {text}");
        }
        drop(state);
        self.pass_token(wait);
    }

    /// Hands the token to library threads, if this thread has no slot.
    fn let_library_threads_run<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        self.publish(&state);
        drop(state);
        self.pass_token(Wait::bounded("a run of the simulation", 0));
        self.enter()
    }
}

/// A node's bus.
pub struct SeededBus {
    shared: Arc<Shared>,
    node: usize,
}

impl core::fmt::Debug for SeededBus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SeededBus(simulation {}, node {})", self.shared.id, self.node)
    }
}

impl SeededBus {
    /// The node's number in its simulation.
    #[must_use]
    pub const fn node(&self) -> usize {
        self.node
    }

    /// Writes 1 to 64 bytes to a BAR, well-formed or not.
    pub fn write_raw(&self, bar: u8, offset: u64, data: &[u8]) {
        let mut state = self.shared.enter();
        let event_doorbell = bar == DOORBELL_BAR && offset % PAGE_BYTES == EVENT_OFFSET;
        if !event_doorbell {
            state.last_activity = state.now();
        }
        state.simulation.write(self.node, bar, offset, data);
    }

    /// Reads 1 to 8 bytes from a BAR, well-formed or not.
    ///
    /// # Errors
    /// [`Error::ReadTimeout`] if the device does not answer.
    pub fn read_raw(&self, bar: u8, offset: u64, length: usize) -> Result<u64> {
        let mut state = self.shared.enter();
        let limit = state.config.read_limit;
        let value = state.simulation.read(self.node, (bar, offset), length, limit);
        self.shared.publish(&state);
        let register = || register_name(bar, offset);
        value.ok_or_else(|| Error::ReadTimeout { register: register(), bar, cycles: limit })
    }
}

impl Bar for SeededBus {
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

impl Dma for SeededBus {
    fn map(&self, memory: &DmaMemory) -> Result<u64> {
        check_readable(memory)?;
        Ok(self.shared.enter().simulation.host_mut(self.node).map(memory))
    }

    fn unmap(&self, bus_address: u64) {
        self.shared.enter().simulation.host_mut(self.node).unmap(bus_address);
    }
}

impl Irq for SeededBus {
    fn connect(&self, bar: &dyn Bar, count: u16) -> Result<()> {
        program_vectors(bar, count, |vector| (MSI_BASE, u32::from(vector)));
        Ok(())
    }

    fn take_interrupt(&self, vector: u16) -> bool {
        self.shared.enter().simulation.host_mut(self.node).take_interrupt(vector)
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
        lock(&self.shared.state).simulation.host_mut(self.node).raise_interrupt(vector);
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

impl Bus for SeededBus {
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

    fn spawn(&self, name: &str, program: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
        let slot = Slot::new(Arc::clone(&self.shared), name, true);
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || slot.run(program)).map(drop)
    }

    fn name(&self) -> String {
        format!("of node {}", self.node)
    }
}
