//! `shm:`: this process as a node of the network that is shared memory.

use std::sync::{Arc, Mutex, Weak};

use port::sync::lock;
use soft_nic::clan::{ClanVia, ViaNode};
use soft_nic::shm::{ShmNode, ShmPort};

use crate::error::Result;

/// A port that was opened, by the name that its node was asked to have.
type Opened = (Option<String>, Weak<ClanVia>);

static OPENED: Mutex<Vec<Opened>> = Mutex::new(Vec::new());

/// A domain that was opened, by the name that its node was asked to have.
type OpenedDomain = (Option<String>, Weak<ShmPort>);

/// Not those of VIPL: VIA's peers have the same number of domain, so a node is VIPL's or it is not.
static DOMAINS: Mutex<Vec<OpenedDomain>> = Mutex::new(Vec::new());

/// Opens a port on the node of this process with a name, or without one; the first time it becomes
/// that node. A child after fork becomes a node of its own.
pub(crate) fn open(name: Option<&str>) -> Result<Arc<ClanVia>> {
    // Held throughout, so that two openers do not take two names.
    let mut opened = lock(&OPENED);
    opened.retain(|(_, port)| port.strong_count() > 0);
    let same = opened.iter().filter(|(known, _)| known.as_deref() == name);
    let node = same.filter_map(|(_, port)| port.upgrade()).map(|port| port.node());
    let node = match node.into_iter().find(ViaNode::is_present) {
        Some(node) => node,
        None => ViaNode::new(Arc::new(ShmNode::open(name)?.port()?))?,
    };
    let port = node.port()?;
    opened.push((name.map(str::to_owned), Arc::downgrade(&port)));
    Ok(port)
}

/// Opens a domain of the node of this process with a name, or without one; the first time it becomes
/// that node. A child after fork becomes a node of its own.
pub(crate) fn open_domain(name: Option<&str>) -> Result<Arc<ShmPort>> {
    // Held throughout, as above.
    let mut opened = lock(&DOMAINS);
    opened.retain(|(_, port)| port.strong_count() > 0);
    let same = opened.iter().filter(|(known, _)| known.as_deref() == name);
    let mut nodes = same.filter_map(|(_, port)| Some(port.upgrade()?.shm_node()));
    let node = match nodes.find(ShmNode::is_own) {
        Some(node) => node,
        None => ShmNode::open(name)?,
    };
    let port = Arc::new(node.port()?);
    opened.push((name.map(str::to_owned), Arc::downgrade(&port)));
    Ok(port)
}
