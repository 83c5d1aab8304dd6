//! `udp:` and `eth:`: this process as a node of a network of UDP sockets, or of an Ethernet.

use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use soft_nic::net::{Key, NetNode, NetVia, Options};

use crate::error::{Error, Result};
use crate::url::{NetOptions, Place};

/// Variable with the secret that the nodes of a network share.
pub const KEY_VARIABLE: &str = "VIADUCT_KEY";
/// Longest wait for an address that another thread of this process is about to release.
const RELEASE_BOUND: Duration = Duration::from_secs(2);
/// How long the waiting thread sleeps.
const NAP: Duration = Duration::from_micros(50);

/// A port that was opened.
#[derive(Debug)]
pub(crate) struct OpenedNet {
    place: Place,
    port: Weak<NetVia>,
    /// There until its node has released its address.
    presence: Weak<()>,
}

/// Opens a port on the node of this process at a place; the first time it becomes that node. A child
/// after fork becomes a node of its own.
pub(crate) fn open(opened: &mut Vec<OpenedNet>, place: &Place) -> Result<Arc<NetVia>> {
    opened.retain(|other| other.presence.strong_count() > 0);
    let same = opened.iter().filter(|other| other.place == *place);
    let ports = same.clone().filter_map(|other| other.port.upgrade());
    let node = match ports.map(|port| port.net_node()).find(NetNode::is_present) {
        Some(node) => node,
        None => {
            let end = Instant::now() + RELEASE_BOUND;
            let is_leaving = |other: &OpenedNet| {
                other.port.strong_count() == 0 && other.presence.strong_count() > 0
            };
            while same.clone().any(is_leaving) && Instant::now() < end {
                std::thread::sleep(NAP);
            }
            make(place)?
        }
    };
    let port = node.port()?;
    let presence = node.presence();
    opened.push(OpenedNet { place: place.clone(), port: Arc::downgrade(&port), presence });
    Ok(port)
}

/// Makes this process a node.
fn make(place: &Place) -> Result<NetNode> {
    let text = std::env::var_os(KEY_VARIABLE).unwrap_or_default();
    let with = |net: &NetOptions| Options {
        key: Key::new(text.as_bytes()),
        time_out_ms: net.time_out_ms,
        pcap: net.pcap.clone(),
    };
    match place {
        Place::Udp(options) => Ok(NetNode::udp(options.address, &with(&options.net))?),
        Place::Eth(options) => Ok(NetNode::eth(&options.interface, &with(&options.net))?),
        _ => Err(Error::Unknown { name: format!("{place:?}") }),
    }
}
