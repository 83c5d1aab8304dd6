//! A simulated world that runs by itself, for programs that do not know of it.
//!
//! A thread (the engine) runs the world while its devices have something to do, and sleeps when
//! they have not; whoever touches a device wakes it. A waiting program sleeps until the engine has
//! written something small into host memory. Time is that of the simulation while the world runs,
//! and that of the wall while it sleeps: time-outs of a program in an idle world take as long as it
//! thinks, and those of the driver never end because simulating is slow.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use host_driver::bus::sim::{SimBus, World};
use host_driver::bus::{Bar, Bus, DOORBELL_BAR, Dma, Irq, Wait};
use host_driver::dma::DmaMemory;
use host_driver::sync::lock;
use host_driver::{Error, Result};
use nic_regs::doorbell::PAGE_BYTES;

#[expect(clippy::cast_possible_truncation, reason = "4 KiB")]
const DOORBELL_PAGE: usize = PAGE_BYTES as usize;
/// Cycles that the world runs before others have their turn with it.
const SLICE: u64 = 256;
/// Cycles without anything done after which the world sleeps: longer than any wire.
const REST: u64 = 20_000;
/// The same in a world that loses frames: longer than a retransmission takes.
const LOSSY_REST: u64 = 2_000_000;
/// How long the world sleeps before its timers get a slice, and how much longer each time.
const NAP: Duration = Duration::from_millis(1);
/// The longest nap.
const NAP_MAX: Duration = Duration::from_millis(10);
/// Cycles for timers after a nap.
const TIMER_SLICE: u64 = 2_048;
/// The longest sleep of a waiter. What other threads of the program do does not wake it.
const WAIT: Duration = Duration::from_millis(1);

/// What bounds of the driver are multiplied by: its thread may lose the processor between a look at
/// the device and one at the clock, which then shows the time of the wall.
const SLOWDOWN: u64 = 50;

/// How often any engine has written something that a waiter may want to look at.
static TOUCHES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The touches that this thread has seen.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// Whether the engine runs, and how long it has slept.
#[derive(Debug, Default)]
struct Pace {
    slept: Duration,
    asleep_since: Option<Instant>,
    /// Somebody touched a device.
    work: bool,
}

impl Pace {
    fn wake(&mut self) {
        if let Some(since) = self.asleep_since.take() {
            self.slept += since.elapsed();
        }
    }
}

/// A world, its buses and its thread. The thread ends with the last user.
#[derive(Debug)]
pub struct Engine {
    world: World,
    buses: Vec<Arc<SimBus>>,
    pace: Mutex<Pace>,
    /// For the engine.
    work: Condvar,
    /// For waiters.
    touched: Condvar,
    /// Threads that want the world.
    wanting: AtomicUsize,
    rest: u64,
}

impl Engine {
    /// Lets a world run.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if there is no thread for it.
    pub fn start(world: World, buses: Vec<Arc<SimBus>>, lossy: bool) -> Result<Arc<Self>> {
        let engine = Arc::new(Self {
            world,
            buses,
            pace: Mutex::default(),
            work: Condvar::new(),
            touched: Condvar::new(),
            wanting: AtomicUsize::new(0),
            rest: if lossy { LOSSY_REST } else { REST },
        });
        let weak = Arc::downgrade(&engine);
        let run = move || {
            let (mut resting, mut nap) = (0, NAP);
            while let Some(engine) = weak.upgrade() {
                engine.turn(&mut resting, &mut nap);
            }
        };
        let started = std::thread::Builder::new().name("viaduct-sim".to_owned()).spawn(run);
        started.map_err(|_| Error::Exhausted { what: "thread", limit: 0 })?;
        Ok(engine)
    }

    /// Runs a slice, or sleeps.
    fn turn(&self, resting: &mut u64, nap: &mut Duration) {
        while self.wanting.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
        let before = self.world.now();
        let touched = self.world.advance(SLICE);
        if touched {
            self.touch();
        }
        if touched || self.world.is_busy() {
            (*resting, *nap) = (0, NAP);
            return;
        }
        *resting += self.world.now() - before;
        if *resting < self.rest {
            return;
        }
        if self.sleep(*nap) {
            (*resting, *nap) = (0, NAP);
        } else {
            *resting = self.rest.saturating_sub(TIMER_SLICE);
            *nap = (*nap * 2).min(NAP_MAX);
        }
    }

