//! The scheduler with a device that does what a script says, and bring-up of devices that are wrong.

use nic_model::device::{Device, HostBus, Link};
use nic_regs::csr;
use nic_regs::limits::{ABI, MAGIC};

use super::*;
use host_driver::nic::{Nic, NicConfig};

type Script = Box<dyn FnMut(u64, &mut dyn HostBus) + Send>;

/// A device whose registers are a function, and whose bus accesses are a script.
struct Fake {
    register: fn(u64) -> Option<u32>,
    answer: Option<u64>,
    script: Script,
    busy_until: u64,
    now: u64,
}

impl Fake {
    fn registers(register: fn(u64) -> Option<u32>) -> Box<Self> {
        Box::new(Self {
            register,
            answer: None,
            script: Box::new(|_, _| ()),
            busy_until: 0,
            now: 0,
        })
    }

    fn script(script: impl FnMut(u64, &mut dyn HostBus) + Send + 'static) -> Box<Self> {
        Box::new(Self { script: Box::new(script), ..*Self::registers(|_| Some(0)) })
    }
}

impl Device for Fake {
    fn bar_write(&mut self, _bar: u8, _offset: u64, _data: &[u8]) {}

    fn bar_read(&mut self, _bar: u8, offset: u64, _length: usize) {
        self.answer = (self.register)(offset).map(u64::from);
    }

    fn bar_response(&mut self) -> Option<u64> {
        self.answer.take()
    }

    fn step(&mut self, now: u64, host: &mut dyn HostBus, _link: &mut dyn Link) {
        self.now = now;
        (self.script)(now, host);
    }

    fn busy(&self) -> bool {
        self.now < self.busy_until
    }
}

fn single(device: SimulatedDevice) -> (SeededSimulation, Arc<SeededBus>) {
    let config = SimulationConfig { read_limit: 1000, ..SimulationConfig::default() };
    SeededSimulation::single(config, device)
}

#[test]
fn accesses_outside_of_mappings_are_faults() {
    let memory = DmaMemory::new(8192).unwrap();
    let part = memory.slice(100, 1000).unwrap();
    // Every simulation hands out the same addresses.
    let (_, other) = single(Fake::script(|_, _| {}));
    let base = other.map(&part).unwrap();
    assert_eq!(base % (1 << 44), (1_u64 << 40) + 16 * 4096 + 100);
    let device = Fake::script(move |now, host| match now {
        1 => host.write(base, &[7; 1000]),
        2 => host.write(base + 999, &[7; 2]),
        3 => host.write(base - 1, &[7; 1]),
        4 => assert!(host.read(base, &mut [0; 1000]).is_ok()),
        5 => assert!(host.read(base + 1, &mut [0; 1000]).is_err()),
        8 => assert!(host.read(base, &mut [0; 1]).is_err()),
        _ => {}
    });
    let (simulation, bus) = single(device);
    assert_eq!(bus.map(&part).unwrap(), base);
    simulation.run(7);
    bus.unmap(base);
    simulation.run(7);
    assert_eq!(memory.to_vec(99, 2), [0, 7]);
    assert_eq!(memory.to_vec(1099, 2), [7, 0]);
    let faults: Vec<_> =
        simulation.faults(0).iter().map(|f| (f.address + 1 - base, f.write)).collect();
    assert_eq!(faults, [(1000, true), (0, true), (2, false), (1, false)]);
    assert_ne!(bus.map(&part).unwrap(), base, "addresses are not used again");
}

#[test]
fn interrupts_wake_and_are_taken_once() {
    let device = Fake::script(|now, host| match now {
        500 => host.write(MSI_BASE, &5_u32.to_le_bytes()),
        600 => host.write(MSI_BASE, &99_u32.to_le_bytes()),
        _ => {}
    });
    let (simulation, bus) = single(device);
    assert!(!bus.wait_interrupt(5, 400, Wait::bounded("x", 0)));
    assert_eq!(simulation.now(), 100);
    assert!(bus.wait_interrupt(5, 1_000_000, Wait::bounded("x", 0)));
    assert_eq!(simulation.now(), 501);
    assert!(!bus.take_interrupt(5));
    simulation.run(200);
    assert_eq!(
        (simulation.interrupt_count(0), simulation.faults(0).len()),
        (1, 1),
        "no such vector"
    );
}

