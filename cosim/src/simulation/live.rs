//! The live scheduler, for programs of this process that do not know of the simulation.
//!
//! A thread (the engine) runs the simulation while something is pending, and sleeps otherwise; an
//! access to a device wakes it. A waiting program sleeps until the engine has written something small
//! into host memory. Time is wall-clock time, as it is for programs that share a simulator, and the
//! driver's bounds are as much longer.
//!
//! A child after fork has no engine: the cards are absent to it, and it touches no lock of the
//! simulation, which a thread of its parent may have held.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use host_driver::bus::{Bar, Bus, DOORBELL_BAR, Dma, Irq, Wait, program_vectors, register_name};
use host_driver::sync::lock;
use host_driver::{Error, Result};
use nic_model::link::Faults;
use nic_regs::doorbell::PAGE_BYTES;
use nic_regs::pci::MSI_BASE;
use port::mapped::check_readable;
use port::memory::DmaMemory;

use super::SimulatedDevice;
use super::host::HostMemory;
use super::on_demand::{ANSWER_CYCLES, OnDemand};

#[expect(clippy::cast_possible_truncation, reason = "4 KiB")]
const DOORBELL_PAGE: usize = PAGE_BYTES as usize;
/// Cycles that the engine runs before other threads may use the simulation.
const SLICE: u64 = 256;
/// The longest sleep of a waiter. What other threads of the program do does not wake it.
const WAIT: Duration = Duration::from_millis(1);

/// How often any engine has written something that a waiter may want to look at.
static TOUCHES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The touches that this thread has seen.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// What the engine, its users and their waits share.
#[derive(Debug)]
struct Shared {
    simulation: Mutex<OnDemand<HostMemory>>,
    /// Threads that want the simulation.
    wanting: AtomicUsize,
    /// Somebody touched a device since the engine looked whether to sleep.
    work: Mutex<bool>,
    /// For the engine.
    worked: Condvar,
    /// For waiters, with the same lock.
    touched: Condvar,
    /// The last user has left.
    stop: AtomicBool,
}

impl Shared {
    /// What the engine does.
    fn run(&self) {
        while !self.stop.load(Ordering::Acquire) {
            while self.wanting.load(Ordering::Acquire) > 0 {
                std::thread::yield_now();
            }
            let mut simulation = lock(&self.simulation);
            let touched = simulation.run(SLICE);
            let running = simulation.is_running();
            drop(simulation);
            if touched {
                self.touch();
            }
            if !running {
                self.sleep();
            }
        }
    }

