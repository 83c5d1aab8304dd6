//! Simulations in this process. Everybody who opens a NIC of the same simulation shares it; it
//! lasts as long as a NIC of it is open.

use cosim::simulation::SimulatedDevice;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};

use cosim::simulation::live::{LiveBus, LiveSimulation};
use host_driver::nic::{Nic, NicConfig};
use nic_model::Model;
use nic_model::link::Faults;

use crate::error::{Error, Result};
use crate::url::{Kind, SimOptions};

/// Simulations by what was asked for.
pub(crate) type Simulations = BTreeMap<String, Weak<LiveSimulation>>;

#[cfg(not(feature = "rtl"))]
fn rtl(_node: u8, _trace: &Path) -> Result<SimulatedDevice> {
    Err(Error::NoRtl)
}

#[cfg(feature = "rtl")]
fn rtl(node: u8, trace: &Path) -> Result<SimulatedDevice> {
    let mut nic = cosim::rtl::RtlNic::new(cosim::root_complex::HostSettings::default());
    if !trace.as_os_str().is_empty() {
        nic.trace_node(trace, &node.to_string()).map_err(Error::Trace)?;
    }
    Ok(Box::new(nic))
}

/// Makes a simulation and lets it run.
fn create(kind: Kind, options: &SimOptions) -> Result<Arc<LiveSimulation>> {
    let faults = Faults {
        seed: options.seed,
        loss: options.loss,
        corrupt: options.corrupt,
        ..Faults::default()
    };
    let device = |node| match kind {
        Kind::Model => Ok(Box::new(Model::default()) as SimulatedDevice),
        Kind::Rtl => rtl(node, &options.trace),
    };
    let devices = (0..options.nodes).map(device).collect::<Result<Vec<_>>>()?;
    Ok(LiveSimulation::start(devices, options.latency, &faults)?)
}

/// Brings a NIC up in its simulation, which is made if it is not there.
///
/// # Errors
/// [`crate::Error::NoRtl`]; what the driver says.
pub(crate) fn bring_up(
    simulations: &mut Simulations,
    kind: Kind,
    options: &SimOptions,
) -> Result<Arc<Nic>> {
    simulations.retain(|_, simulation| simulation.strong_count() > 0);
    let key = options.simulation_key(kind);
    let simulation = match simulations.get(&key).and_then(Weak::upgrade) {
        Some(simulation) => simulation,
        None => {
            let simulation = create(kind, options)?;
            simulations.insert(key, Arc::downgrade(&simulation));
            simulation
        }
    };
    let mut bus = LiveBus::new(simulation, options.node.into());
    if options.doorbells_nowhere {
        bus = bus.with_doorbells_nowhere()?;
    }
    let config = NicConfig::simulated(options.node, options.nodes);
    Ok(Nic::open(Arc::new(bus), &config)?)
}
