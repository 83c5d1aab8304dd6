//! A world that runs by itself, for programs of this process that do not know of it.
//!
//! A thread (the engine) runs the world while there is something to do, and sleeps when there is not;
//! whoever touches a device wakes it. A waiting program sleeps until the engine has written something
//! small into host memory. Time is that of the wall, as it is for programs that share a simulator
//! with others, and bounds of the driver are as much longer.
//!
//! A child after fork has no engine: to it the cards are absent, and it touches no lock of the world,
//! which a thread of its parent may have held.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use host_driver::bus::sim::{MSI_BASE, SimHost};
use host_driver::bus::vfio_user::SLOWDOWN;
use host_driver::bus::{Bar, Bus, DOORBELL_BAR, Dma, Irq, Wait, register_name};
use host_driver::dma::DmaMemory;
use host_driver::sync::lock;
use host_driver::{Error, Result};
use nic_model::device::{Device, HostBus, HostReadError};
use nic_model::link::Faults;
use nic_regs::doorbell::PAGE_BYTES;

use super::{ANSWER_CYCLES, NodeHost, World};

#[expect(clippy::cast_possible_truncation, reason = "4 KiB")]
const DOORBELL_PAGE: usize = PAGE_BYTES as usize;
/// Cycles that the world runs before others have their turn with it.
const SLICE: u64 = 256;
/// The longest sleep of a waiter. What other threads of the program do does not wake it.
const WAIT: Duration = Duration::from_millis(1);

/// How often any engine has written something that a waiter may want to look at.
static TOUCHES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The touches that this thread has seen.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// The host of a node: memory of this process.
#[derive(Debug)]
struct LocalHost {
    host: SimHost,
    busy: bool,
}

impl HostBus for LocalHost {
    fn read(&mut self, address: u64, data: &mut [u8]) -> core::result::Result<(), HostReadError> {
        self.busy = true;
        self.host.read(address, data)
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        self.busy = true;
        self.host.write(address, data);
    }
}

impl NodeHost for LocalHost {
    fn take_busy(&mut self) -> bool {
        core::mem::take(&mut self.busy)
    }

    fn take_touched(&mut self) -> bool {
        self.host.take_touched()
    }
}

/// What the engine, its users and their waits share.
#[derive(Debug)]
struct Shared {
    world: Mutex<World<LocalHost>>,
    /// Threads that want the world.
    wanting: AtomicUsize,
    /// Somebody touched a device since the engine looked whether to sleep.
    work: Mutex<bool>,
    /// For the engine.
    worked: Condvar,
    /// For waiters, with the same lock.
    touched: Condvar,
    /// The last user is gone.
    stop: AtomicBool,
}

