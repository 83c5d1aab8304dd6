//! `shm:`: this process as a node of the network that is shared memory.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, Once, Weak};

use port::process;
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

thread_local! {
    /// Both lists, while this thread forks.
    static FORKING: Cell<Option<Held>> = const { Cell::new(None) };
}

type Held = (MutexGuard<'static, Vec<Opened>>, MutexGuard<'static, Vec<OpenedDomain>>);

/// A child is not to find a list locked by a thread that it does not have. Called once there is a
/// node: nodes have a lock for forks too, and what is registered later is called before a fork first,
/// as openers take these locks first.
fn guard_forks() {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(|| {
        // Without memory for it, a child may stand still if its parent was opening a device.
        let _ = process::around_forks(before_fork, after_fork, after_fork);
    });
}

extern "C" fn before_fork() {
    FORKING.set(Some((lock(&OPENED), lock(&DOMAINS))));
}

extern "C" fn after_fork() {
    drop(FORKING.take());
}

/// Makes this process a node.
fn become_node(name: Option<&str>) -> Result<ShmNode> {
    let node = ShmNode::open(name)?;
    guard_forks();
    Ok(node)
}

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
        None => ViaNode::new(Arc::new(become_node(name)?.port()?))?,
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
        None => become_node(name)?,
    };
    let port = Arc::new(node.port()?);
    opened.push((name.map(str::to_owned), Arc::downgrade(&port)));
    Ok(port)
}