    /// Sleeps until somebody touches a device. False if nobody did.
    fn sleep(&self, nap: Duration) -> bool {
        let mut pace = lock(&self.pace);
        let start = Instant::now();
        pace.asleep_since = Some(start);
        while !pace.work {
            let left = nap.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            let woken = self.work.wait_timeout(pace, left);
            pace = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        pace.wake();
        core::mem::take(&mut pace.work)
    }

    /// Wakes the engine.
    fn poke(&self) {
        let mut pace = lock(&self.pace);
        if !pace.work {
            pace.work = true;
            // From now on the devices' time counts, however long the engine takes to get going.
            pace.wake();
            self.work.notify_one();
        }
    }

    /// Wakes waiters.
    fn touch(&self) {
        let _pace = lock(&self.pace);
        TOUCHES.fetch_add(1, Ordering::Release);
        self.touched.notify_all();
    }

    /// Uses the world, which waits for it.
    fn with<R>(&self, node: usize, f: impl FnOnce(&SimBus) -> R) -> R {
        self.wanting.fetch_add(1, Ordering::AcqRel);
        let result = f(&self.buses[node]);
        self.wanting.fetch_sub(1, Ordering::AcqRel);
        result
    }

    /// Waits until the engine has written something since this thread looked last.
    fn wait(&self, bound: Duration) {
        let mut pace = lock(&self.pace);
        let end = Instant::now() + bound;
        loop {
            let touches = TOUCHES.load(Ordering::Acquire);
            let left = end.saturating_duration_since(Instant::now());
            if SEEN.replace(touches) != touches || left.is_zero() {
                return;
            }
            pace = self.wait_touched(pace, left);
        }
    }

    fn wait_touched<'a>(&self, pace: MutexGuard<'a, Pace>, left: Duration) -> MutexGuard<'a, Pace> {
        self.touched.wait_timeout(pace, left).unwrap_or_else(PoisonError::into_inner).0
    }

    fn now_ns(&self) -> u64 {
        let pace = lock(&self.pace);
        let asleep = pace.asleep_since.map_or(Duration::ZERO, |since| since.elapsed());
        let slept = u64::try_from((pace.slept + asleep).as_nanos()).unwrap_or(u64::MAX);
        self.world.now_ns().saturating_add(slept)
    }
}

/// A node's bus in a world that runs by itself.
#[derive(Debug)]
pub struct LiveBus {
    engine: Arc<Engine>,
    node: usize,
    /// A page that takes the place of the doorbells of programs.
    nowhere: Option<DmaMemory>,
}

impl LiveBus {
    /// The bus of `node`, which is one of the world's.
    #[must_use]
    pub const fn new(engine: Arc<Engine>, node: usize) -> Self {
        Self { engine, node, nowhere: None }
    }

    /// The same with doorbell pages that are mapped memory and lead nowhere (the driver's own apart):
    /// what is posted stays so. For counting what posting costs.
    ///
    /// # Errors
    /// [`host_driver::Error::OutOfMemory`].
    pub fn with_doorbells_nowhere(self) -> Result<Self> {
        Ok(Self { nowhere: Some(DmaMemory::new(DOORBELL_PAGE)?), ..self })
    }
}

impl Bar for LiveBus {
    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        let value = self.engine.with(self.node, |bus| bus.read32(bar, offset));
        self.engine.poke();
        // The world ran until the answer was there, and may have written something.
        self.engine.touch();
        value
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) {
        self.engine.with(self.node, |bus| bus.write32(bar, offset, value));
        self.engine.poke();
    }

    fn write64(&self, bar: u8, offset: u64, value: u64) {
        self.engine.with(self.node, |bus| bus.write64(bar, offset, value));
        self.engine.poke();
    }

    fn write_line(&self, bar: u8, offset: u64, words: &[u64]) {
        self.engine.with(self.node, |bus| bus.write_line(bar, offset, words));
        self.engine.poke();
    }

    fn mapped(&self, bar: u8, offset: u64, length: usize) -> Option<DmaMemory> {
        // The first page is the driver's own.
        let programs = bar == DOORBELL_BAR && offset >= PAGE_BYTES && length <= DOORBELL_PAGE;
        self.nowhere.clone().filter(|_| programs)
    }
}

impl Dma for LiveBus {
    fn map(&self, memory: &DmaMemory) -> Result<u64> {
        self.engine.with(self.node, |bus| bus.map(memory))
    }

    fn unmap(&self, bus_address: u64) {
        self.engine.with(self.node, |bus| bus.unmap(bus_address));
    }
}

impl Irq for LiveBus {
    fn message(&self, vector: u16) -> (u64, u32) {
        self.engine.buses[self.node].message(vector)
    }

    fn take_interrupt(&self, vector: u16) -> bool {
        self.engine.with(self.node, |bus| bus.take_interrupt(vector))
    }

    fn wait_interrupt(&self, vector: u16, bound_ns: u64, _wait: Wait) -> bool {
        let end = self.engine.now_ns().saturating_add(bound_ns);
        loop {
            if self.take_interrupt(vector) {
                return true;
            }
            let left = end.saturating_sub(self.engine.now_ns());
            if left == 0 {
                return false;
            }
            self.engine.wait(Duration::from_nanos(left).min(WAIT));
        }
    }

    fn raise_interrupt(&self, vector: u16) {
        self.engine.with(self.node, |bus| bus.raise_interrupt(vector));
        self.engine.touch();
    }
}

impl Bus for LiveBus {
    fn relax(&self, _wait: Wait) {
        self.engine.wait(WAIT);
    }

    fn now_ns(&self) -> u64 {
        self.engine.now_ns()
    }

    fn slowdown(&self) -> u64 {
        SLOWDOWN
    }

    fn name(&self) -> String {
        self.engine.buses[self.node].name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_world_keeps_the_time_of_the_wall() {
        let port = crate::open("sim:model?world=idle").unwrap();
        let bus = port.nic().bus();
        let (start, wall) = (bus.now_ns(), Instant::now());
        while wall.elapsed() < Duration::from_millis(50) {
            bus.relax(Wait::bounded("nothing", 0));
        }
        let passed = bus.now_ns() - start;
        assert!((20_000_000..1_000_000_000).contains(&passed), "{passed} ns");
    }
}