impl Shared {
    /// What the engine does.
    fn run(&self) {
        while !self.stop.load(Ordering::Acquire) {
            while self.wanting.load(Ordering::Acquire) > 0 {
                std::thread::yield_now();
            }
            let mut world = lock(&self.world);
            let touched = world.run(SLICE);
            let running = world.is_running();
            drop(world);
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

    /// Uses the world, which waits for it.
    fn with<R>(&self, f: impl FnOnce(&mut World<LocalHost>) -> R) -> R {
        self.wanting.fetch_add(1, Ordering::AcqRel);
        let result = f(&mut lock(&self.world));
        self.wanting.fetch_sub(1, Ordering::AcqRel);
        result
    }
}

/// A world and its thread, which ends with the last user.
#[derive(Debug)]
pub struct LiveWorld {
    shared: Arc<Shared>,
    start: Instant,
    /// The process whose engine runs it.
    process: u32,
}

impl LiveWorld {
    /// Lets devices run, as the nodes 0, 1, ... of a network in which each has a wire to every other
    /// and one to itself; all wires have this latency, in cycles, and these faults.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if there is no thread for it.
    pub fn start(
        devices: Vec<Box<dyn Device + Send>>,
        latency: u64,
        faults: &Faults,
    ) -> Result<Arc<Self>> {
        let host = |(node, device)| (device, LocalHost { host: SimHost::new(node), busy: false });
        let world = World::new(latency, faults, devices.into_iter().enumerate().map(host));
        let shared = Arc::new(Shared {
            world: Mutex::new(world),
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
        lock(&self.shared.world).now()
    }

    /// Whether this is not a child of its process.
    fn is_here(&self) -> bool {
        std::process::id() == self.process
    }

    /// Uses the world. None in a child.
    fn with<R>(&self, f: impl FnOnce(&mut World<LocalHost>) -> R) -> Option<R> {
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

impl Drop for LiveWorld {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.poke();
    }
}

/// A node's bus in a world that runs by itself.
#[derive(Debug)]
pub struct LiveBus {
    world: Arc<LiveWorld>,
    node: usize,
    /// A page that takes the place of the doorbells of programs.
    nowhere: Option<DmaMemory>,
}

impl LiveBus {
    /// The bus of `node`, which is one of the world's; one at a time.
    #[must_use]
    pub fn new(world: Arc<LiveWorld>, node: usize) -> Self {
        let _ = world.with(|world| world.set_used(node, true));
        Self { world, node, nowhere: None }
    }

    /// The same with doorbell pages that are mapped memory and lead nowhere (the driver's own apart):
    /// what is posted stays so. For counting what posting costs.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn with_doorbells_nowhere(mut self) -> Result<Self> {
        self.nowhere = Some(DmaMemory::new(DOORBELL_PAGE)?);
        Ok(self)
    }

    fn host<R>(&self, f: impl FnOnce(&mut SimHost) -> R) -> Option<R> {
        self.world.with(|world| f(&mut world.host(self.node).host))
    }

    fn write(&self, bar: u8, offset: u64, data: &[u8]) {
        let _ = self.world.with(|world| world.write(self.node, bar, offset, data));
        self.world.poke();
    }
}

impl Drop for LiveBus {
    fn drop(&mut self) {
        let _ = self.world.with(|world| world.set_used(self.node, false));
    }
}

impl Bar for LiveBus {
    #[expect(clippy::cast_possible_truncation, reason = "the answer to a read of 4 bytes")]
    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        let Some(value) = self.world.with(|world| world.read(self.node, bar, offset, 4)) else {
            return Ok(u32::MAX);
        };
        self.world.poke();
        // The world ran until the answer was there, and may have written something.
        self.world.touch();
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
        let absent = || Error::Absent { device: self.name(), register: "ID".to_owned() };
        self.host(|host| host.map(memory)).ok_or_else(absent)
    }

    fn unmap(&self, bus_address: u64) {
        let _ = self.host(|host| host.unmap(bus_address));
    }
}

impl Irq for LiveBus {
    fn message(&self, vector: u16) -> (u64, u32) {
        (MSI_BASE, u32::from(vector))
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
            self.world.wait(Duration::from_nanos(left).min(WAIT));
        }
    }

    fn raise_interrupt(&self, vector: u16) {
        let _ = self.host(|host| host.raise_interrupt(vector));
        self.world.touch();
    }
}

impl Bus for LiveBus {
    fn relax(&self, _wait: Wait) {
        self.world.wait(WAIT);
    }

    fn now_ns(&self) -> u64 {
        self.world.now_ns()
    }

    fn slowdown(&self) -> u64 {
        SLOWDOWN
    }

    fn name(&self) -> String {
        format!("of node {}", self.node)
    }
}

#[cfg(test)]
mod tests {
    use host_driver::nic::{Nic, NicConfig};
    use nic_model::Model;
    use nic_regs::counter::Counter;
    use nic_regs::csr;

    use super::*;

    fn world(nodes: usize) -> Arc<LiveWorld> {
        let devices = (0..nodes).map(|_| Box::new(Model::default()) as Box<dyn Device + Send>);
        LiveWorld::start(devices.collect(), 20, &Faults::default()).unwrap()
    }

    /// Waits until the clock stands still; gives the cycle.
    fn stopped(world: &LiveWorld) -> u64 {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let state = lock(&world.shared.world);
            if !state.is_running() {
                return state.now();
            }
            assert!(Instant::now() < end, "the clock goes on at cycle {}", state.now());
            drop(state);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_clock_stops_when_nothing_is_pending() {
        let world = world(3);
        let bus = [0, 1, 2].map(|node| Arc::new(LiveBus::new(Arc::clone(&world), node)));
        let peers = |node: u8| (0..3).filter(|peer| *peer != node).collect::<Vec<_>>();
        let nics: Vec<_> = (0..3)
            .map(|node: u8| {
                let config = NicConfig::new(node, &peers(node));
                Nic::open(Arc::clone(&bus[usize::from(node)]) as Arc<dyn Bus>, &config).unwrap()
            })
            .collect();
        let at = stopped(&world);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(world.now(), at, "keepalives do not move it");
        // A read does, as far as it must.
        assert!(bus[2].read32(0, csr::STATUS::OFFSET.into()).is_ok());
        assert!(world.now() > at);
        drop(nics);
    }

    /// A channel that waits for a node that nobody uses costs nothing, and opens when somebody does.
    #[test]
    fn a_node_that_waits_for_another_lets_the_clock_stop() {
        let world = world(2);
        let open = |node: u8| {
            let bus = Arc::new(LiveBus::new(Arc::clone(&world), node.into()));
            Nic::open(bus, &NicConfig::new(node, &[1 - node])).unwrap()
        };
        let first = open(0);
        let at = stopped(&world);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(world.now(), at, "nothing happens");
        assert_eq!(first.counter(Counter::FramesReceived).unwrap(), 0);
        assert_eq!(first.counter(Counter::PeersLost).unwrap(), 0, "it did not give up");
        let second = open(1);
        let end = Instant::now() + Duration::from_secs(30);
        while [&first, &second].iter().any(|nic| nic.counter(Counter::FramesReceived).unwrap() == 0)
        {
            assert!(Instant::now() < end, "the channel does not open");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn an_idle_world_keeps_the_time_of_the_wall() {
        let world = world(1);
        let bus = LiveBus::new(Arc::clone(&world), 0);
        stopped(&world);
        let (start, wall) = (bus.now_ns(), Instant::now());
        while wall.elapsed() < Duration::from_millis(50) {
            bus.relax(Wait::bounded("nothing", 0));
        }
        let passed = bus.now_ns() - start;
        assert!((20_000_000..1_000_000_000).contains(&passed), "{passed} ns");
    }

    #[test]
    fn the_thread_ends_with_the_last_user() {
        let world = world(2);
        let shared = Arc::downgrade(&world.shared);
        stopped(&world);
        drop(world);
        let end = Instant::now() + Duration::from_secs(30);
        while shared.strong_count() > 0 {
            assert!(Instant::now() < end, "the thread is still there");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
