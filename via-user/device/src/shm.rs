//! `shm:`: this process as a node of the network that is shared memory.

use std::sync::{Arc, Weak};

use soft_nic::clan::{ClanVia, ViaNode};
use soft_nic::shm::{ShmNode, ShmPort};

use crate::error::Result;

/// A port that was opened, by the name that its node was asked to have.
pub(crate) type OpenedVia = (Option<String>, Weak<ClanVia>);
/// A domain that was opened, by the name that its node was asked to have.
pub(crate) type OpenedDomain = (Option<String>, Weak<ShmPort>);

/// Opens a port on the node of this process with a name, or without one; the first time it becomes
/// that node. A child after fork becomes a node of its own.
pub(crate) fn open(opened: &mut Vec<OpenedVia>, name: Option<&str>) -> Result<Arc<ClanVia>> {
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
pub(crate) fn open_domain(
    opened: &mut Vec<OpenedDomain>,
    name: Option<&str>,
) -> Result<Arc<ShmPort>> {
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
