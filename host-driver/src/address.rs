//! Host addresses of the link network, which numbers its nodes.

use nic_regs::limits::PEER_COUNT;
use port::NetAddress;

/// Bytes of a host address on this network.
const HOST_ADDRESS_BYTES: usize = 6;

/// The host address of a node: locally administered, 'VIA', node number.
#[must_use]
pub const fn host_of_node(node: u8) -> [u8; HOST_ADDRESS_BYTES] {
    [0x02, b'V', b'I', b'A', 0, node]
}

/// The node with this host address, if it is on the link network.
#[must_use]
pub fn node_of_host(host: &[u8]) -> Option<u8> {
    let (node, _) = host.split_last()?;
    (host == host_of_node(*node)).then_some(*node)
}

/// The name that the network gives a node: `node7`.
pub(crate) fn name_of_node(node: u8) -> Option<String> {
    (usize::from(node) < PEER_COUNT).then(|| format!("node{node}"))
}

/// The node that [`name_of_node`] gives this name; capital letters do not matter.
pub(crate) fn node_of_name(name: &str) -> Option<u8> {
    let node = name.get("node".len()..)?.parse().ok()?;
    name_of_node(node).filter(|known| known.eq_ignore_ascii_case(name)).map(|_| node)
}

/// Network addresses on the link network.
pub trait NodeAddress: Sized {
    /// The address of a service on node `node`.
    #[must_use]
    fn of_node(node: u8, discriminator: &[u8]) -> Self;
}

impl NodeAddress for NetAddress {
    fn of_node(node: u8, discriminator: &[u8]) -> Self {
        Self::new(&host_of_node(node), discriminator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_of_nodes_lead_back_to_them() {
        assert_eq!(node_of_host(&NetAddress::of_node(7, b"x").host), Some(7));
        assert_eq!([node_of_host(&[]), node_of_host(&[1, 2, 3, 4, 5, 6])], [None; 2]);
        assert_eq!([node_of_name("node7"), node_of_name("Node63")], [Some(7), Some(63)]);
        for bad in [
            "node",
            "node07",
            "node+7",
            "node64",
            "nod\u{e9}",
            "ode1",
            "node1 ",
            "\u{30ce}\u{30fc}\u{30c9}1",
        ] {
            assert_eq!(node_of_name(bad), None, "{bad}");
        }
    }
}