/// A library thread runs while a thread without a slot lets time pass, and among slots; and it does
/// not run at any other time.
#[test]
fn library_threads_get_the_token() {
    let turns = || {
        let (simulation, bus) = single(Fake::registers(|_| Some(0)));
        let log = Arc::new(Mutex::new(Vec::new()));
        let wait = Wait::bounded("a turn", 0);
        let (theirs, their_bus) = (Arc::clone(&log), Arc::clone(&bus));
        let library = move || {
            for _ in 0..20 {
                lock(&theirs).push('g');
                their_bus.relax(wait);
            }
        };
        bus.spawn("library", Box::new(library)).unwrap();
        for _ in 0..8 {
            lock(&log).push('m');
            bus.relax(wait);
            let length = lock(&log).len();
            // Outside of the simulation nobody else runs.
            std::thread::yield_now();
            assert_eq!(lock(&log).len(), length);
        }
        // With a slot beside it, which ends first or last.
        let slot = simulation.slot("slot");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                slot.run(|| {
                    for _ in 0..5 {
                        lock(&log).push('s');
                        bus.relax(wait);
                    }
                });
            });
        });
        while lock(&log).iter().filter(|who| **who == 'g').count() < 20 {
            simulation.run(64);
        }
        let log = lock(&log).iter().collect::<String>();
        (log, simulation.now() > 0)
    };
    let (log, ran) = turns();
    assert!(ran);
    assert_eq!(log.matches('g').count(), 20);
    assert_eq!((log.matches('m').count(), log.matches('s').count()), (8, 5));
    assert!(log[..log.rfind('m').unwrap()].contains('g'), "in between: {log}");
    assert_eq!(turns().0, log, "the same seed, the same turns");
}

#[test]
fn time_is_bounded_everywhere() {
    let (simulation, bus) = single(Fake::registers(|_| None));
    let error = bus.read32(0, csr::STATUS::OFFSET.into()).unwrap_err();
    assert_eq!(error.to_string(), "register STATUS of BAR0 was not answered within 1000 cycles");
    assert_eq!(simulation.now(), 1000);

    let mut busy = Fake::registers(|_| Some(0));
    busy.busy_until = 5000;
    let (simulation, _bus) = single(busy);
    let error = simulation.run_until_idle(4000).unwrap_err();
    assert!(matches!(error, Error::StillBusy { cycles: 4000, nodes } if nodes == [0]));
    simulation.run_until_idle(4000).unwrap();
    assert!((7000..7002).contains(&simulation.now()));
}

fn bring_up(register: fn(u64) -> Option<u32>) -> String {
    let (_simulation, bus) = single(Fake::registers(register));
    Nic::open(bus, &NicConfig::new(0, &[])).expect_err("a failure").to_string()
}

const GOOD_ID: u32 = (MAGIC as u32) << 16 | ABI as u32;

#[test]
fn wrong_devices_are_named() {
    let text = bring_up(|_| Some(u32::MAX));
    assert_eq!(text, "the card of node 0 is absent: register ID reads as all ones");
    let text = bring_up(|_| Some(0x10de_0001));
    assert_eq!(text, "not a Viaduct NIC: its identity is 0x10de, expected 0x51a7");
    let text = bring_up(|_| Some(GOOD_ID + 1));
    assert_eq!(text, "the device has ABI revision 3, this driver has 2; use matching ones");
    let text = bring_up(|offset| Some(if offset == 0 { GOOD_ID } else { 0 }));
    assert_eq!(text, "reset of the device 0 was not done within 10000000 ns");
    // It answers once, and is absent then.
    static READS: AtomicU64 = AtomicU64::new(0);
    let text = bring_up(|_| {
        Some(if READS.fetch_add(1, Ordering::Relaxed) == 0 { GOOD_ID } else { u32::MAX })
    });
    assert_eq!(text, "the card of node 0 is absent: register STATUS reads as all ones");
    // Ready, but its admin ring never answers.
    let text = bring_up(|offset| Some(if offset == 0 { GOOD_ID } else { 0x0101_0101 }));
    assert_eq!(text, "EventCreate 0 was not done within 100000000 ns");
}

#[test]
fn one_thread_at_a_time_in_a_seeded_order() {
    let order = |seed| {
        let config = SimulationConfig { seed, ..SimulationConfig::default() };
        let device = Fake::registers(|_| Some(0));
        let (simulation, bus) = SeededSimulation::single(config, device);
        let log = Mutex::new(Vec::new());
        let slots: Vec<_> = (0..3).map(|i| (i, simulation.slot(&format!("thread {i}")))).collect();
        std::thread::scope(|scope| {
            for (i, slot) in slots {
                let (bus, log) = (&bus, &log);
                scope.spawn(move || {
                    let _token = slot.enter();
                    for _ in 0..50 {
                        log.lock().unwrap().push(i);
                        bus.relax(Wait::bounded("a test", 0));
                    }
                });
            }
        });
        (log.into_inner().unwrap(), simulation.now())
    };
    let (first, cycles) = order(1);
    assert_eq!((first.len(), cycles), (150, 150 * 64));
    assert_eq!(order(1).0, first);
    assert_ne!(order(2).0, first);
}

#[test]
fn a_slot_that_is_not_taken_is_given_up() {
    let device = Fake::registers(|_| Some(0));
    let (simulation, bus) = SeededSimulation::single(SimulationConfig::default(), device);
    let (unused, used) = (simulation.slot("unused"), simulation.slot("used"));
    drop(unused);
    let turn = used.enter();
    bus.relax(Wait::bounded("a test", 0));
    drop(turn);
    bus.relax(Wait::bounded("a test", 0));
    assert_eq!(simulation.now(), 128);
}
