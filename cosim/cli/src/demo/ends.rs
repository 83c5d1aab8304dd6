//! The two nodes that the demo's programs run on.

use std::sync::Arc;
use std::time::Duration;

use cosim::simulation::seeded::{SeededSimulation, Slot};
use host_driver::HardwarePort;
use host_driver::address::NodeAddress;
use nic_regs::csr;
use port::ViPort;
use vipl::{NetAddress, Nic, Vi};

use super::{Drivers, Failure, NODES};

/// Sender and receiver.
pub(crate) enum Ends<'a> {
    /// Nodes of a simulation, whose clock advances as its programs wait.
    Simulated {
        /// The simulation.
        simulation: &'a SeededSimulation,
        /// Their drivers.
        drivers: &'a Drivers,
    },
    /// Devices of this machine.
    Devices([Arc<dyn ViPort>; 2]),
}

impl Ends<'_> {
    /// Opens two devices by their URLs.
    ///
    /// # Errors
    /// One cannot be opened.
    pub(crate) fn open(urls: &[String; 2]) -> Result<Self, Failure> {
        let [sender, receiver] = urls;
        Ok(Self::Devices([device::open(sender)?, device::open(receiver)?]))
    }

    /// What the threads of both programs enter first.
    pub(super) fn slots(&self) -> [Option<Slot>; 2] {
        match self {
            Self::Simulated { simulation, .. } => {
                ["sender", "receiver"].map(|name| Some(simulation.slot(name)))
            }
            Self::Devices(_) => [None, None],
        }
    }

    /// Opens the NIC of a program.
    pub(super) fn nic(&self, end: usize) -> Result<Nic, Failure> {
        Ok(match self {
            Self::Simulated { drivers, .. } => {
                Nic::open(HardwarePort::open(Arc::clone(&drivers[end]))?)
            }
            Self::Devices(ports) => Nic::open(Arc::clone(&ports[end])),
        })
    }

    /// The address of a program.
    pub(super) fn address(&self, end: usize, service: &[u8]) -> NetAddress {
        match self {
            Self::Simulated { .. } => NetAddress::of_node(NODES[end], service),
            Self::Devices(ports) => NetAddress::new(&ports[end].attributes().host_address, service),
        }
    }

    /// Time in ticks: cycles of the simulation, or nanoseconds.
    pub(super) fn now(&self) -> u64 {
        match self {
            Self::Simulated { simulation, .. } => simulation.now(),
            Self::Devices([port, _]) => port.now_ns(),
        }
    }

    /// Time after which a silent peer counts as lost.
    pub(super) const fn patience(&self) -> Duration {
        match self {
            Self::Simulated { .. } => Duration::from_millis(20),
            Self::Devices(_) => Duration::from_secs(10),
        }
    }

    /// Has the NIC stamp the stages of this VI's first message, for the anatomy.
    pub(super) fn sample(&self, end: usize, vi: &Vi) {
        if let Self::Simulated { drivers, .. } = self {
            let sample = csr::SAMPLE::RESET
                .with(csr::SAMPLE::VI, vi.number().into())
                .with(csr::SAMPLE::ARMED, 1);
            drivers[end].set_register(csr::SAMPLE::OFFSET, sample.0);
        }
    }
}
