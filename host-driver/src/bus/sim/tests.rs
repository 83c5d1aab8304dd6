//! The world with a device that does what a script says, and bring-up of devices that are wrong.

use nic_model::device::HostBus;
use nic_regs::csr;
use nic_regs::limits::{ABI, MAGIC};

use super::*;
use crate::nic::{Nic, NicConfig};

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

fn world_of(device: Box<dyn Device + Send>) -> (World, Arc<SimBus>) {
    let config = WorldConfig { read_limit: 1000, ..WorldConfig::default() };
    let world = World::new(config);
    let bus = world.add_node(device, Box::new(NoLink));
    (world, bus)
}

#[test]
fn accesses_outside_of_mappings_are_faults() {
    let memory = DmaMemory::new(8192).unwrap();
    let part = memory.slice(100, 1000).unwrap();
    // Every world hands out the same addresses.
    let (_, other) = world_of(Fake::script(|_, _| {}));
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
    let (world, bus) = world_of(device);
    assert_eq!(bus.map(&part).unwrap(), base);
    world.run(7);
    bus.unmap(base);
    world.run(7);
    assert_eq!(memory.to_vec(99, 2), [0, 7]);
    assert_eq!(memory.to_vec(1099, 2), [7, 0]);
    let faults: Vec<_> = world.faults(0).iter().map(|f| (f.address + 1 - base, f.write)).collect();
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
    let (world, bus) = world_of(device);
    assert!(!bus.wait_interrupt(5, 400, Wait::bounded("x", 0)));
    assert_eq!(world.now(), 100);
    assert!(bus.wait_interrupt(5, 1_000_000, Wait::bounded("x", 0)));
    assert_eq!(world.now(), 501);
    assert!(!bus.take_interrupt(5));
    world.run(200);
    assert_eq!((world.interrupt_count(0), world.faults(0).len()), (1, 1), "no such vector");
}

/// A guest has turns while a thread without a seat lets time pass, and among seats; and it does not run
/// at any other time.
#[test]
fn guests_have_turns() {
    let turns = || {
        let (world, bus) = world_of(Fake::registers(|_| Some(0)));
        let log = Arc::new(Mutex::new(Vec::new()));
        let (guest, wait) = (bus.thread_seat("guest"), Wait::bounded("a turn", 0));
        let (theirs, their_bus) = (Arc::clone(&log), Arc::clone(&bus));
        let thread = std::thread::spawn(move || {
            guest.run(&mut || {
                for _ in 0..20 {
                    lock(&theirs).push('g');
                    their_bus.relax(wait);
                }
            });
        });
        for _ in 0..8 {
            lock(&log).push('m');
            bus.relax(wait);
            let length = lock(&log).len();
            // Out of the world nobody else runs.
            std::thread::yield_now();
            assert_eq!(lock(&log).len(), length);
        }
        // With a seat beside it, which ends first or last.
        let seat = world.join_baton("seat");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                seat.run(|| {
                    for _ in 0..5 {
                        lock(&log).push('s');
                        bus.relax(wait);
                    }
                });
            });
        });
        while !thread.is_finished() {
            world.run(64);
        }
        thread.join().unwrap();
        let log = lock(&log).iter().collect::<String>();
        (log, world.now() > 0)
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
    let (world, bus) = world_of(Fake::registers(|_| None));
    let error = bus.read32(0, csr::STATUS::OFFSET.into()).unwrap_err();
    assert_eq!(error.to_string(), "register STATUS of BAR0 was not answered within 1000 cycles");
    assert_eq!(world.now(), 1000);

    let mut busy = Fake::registers(|_| Some(0));
    busy.busy_until = 5000;
    let (world, _bus) = world_of(busy);
    let error = world.run_until_idle(4000).unwrap_err();
    assert!(matches!(error, Error::StillBusy { cycles: 4000, nodes } if nodes == [0]));
    world.run_until_idle(4000).unwrap();
    assert!((7000..7002).contains(&world.now()));
}

fn bring_up(register: fn(u64) -> Option<u32>) -> String {
    let (_world, bus) = world_of(Fake::registers(register));
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
    // It answers once, and is gone.
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
        let world = World::new(WorldConfig { seed, ..WorldConfig::default() });
        let bus = world.add_node(Fake::registers(|_| Some(0)), Box::new(NoLink));
        let log = Mutex::new(Vec::new());
        let seats: Vec<_> = (0..3).map(|i| (i, world.join_baton(&format!("thread {i}")))).collect();
        std::thread::scope(|scope| {
            for (i, seat) in seats {
                let (bus, log) = (&bus, &log);
                scope.spawn(move || {
                    let _turn = seat.enter();
                    for _ in 0..50 {
                        log.lock().unwrap().push(i);
                        bus.relax(Wait::bounded("a test", 0));
                    }
                });
            }
        });
        (log.into_inner().unwrap(), world.now())
    };
    let (first, cycles) = order(1);
    assert_eq!((first.len(), cycles), (150, 150 * 64));
    assert_eq!(order(1).0, first);
    assert_ne!(order(2).0, first);
}

#[test]
fn a_seat_that_is_not_taken_is_given_up() {
    let world = World::new(WorldConfig::default());
    let bus = world.add_node(Fake::registers(|_| Some(0)), Box::new(NoLink));
    let (unused, used) = (world.join_baton("unused"), world.join_baton("used"));
    drop(unused);
    let turn = used.enter();
    bus.relax(Wait::bounded("a test", 0));
    drop(turn);
    bus.relax(Wait::bounded("a test", 0));
    assert_eq!(world.now(), 128);
}
