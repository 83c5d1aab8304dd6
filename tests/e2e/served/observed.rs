//! A NIC that is looked at while another program has it.

use std::time::Duration;

use host_driver::bus::vfio_user::VfioUserBus;
use host_driver::bus::{Bar, Dma, REGISTER_BAR};
use host_driver::observer::Observer;
use nic_regs::csr;
use tests::served::Simulator;
use vipl::DmaMemory;

const BOUND: Duration = Duration::from_secs(30);

#[test]
fn an_observer_reads_what_it_may_and_changes_nothing() {
    let simulator = Simulator::start("observed", 2, 0.0);
    let socket = simulator.socket(0);
    let free = Observer::connect(&socket, BOUND).unwrap();
    assert_eq!((free.owner(), free.state().unwrap()), (None, "up"));

    // Observers are in nobody's way.
    let node = simulator.open(0);
    let observer = Observer::connect(&socket, BOUND).unwrap();
    assert_eq!(observer.owner(), Some(std::process::id()));
    assert_eq!(observer.attributes().vis, 1024);
    let commands = |counters: Vec<(&str, u64)>| {
        counters.into_iter().find(|(name, _)| *name == "AdminCommands").map(|(_, value)| value)
    };
    assert!(commands(free.counters().unwrap()) > Some(0), "the first one sees the new program too");

    // What would change the NIC is refused, or does nothing.
    let bus = VfioUserBus::observe(&socket, BOUND).unwrap();
    let offset = |register: u32| u64::from(register);
    bus.write32(REGISTER_BAR, offset(csr::CONTROL::OFFSET), 0);
    for register in [csr::CYCLES_LO::OFFSET, csr::ERROR_LO::OFFSET, csr::MSIX_TABLE_OFFSET] {
        let text = bus.read32(REGISTER_BAR, offset(register)).unwrap_err().to_string();
        assert!(text.contains("errno 22"), "{text}");
    }
    assert!(bus.map(&DmaMemory::new(4096).unwrap()).is_err());
    assert_ne!(bus.read32(REGISTER_BAR, offset(csr::CONTROL::OFFSET)).unwrap(), 0, "as it was");
    drop((bus, free));
    assert!(node.nic.create_ptag().is_ok(), "its program goes on");

    // The program goes, another one comes: the observer stays.
    drop(node);
    let _next = tests::served::when_free("the NIC", || VfioUserBus::connect(&socket).ok());
    assert_eq!(observer.state().unwrap(), "disabled", "it was reset, and is not brought up");
}