    /// Sleeps until somebody touches a device.
    fn sleep(&self) {
        let mut work = lock(&self.work);
        while !core::mem::take(&mut *work) {
            work = self.worked.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes the engine.
    fn poke(&self) {
        let mut work = lock(&self.work);
        if !*work {
            *work = true;
            self.worked.notify_one();
        }
    }

    /// Wakes waiters.
    fn touch(&self) {
        // Under the lock, so that nobody is between looking and sleeping.
        let _work = lock(&self.work);
        TOUCHES.fetch_add(1, Ordering::Release);
        self.touched.notify_all();
    }

    /// Waits until an engine has written something since this thread looked last.
    fn wait(&self, bound: Duration) {
        let end = Instant::now() + bound;
        let mut work = lock(&self.work);
        loop {
            let touches = TOUCHES.load(Ordering::Acquire);
            let left = end.saturating_duration_since(Instant::now());
            if SEEN.replace(touches) != touches || left.is_zero() {
                return;
            }
            let woken = self.touched.wait_timeout(work, left);
            work = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Uses the simulation, which the engine leaves to this thread.
    fn with<R>(&self, f: impl FnOnce(&mut OnDemand<HostMemory>) -> R) -> R {
        self.wanting.fetch_add(1, Ordering::AcqRel);
        let result = f(&mut lock(&self.simulation));
        self.wanting.fetch_sub(1, Ordering::AcqRel);
        result
    }
}

/// A simulation and its thread, which ends with the last user.
#[derive(Debug)]
pub struct LiveSimulation {
    shared: Arc<Shared>,
    start: Instant,
    /// The process whose engine runs it.
    process: u32,
}

impl LiveSimulation {
    /// Lets devices run, as the nodes 0, 1, ... of a network in which each has a wire to every other
    /// and one to itself; all wires have this latency, in cycles, and these faults.
    ///
    /// # Errors
    /// [`port::Error::Exhausted`] if there is no thread for it.
    pub fn start(
        devices: Vec<SimulatedDevice>,
        latency: u64,
        faults: &Faults,
    ) -> Result<Arc<Self>> {
        let node = |(number, device)| (device, HostMemory::new(number));
        let nodes = devices.into_iter().enumerate().map(node);
        let simulation = OnDemand::new(latency, faults, nodes);
        let shared = Arc::new(Shared {
            simulation: Mutex::new(simulation),
            wanting: AtomicUsize::new(0),
            work: Mutex::default(),
            worked: Condvar::new(),
            touched: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let engine = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("viaduct-sim".to_owned());
        let started = thread.spawn(move || engine.run());
        started.map_err(|_| port::Error::Exhausted { what: "thread", limit: 0 })?;
        Ok(Arc::new(Self { shared, start: Instant::now(), process: std::process::id() }))
    }

    /// Cycles run so far.
    #[must_use]
    pub fn now(&self) -> u64 {
        lock(&self.shared.simulation).now()
    }

    /// Frames that the network dropped because their source was not the node that sent them.
    #[must_use]
    pub fn forged(&self) -> u64 {
        lock(&self.shared.simulation).forged()
    }

    /// Whether this is not a child of its process.
    fn is_here(&self) -> bool {
        std::process::id() == self.process
    }

    /// Uses the simulation. None in a child.
    fn with<R>(&self, f: impl FnOnce(&mut OnDemand<HostMemory>) -> R) -> Option<R> {
        self.is_here().then(|| self.shared.with(f))
    }

    /// Wakes the engine.
    fn poke(&self) {
        if self.is_here() {
            self.shared.poke();
        }
    }

    /// Wakes waiters.
    fn touch(&self) {
        if self.is_here() {
            self.shared.touch();
        }
    }

    /// Waits until an engine has written something since this thread looked last.
    fn wait(&self, bound: Duration) {
        if self.is_here() {
            self.shared.wait(bound);
        } else {
            std::thread::sleep(bound);
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Drop for LiveSimulation {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.poke();
    }
}

/// A node's bus in a live simulation.
#[derive(Debug)]
pub struct LiveBus {
    simulation: Arc<LiveSimulation>,
    node: usize,
    /// A page that takes the place of the doorbells of programs.
    nowhere: Option<DmaMemory>,
}

impl LiveBus {
    /// The bus of `node`, which is one of the simulation's; one at a time.
    #[must_use]
    pub fn new(simulation: Arc<LiveSimulation>, node: usize) -> Self {
        let _ = simulation.with(|simulation| simulation.set_used(node, true));
        Self { simulation, node, nowhere: None }
    }

    /// The same with doorbell pages that are mapped memory and lead nowhere (the driver's own apart):
    /// what is posted stays so. For counting what posting costs.
    ///
    /// # Errors
    /// [`port::Error::OutOfMemory`].
    pub fn with_doorbells_nowhere(mut self) -> Result<Self> {
        self.nowhere = Some(DmaMemory::new(DOORBELL_PAGE)?);
        Ok(self)
    }

    fn host<R>(&self, f: impl FnOnce(&mut HostMemory) -> R) -> Option<R> {
        self.simulation.with(|simulation| f(simulation.host(self.node)))
    }

    fn write(&self, bar: u8, offset: u64, data: &[u8]) {
        let _ = self.simulation.with(|simulation| simulation.write(self.node, bar, offset, data));
        self.simulation.poke();
    }
}

impl Drop for LiveBus {
    fn drop(&mut self) {
        let _ = self.simulation.with(|simulation| simulation.set_used(self.node, false));
    }
}

impl Bar for LiveBus {
    #[expect(clippy::cast_possible_truncation, reason = "the answer to a read of 4 bytes")]
    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        let read = |simulation: &mut OnDemand<_>| simulation.read(self.node, bar, offset, 4);
        let Some(value) = self.simulation.with(read) else {
            return Ok(u32::MAX);
        };
        self.simulation.poke();
        // The simulation ran until the answer was there, and may have written something.
        self.simulation.touch();
        let register = || register_name(bar, offset);
        value.map(|value| value as u32).ok_or_else(|| Error::ReadTimeout {
            register: register(),
            bar,
            cycles: ANSWER_CYCLES,
        })
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) {
        self.write(bar, offset, &value.to_le_bytes());
    }

    fn write64(&self, bar: u8, offset: u64, value: u64) {
        self.write(bar, offset, &value.to_le_bytes());
    }

    fn write_line(&self, bar: u8, offset: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(bar, offset, &bytes);
    }

    fn mapped(&self, bar: u8, offset: u64, length: usize) -> Option<DmaMemory> {
        // The first page is the driver's own.
        let programs = bar == DOORBELL_BAR && offset >= PAGE_BYTES && length <= DOORBELL_PAGE;
        self.nowhere.clone().filter(|_| programs)
    }
}

impl Dma for LiveBus {
    fn map(&self, memory: &DmaMemory) -> Result<u64> {
        check_readable(memory)?;
        let absent = || Error::Absent { device: self.name(), register: "ID".to_owned() };
        self.host(|host| host.map(memory)).ok_or_else(absent)
    }

    fn unmap(&self, bus_address: u64) {
        let _ = self.host(|host| host.unmap(bus_address));
    }
}

impl Irq for LiveBus {
    fn connect(&self, bar: &dyn Bar, count: u16) -> Result<()> {
        program_vectors(bar, count, |vector| (MSI_BASE, u32::from(vector)));
        Ok(())
    }

    fn take_interrupt(&self, vector: u16) -> bool {
        self.host(|host| host.take_interrupt(vector)).unwrap_or(false)
    }

    fn wait_interrupt(&self, vector: u16, bound_ns: u64, _wait: Wait) -> bool {
        let end = self.now_ns().saturating_add(bound_ns);
        loop {
            if self.take_interrupt(vector) {
                return true;
            }
            let left = end.saturating_sub(self.now_ns());
            if left == 0 {
                return false;
            }
            self.simulation.wait(Duration::from_nanos(left).min(WAIT));
        }
    }

    fn raise_interrupt(&self, vector: u16) {
        let _ = self.host(|host| host.raise_interrupt(vector));
        self.simulation.touch();
    }
}

impl Bus for LiveBus {
    fn relax(&self, _wait: Wait) {
        self.simulation.wait(WAIT);
    }

    fn now_ns(&self) -> u64 {
        self.simulation.now_ns()
    }

    fn name(&self) -> String {
        format!("of node {}", self.node)
    }
}

#[cfg(test)]
mod tests {
    use host_driver::HardwarePort;
    use host_driver::nic::{Nic, NicConfig};
    use nic_model::Model;
    use nic_regs::admin::PeerState;
    use nic_regs::counter::Counter;
    use nic_regs::csr;
    use port::ViOps;

    use super::*;

    fn simulation(nodes: usize) -> Arc<LiveSimulation> {
        let devices = (0..nodes).map(|_| Box::new(Model::default()) as SimulatedDevice);
        LiveSimulation::start(devices.collect(), 20, &Faults::default()).unwrap()
    }

    /// Waits until the clock stands still, and has for a while: bring-up pauses between its steps. Gives the
    /// cycle.
    fn stopped(simulation: &LiveSimulation) -> u64 {
        let end = Instant::now() + Duration::from_secs(30);
        let mut stood: Option<(u64, Instant)> = None;
        loop {
            let state = lock(&simulation.shared.simulation);
            let now = state.now();
            match stood {
                Some((at, since)) if at == now && !state.is_running() => {
                    if since.elapsed() > Duration::from_millis(20) {
                        return now;
                    }
                }
                _ => stood = Some((now, Instant::now())),
            }
            assert!(Instant::now() < end, "the clock goes on at cycle {now}");
            drop(state);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_clock_stops_when_nothing_is_pending() {
        let simulation = simulation(3);
        let bus = [0, 1, 2].map(|node| Arc::new(LiveBus::new(Arc::clone(&simulation), node)));
        let nics: Vec<_> = (0..3)
            .map(|node: u8| {
                let bus = Arc::clone(&bus[usize::from(node)]);
                Nic::open(bus, &NicConfig::simulated(node, 3)).unwrap()
            })
            .collect();
        let at = stopped(&simulation);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(simulation.now(), at, "keepalives do not move it");
        // A read does, as far as it must.
        assert!(bus[2].read32(0, csr::STATUS::OFFSET.into()).is_ok());
        assert!(simulation.now() > at);
        drop(nics);
    }

    /// A channel that waits for a node that nobody uses costs nothing, and opens when somebody does.
    #[test]
    fn a_node_that_waits_for_another_lets_the_clock_stop() {
        let simulation = simulation(2);
        let open = |node: u8| {
            let bus = Arc::new(LiveBus::new(Arc::clone(&simulation), node.into()));
            Nic::open(bus, &NicConfig::simulated(node, 2)).unwrap()
        };
        let first = open(0);
        let at = stopped(&simulation);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(simulation.now(), at, "nothing happens");
        assert_eq!(first.counter(Counter::FramesReceived).unwrap(), 0);
        assert_eq!(first.counter(Counter::PeersLost).unwrap(), 0, "it did not give up");
        let second = open(1);
        let end = Instant::now() + Duration::from_secs(30);
        // As any program does: a channel that gave up while the other one came up is opened again.
        let ports = [&first, &second].map(|nic| HardwarePort::open(Arc::clone(nic)).unwrap());
        while ports.iter().any(|it| it.nic().counter(Counter::FramesReceived).unwrap() == 0) {
            assert!(Instant::now() < end, "the channel does not open");
            for port in &ports {
                let _ = port.next_event();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A program that writes another node's number to the NODE register of its NIC breaks no channel
    /// of that node.
    #[test]
    fn a_node_cannot_send_as_another() {
        let simulation = simulation(3);
        let open = |node: usize, number: u8, seed: u64, peers: &[u8]| {
            let bus = Arc::new(LiveBus::new(Arc::clone(&simulation), node));
            let config = NicConfig { peers: peers.to_vec(), ..NicConfig::simulated(number, 3) };
            Nic::open(bus, &config.with_seed(seed)).unwrap()
        };
        let (first, second) = (open(0, 0, 1, &[1]), open(1, 1, 2, &[0]));
        stopped(&simulation);
        assert_eq!(simulation.forged(), 0);
        let _forger = open(2, 1, 3, &[0]);
        stopped(&simulation);
        assert!(simulation.forged() > 0, "its SYN is not dropped");
        for nic in [&first, &second] {
            assert_eq!(nic.counter(Counter::PeersLost).unwrap(), 0);
            assert_eq!(nic.admin().peer_state(1 - nic.node()).unwrap(), PeerState::Open);
        }
    }

    #[test]
    fn an_idle_simulation_keeps_wall_clock_time() {
        let simulation = simulation(1);
        let bus = LiveBus::new(Arc::clone(&simulation), 0);
        stopped(&simulation);
        let (start, wall) = (bus.now_ns(), Instant::now());
        while wall.elapsed() < Duration::from_millis(50) {
            bus.relax(Wait::bounded("nothing", 0));
        }
        let passed = bus.now_ns() - start;
        assert!((20_000_000..1_000_000_000).contains(&passed), "{passed} ns");
    }

    #[test]
    fn the_thread_ends_with_the_last_user() {
        let simulation = simulation(2);
        let shared = Arc::downgrade(&simulation.shared);
        stopped(&simulation);
        drop(simulation);
        let end = Instant::now() + Duration::from_secs(30);
        while shared.strong_count() > 0 {
            assert!(Instant::now() < end, "the thread is still there");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
