//! Simulated worlds in this process. Everybody who opens a NIC of the same world shares it; it
//! lasts as long as a NIC of it is open.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use host_driver::bus::sim::{NoLink, SharedWire, World, WorldConfig};
use host_driver::nic::{Nic, NicConfig};
use host_driver::sync::lock;
use nic_model::Model;
use nic_model::device::{Device, Link};
use nic_model::link::{Faults, Side, Wire};

use crate::error::Result;
use crate::live::{Engine, LiveBus};
use crate::url::{Kind, SimOptions};

static WORLDS: Mutex<BTreeMap<String, Weak<Engine>>> = Mutex::new(BTreeMap::new());

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
fn create(kind: Kind, options: &SimOptions) -> Result<Arc<Engine>> {
    let faults = Faults {
        seed: options.seed,
        loss: options.loss,
        corrupt: options.corrupt,
        ..Faults::default()
    };
    let wire = SharedWire::new(Wire::with_faults(options.latency, &faults));
    // Nobody knows here what the program's threads do meanwhile, so nothing is a deadlock.
    let config =
        WorldConfig { seed: options.seed, deadlock_limit: u64::MAX, ..WorldConfig::default() };
    let world = World::new(config);
    let mut buses = Vec::new();
    for node in 0..options.nodes {
        let link: Box<dyn Link + Send> = match (options.nodes, node) {
            (1, _) => Box::new(NoLink),
            (_, 0) => wire.end(Side::A),
            _ => wire.end(Side::B),
        };
        buses.push(world.add_node(device(kind)?, link));
    }
    Ok(Engine::start(world, buses, faults.any())?)
}

/// Brings a NIC up in its world, which is made if it is not there.
///
/// # Errors
/// [`crate::Error::NoRtl`]; what the driver says.
pub(crate) fn bring_up(kind: Kind, options: &SimOptions) -> Result<Arc<Nic>> {
    let engine = {
        let mut worlds = lock(&WORLDS);
        worlds.retain(|_, engine| engine.strong_count() > 0);
        let key = options.world_key(kind);
        match worlds.get(&key).and_then(Weak::upgrade) {
            Some(engine) => engine,
            None => {
                let engine = create(kind, options)?;
                worlds.insert(key, Arc::downgrade(&engine));
                engine
            }
        }
    };
    let mut bus = LiveBus::new(engine, options.node.into());
    if options.doorbells_nowhere {
        bus = bus.with_doorbells_nowhere()?;
    }
    let peers: Vec<u8> = (0..options.nodes).filter(|node| *node != options.node).collect();
    Ok(Nic::open(Arc::new(bus), &NicConfig::new(options.node, &peers))?)
}
