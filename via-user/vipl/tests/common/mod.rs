//! One node alone, for what needs no second one.

use cosim::simulation::seeded::{SeededSimulation, SimulationConfig};
use host_driver::HardwarePort;
use host_driver::nic::{Nic as DriverNic, NicConfig};
use nic_model::Model;
use vipl::{Nic, Ptag};

/// A NIC on a node without a link.
#[derive(Debug)]
pub(crate) struct Node {
    /// The NIC.
    pub(crate) nic: Nic,
    /// A protection tag.
    pub(crate) tag: Ptag,
}

impl Node {
    /// Node `number`, without peers.
    pub(crate) fn new(number: u8) -> Self {
        let device = Box::new(Model::default());
        let (_, bus) = SeededSimulation::single(SimulationConfig::default(), device);
        let driver = DriverNic::open(bus, &NicConfig::new(number, &[]).with_seed(1)).unwrap();
        let nic = Nic::open(HardwarePort::open(driver).unwrap());
        let tag = nic.create_ptag().unwrap();
        Self { nic, tag }
    }
}
