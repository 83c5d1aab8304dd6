//! Simulated worlds in this process. Everybody who opens a NIC of the same world shares it; it
//! lasts as long as a NIC of it is open.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use cosim::world::live::{LiveBus, LiveWorld};
use host_driver::nic::{Nic, NicConfig};
use nic_model::Model;
use nic_model::device::Device;
use nic_model::link::Faults;
use port::sync::lock;

use crate::error::Result;
use crate::url::{Kind, SimOptions};

static WORLDS: Mutex<BTreeMap<String, Weak<LiveWorld>>> = Mutex::new(BTreeMap::new());

#[cfg(not(feature = "rtl"))]
fn device(kind: Kind) -> Result<Box<dyn Device + Send>> {
    match kind {
        Kind::Model => Ok(Box::new(Model::default())),
        Kind::Rtl => Err(crate::Error::NoRtl),
    }
}

#[cfg(feature = "rtl")]
fn device(kind: Kind) -> Result<Box<dyn Device + Send>> {
    use cosim::root_complex::HostSettings;
    match kind {
        Kind::Model => Ok(Box::new(Model::default())),
        Kind::Rtl => Ok(Box::new(cosim::rtl::RtlNic::new(HostSettings::default()))),
    }
}

/// Makes a world and lets it run.
fn create(kind: Kind, options: &SimOptions) -> Result<Arc<LiveWorld>> {
    let faults = Faults {
        seed: options.seed,
        loss: options.loss,
        corrupt: options.corrupt,
        ..Faults::default()
    };
    let devices = (0..options.nodes).map(|_| device(kind)).collect::<Result<Vec<_>>>()?;
    Ok(LiveWorld::start(devices, options.latency, &faults)?)
}

/// Brings a NIC up in its world, which is made if it is not there.
///
/// # Errors
/// [`crate::Error::NoRtl`]; what the driver says.
pub(crate) fn bring_up(kind: Kind, options: &SimOptions) -> Result<Arc<Nic>> {
    let world = {
        let mut worlds = lock(&WORLDS);
        worlds.retain(|_, world| world.strong_count() > 0);
        let key = options.world_key(kind);
        match worlds.get(&key).and_then(Weak::upgrade) {
            Some(world) => world,
            None => {
                let world = create(kind, options)?;
                worlds.insert(key, Arc::downgrade(&world));
                world
            }
        }
    };
    let mut bus = LiveBus::new(world, options.node.into());
    if options.doorbells_nowhere {
        bus = bus.with_doorbells_nowhere()?;
    }
    let peers: Vec<u8> = (0..options.nodes).filter(|node| *node != options.node).collect();
    Ok(Nic::open(Arc::new(bus), &NicConfig::new(options.node, &peers))?)
}
