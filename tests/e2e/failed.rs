//! A card that does not carry out a command: it is reset, and counts as lost, so that nothing that a
//! program releases is in its hands. So is one that somebody else resets.

use std::sync::{Arc, Mutex};

use host_driver::Error as DriverError;
use host_driver::bus::trace::TraceBus;
use host_driver::nic::{Nic, NicConfig};
use nic_regs::csr;
use nic_regs::desc::status::DESC_FLUSHED_ERROR;
use tests::{
    Buffer, DeviceKind, LONG, Node, Pair, Setup, driver_error, error_bits, on_every_kind, pattern,
};
use vipl::{ErrorCode, INFINITE, MemAttributes, Reliability, VipReturn};

/// A pair whose first card finds no command any more.
fn deaf(kind: DeviceKind) -> (Setup, Pair) {
    let registers = vec![(csr::KEEPALIVE::OFFSET, 20_000)];
    let (presence_ns, command_ns) = (100_000, 1_000_000);
    let setup = Setup { registers, presence_ns, command_ns, ..Setup::new(kind) };
    let pair = Pair::with(&setup);
    (setup, pair)
}

/// Its admin ring is where no memory is.
fn break_ring(pair: &Pair) {
    pair.a.driver.set_register(csr::ADMIN_BASE_HI::OFFSET, 0xdead);
}

/// What is taken back is the program's, also if the device did not learn of it.
fn memory_that_cannot_be_taken_back_is_out_of_reach(kind: DeviceKind) {
    let (_, pair) = deaf(kind);
    let (a, b) = pair.connected(Reliability::Reception);
    let recv = Buffer::new(&pair.a, 64);
    a.post_recv(&recv.descriptor).unwrap();
    let region = pair.a.region(4096);
    break_ring(&pair);
    pair.a.nic.deregister_mem(&region).unwrap();
    assert_eq!(error_bits(&a.recv_wait(INFINITE)), DESC_FLUSHED_ERROR);
    assert_eq!(pair.a.errors(), [(u16::MAX, ErrorCode::Catastrophic)], "once, for the NIC");

    // The device knows nothing of what was there before.
    let send = Buffer::new(&pair.b, 64);
    send.set(&pattern(64, 1));
    b.post_send(&send.descriptor).unwrap();
    assert!(b.send_wait(LONG).is_err());
    assert_eq!(recv.region.memory().to_vec(1024, 64), [0; 64]);

    // Nothing new is to be had, and the text says what to do.
    let memory = vipl::DmaMemory::new(64).unwrap();
    let refused = pair.a.nic.register_mem(&memory, MemAttributes::new(pair.a.tag)).unwrap_err();
    assert_eq!(refused.code, VipReturn::ErrorResource);
    assert!(refused.to_string().contains("close it and open it again"), "{refused}");
    a.disconnect().unwrap();
    a.destroy().unwrap();
}

/// The command itself says that it was not carried out, in bounded time.
fn the_command_says_so(kind: DeviceKind) {
    let (_, pair) = deaf(kind);
    break_ring(&pair);
    let memory = vipl::DmaMemory::new(64).unwrap();
    let register = || pair.a.nic.register_mem(&memory, MemAttributes::new(pair.a.tag));
    let first = register().unwrap_err().source;
    let driver = first.as_ref().and_then(driver_error);
    assert!(matches!(driver, Some(DriverError::TimedOut { .. })), "{first:?}");
    let start = pair.a.nic.port().now_ns();
    let second = register().unwrap_err().source;
    let driver = second.as_ref().and_then(driver_error);
    assert!(matches!(driver, Some(DriverError::Failed { .. })), "{second:?}");
    assert_eq!(pair.a.nic.port().now_ns(), start, "at once");
}

/// The card is opened again while the program still has what it had of it before, which does not
/// disturb it.
fn it_can_be_opened_again(kind: DeviceKind) {
    let (setup, pair) = deaf(kind);
    let (_a, b) = pair.connected(Reliability::Delivery);
    break_ring(&pair);
    let memory = vipl::DmaMemory::new(64).unwrap();
    pair.a.nic.register_mem(&memory, MemAttributes::new(pair.a.tag)).unwrap_err();
    let bus = Arc::clone(&pair.buses[0]);
    let again = Node::open(bus, &setup.node(0).with_seed(99));
    let Pair { a: before, b: other, simulation, buses, wire, note } = pair;
    before.nic.close();
    drop(before.driver);
    assert!(b.recv_wait(LONG).is_err(), "the peer learns of it");
    b.disconnect().unwrap();
    let pair = Pair { a: again, b: other, simulation, buses, wire, note };
    let a = pair.a.vi(Reliability::Delivery);
    pair.connect(&a, &b);
    pair.assert_works(&a, &b);
}

/// Whoever waits on a card that is reset behind its driver's back is notified.
fn a_reset_by_somebody_else_is_noticed(kind: DeviceKind) {
    let (_, pair) = deaf(kind);
    let (a, _b) = pair.connected(Reliability::Reception);
    let recv = Buffer::new(&pair.a, 64);
    a.post_recv(&recv.descriptor).unwrap();
    let reset = csr::CONTROL::RESET.with(csr::CONTROL::SOFT_RESET, 1);
    pair.a.driver.set_register(csr::CONTROL::OFFSET, reset.0);
    assert_eq!(error_bits(&a.recv_wait(INFINITE)), DESC_FLUSHED_ERROR);
    assert_eq!(pair.a.errors(), [(u16::MAX, ErrorCode::Catastrophic)], "once, for the NIC");
    let memory = vipl::DmaMemory::new(64).unwrap();
    let refused = pair.a.nic.register_mem(&memory, MemAttributes::new(pair.a.tag)).unwrap_err();
    assert!(refused.to_string().contains("was reset by somebody else; close it"), "{refused}");
}

/// A bring-up that fails half-way: the device reaches none of the memory that it was given.
fn a_failed_bring_up_takes_its_memory_back(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let Pair { a, buses, simulation: _simulation, .. } = pair;
    drop(a);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    let sink = Box::new(move |line: &str| sink.lock().unwrap().push(line.to_owned()));
    let bus = Arc::new(TraceBus::new(Arc::clone(&buses[0]) as _, sink));
    // No channel can be opened without credits.
    let config = NicConfig { credits: 0, ..NicConfig::new(0, &[1]) };
    let error = Nic::open(bus, &config).unwrap_err();
    assert!(matches!(error, DriverError::Command { command: "PeerOpen", .. }), "{error}");
    let lines = lines.lock().unwrap();
    let count = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
    assert_eq!([count("  map "), count("  unmap ")], [3, 3], "{lines:#?}");
}

on_every_kind! {
    a_failed_bring_up_takes_its_memory_back,
    memory_that_cannot_be_taken_back_is_out_of_reach,
    a_reset_by_somebody_else_is_noticed,
    the_command_says_so,
    it_can_be_opened_again,
}
