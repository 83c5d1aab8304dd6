//! The devices that a program could open here.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Instant;

use host_driver::bus::vfio::{Card, Sysfs};
use host_driver::obstacle::Obstacle;
use port::trust::run_time_folder;
use soft_nic::net::{Error as NetError, NetNode, Options};

use crate::default;
use crate::error::Error;
use crate::observe::served;
use crate::url::Place;

/// Whether a device can be opened now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It can.
    Free,
    /// Another program has it.
    Busy,
    /// It cannot.
    Unavailable,
}

/// A device, by its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What names it, or its kind.
    pub url: String,
    /// Whether it can be opened.
    pub availability: Availability,
    /// What it is, or why it cannot be opened.
    pub note: String,
}

/// A function for each kind of device.
const KINDS: [fn() -> Vec<Listed>; 5] = [simulations, shared_memory, network, served_nics, cards];

/// Every device that a program could open here, and the kinds of which there is none.
#[must_use]
pub fn list() -> Vec<Listed> {
    KINDS.iter().flat_map(|kind| kind()).collect()
}

impl Listed {
    fn free(url: &str, note: &str) -> Self {
        Self { url: url.to_owned(), availability: Availability::Free, note: note.to_owned() }
    }

    fn not(availability: Availability, url: String, error: &Error) -> Self {
        let text = error.to_string();
        let note = text.strip_prefix(&format!("{url}: ")).unwrap_or(&text).to_owned();
        Self { url, availability, note }
    }
}

fn simulations() -> Vec<Listed> {
    let rtl = if cfg!(feature = "rtl") {
        Listed::free("sim:rtl", "the Verilated RTL, in the program's own process")
    } else {
        Listed::not(Availability::Unavailable, "sim:rtl".to_owned(), &Error::NoRtl)
    };
    vec![Listed::free("sim:model", "a behavioural model, in the program's own process"), rtl]
}

/// Shared memory, as far as its folder is of use.
fn shared_memory() -> Vec<Listed> {
    vec![match soft_nic::shm::ShmNode::check() {
        Ok(nodes) => {
            let note = match nodes.len() {
                0 => "shared memory of this machine; no node yet".to_owned(),
                _ => format!("shared memory of this machine; nodes: {}", nodes.join(", ")),
            };
            Listed::free("shm:", &note)
        }
        Err(error) => Listed::not(Availability::Unavailable, "shm:".to_owned(), &error.into()),
    }]
}

/// UDP, as far as this computer has it, and its Ethernet interfaces.
fn network() -> Vec<Listed> {
    let unavailable =
        |url, error: NetError| Listed::not(Availability::Unavailable, url, &error.into());
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let mut found = vec![match NetNode::udp(any, &Options::default()) {
        Ok(_) => Listed::free("udp:IP", "UDP between machines; IP is this one's own address"),
        Err(error) => unavailable("udp:IP".to_owned(), error),
    }];
    for name in soft_nic::net::interfaces() {
        let url = format!("eth:{name}");
        found.push(match NetNode::eth(&name, &Options::default()) {
            Ok(node) => Listed::free(&url, &format!("raw Ethernet frames, {}", node.address())),
            Err(error) => unavailable(url, error),
        });
    }
    found
}

/// The sockets of simulators: in the run-time folder, and where `VIADUCT_DEVICE` says.
fn served_nics() -> Vec<Listed> {
    let unavailable = |url, error: &Error| Listed::not(Availability::Unavailable, url, error);
    let mut found = Vec::new();
    let mut sockets = default::sockets(&run_time_folder());
    match default::hardware() {
        Ok(Place::Folder(folder)) if folder != run_time_folder() => {
            sockets.extend(default::sockets(&folder));
        }
        Ok(Place::VfioUser(path)) if !sockets.contains(&path) => sockets.push(path),
        Err(error) => found.push(unavailable("vfio-user:".to_owned(), &error)),
        Ok(_) => {}
    }
    let start = Instant::now();
    found.extend(sockets.into_iter().map(|path| socket(path, start)));
    if found.is_empty() {
        let none = Error::NoDefault { folder: run_time_folder() };
        found.push(unavailable("vfio-user:PATH".to_owned(), &none));
    }
    found
}

fn socket(path: PathBuf, start: Instant) -> Listed {
    let url = format!("vfio-user:{}", path.display());
    match served(&path, start).map(|device| (device.owner(), device)) {
        Ok((None, device)) => Listed::free(&url, &device.attributes().name),
        Ok((by, _)) => {
            Listed::not(Availability::Busy, url, &host_driver::Error::InUse { path, by }.into())
        }
        Err(error) => Listed::not(Availability::Unavailable, url, &error),
    }
}

/// The PCIe cards, and what keeps a program from them.
fn cards() -> Vec<Listed> {
    let cards = Sysfs::default().cards();
    if cards.is_empty() {
        let error = host_driver::Error::Vfio {
            address: "ADDRESS".to_owned(),
            obstacle: Obstacle::no_card(),
        };
        return vec![Listed::not(
            Availability::Unavailable,
            "vfio:ADDRESS".to_owned(),
            &error.into(),
        )];
    }
    let listed = |card: Card| {
        let url = format!("vfio:{}", card.address);
        match card.obstacle() {
            None => Listed::free(&url, "a PCIe card"),
            Some(obstacle) => {
                let availability =
                    if obstacle.is_busy { Availability::Busy } else { Availability::Unavailable };
                Listed { url, availability, note: obstacle.to_string() }
            }
        }
    };
    cards.into_iter().map(listed).collect()
}
