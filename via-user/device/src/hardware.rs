//! Devices that are hardware, or are simulated as such: their drivers in this process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use host_driver::HardwarePort;
use host_driver::bus::vfio::VfioBus;
use host_driver::bus::vfio_user::{ANSWER_BOUND, VfioUserBus};
use host_driver::nic::{Nic, NicConfig};
use port::trust::run_time_folder;

use crate::error::{Error, Result};
use crate::url::Place;
use crate::{default, sim};

/// Longest wait for a device that another thread of this process is giving back.
const GIVING_BACK: Duration = Duration::from_secs(2);
/// How long the waiting thread sleeps.
const NAP: Duration = Duration::from_micros(50);

/// A driver of this process. It goes with its last port.
#[derive(Debug)]
struct Driver {
    nic: Weak<Nic>,
    /// There until the device is released.
    ownership: Weak<()>,
}

/// Drivers by what they drive.
type Drivers = BTreeMap<String, Driver>;

/// What this process has opened.
#[derive(Debug)]
pub(crate) struct Opened {
    drivers: Drivers,
    simulations: sim::Simulations,
}

impl Opened {
    pub(crate) const fn new() -> Self {
        Self { drivers: BTreeMap::new(), simulations: BTreeMap::new() }
    }
}

impl Driver {
    fn of(nic: &Arc<Nic>) -> Self {
        Self { nic: Arc::downgrade(nic), ownership: nic.ownership() }
    }

    /// Waits while the device is being released. In a child after fork nobody may be left to do it,
    /// so not for ever; whoever brings the device up then gets the error that it is in use.
    fn settle(&self) {
        let end = Instant::now() + GIVING_BACK;
        while self.nic.strong_count() == 0
            && self.ownership.strong_count() > 0
            && Instant::now() < end
        {
            std::thread::sleep(NAP);
        }
    }
}

/// Opens a port on a device, whose driver this process may have already.
pub(crate) fn open(opened: &mut Opened, place: Place) -> Result<Arc<HardwarePort>> {
    opened.drivers.retain(|_, driver| driver.ownership.strong_count() > 0);
    let driver = match place {
        Place::Folder(folder) => first_free(opened, folder)?,
        Place::VfioUser(path) if path.is_dir() => first_free(opened, path)?,
        place => shared(opened, &place)?,
    };
    Ok(HardwarePort::open(driver)?)
}

/// The driver that this process has, if its card is still there: after a fork the child has the
/// drivers of its parent, whose cards are not its own, and a simulator may have been started anew.
fn known(drivers: &Drivers, key: &str) -> Option<Arc<Nic>> {
    let driver = drivers.get(key)?;
    driver.settle();
    driver.nic.upgrade().filter(|nic| nic.is_present())
}

/// The driver of a device, which this process may have already.
fn shared(opened: &mut Opened, place: &Place) -> Result<Arc<Nic>> {
    let key = place.key();
    if let Some(driver) = known(&opened.drivers, &key) {
        return Ok(driver);
    }
    let driver = bring_up(&mut opened.simulations, place)?;
    opened.drivers.insert(key, Driver::of(&driver));
    Ok(driver)
}

/// The first device in a folder that no other program uses; the same for all who ask for the
/// folder.
fn first_free(opened: &mut Opened, folder: PathBuf) -> Result<Arc<Nic>> {
    let key = Place::Folder(folder.clone()).key();
    if let Some(driver) = known(&opened.drivers, &key) {
        return Ok(driver);
    }
    let mut why = Vec::new();
    let start = Instant::now();
    // The sockets of a folder are one simulator's: if it does not answer at one, it does not at others.
    let answers = |_: &PathBuf| start.elapsed() < ANSWER_BOUND;
    for socket in default::sockets(&folder).into_iter().take_while(answers) {
        match shared(opened, &Place::VfioUser(socket)) {
            Ok(driver) => {
                opened.drivers.insert(key, Driver::of(&driver));
                return Ok(driver);
            }
            Err(Error::Driver(error)) => why.push(error),
            Err(other) => return Err(other),
        }
    }
    Err(if why.is_empty() { Error::NoDefault { folder } } else { Error::NoneFree { folder, why } })
}

fn bring_up(simulations: &mut sim::Simulations, place: &Place) -> Result<Arc<Nic>> {
    match place {
        Place::Sim(kind, options) => sim::bring_up(simulations, *kind, options),
        Place::VfioUser(path) => {
            let bus = VfioUserBus::connect(path)?;
            let config = NicConfig::simulated(bus.node(), bus.nodes());
            Ok(Nic::open(bus, &config)?)
        }
        Place::Vfio(address) => {
            let bus = VfioBus::open(address)?;
            let config = match bus.node() {
                (_, 0) => NicConfig::new(0, &[]),
                (node, nodes) => NicConfig::simulated(node, nodes),
            };
            Ok(Nic::open(bus, &config)?)
        }
        Place::Shm(_) => Err(Error::NoHardware { url: "shm:" }),
        Place::Udp(_) => Err(Error::NoHardware { url: "udp:" }),
        Place::Eth(_) => Err(Error::NoHardware { url: "eth:" }),
        // Neither is a device; [`open`] has found one.
        Place::Folder(folder) => Err(Error::NoDefault { folder: folder.clone() }),
        Place::Default => Err(Error::NoDefault { folder: run_time_folder() }),
    }
}
