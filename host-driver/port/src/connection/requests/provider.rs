//! What only the port itself can do for its connections.

use super::Requests;
use crate::address::NetAddress;
use crate::connection::{Connections, Endpoint, ProviderData};
use crate::error::Result;
use crate::ops::ViPort;

/// A port whose connections are made by a [`Connections`].
///
/// The manager belongs to the NIC, which may have several ports. The port exchanges its frames and
/// calls its timer ([`Provider::run`]), and calls [`Connections::peer_up`],
/// [`Connections::peer_down`] and [`Connections::unreachable`] where it learns of such things.
pub trait Provider: ViPort {
    /// This port's requests.
    fn requests(&self) -> &Requests;

    /// Gives the NIC's manager to `with`, locked, and does nothing else: [`Provider::run`] follows
    /// where there is something to send. `with` calls nothing of the port.
    fn with_connections<R>(&self, with: impl FnOnce(&mut Connections) -> R) -> R;

    /// Does now what there is to do for connections: gives the frames that arrived to the manager,
    /// then what the port learned of nodes, calls the manager's timer, and sends its frames.
    fn run(&self);

    /// The same if anything is due and no other thread does it. Cheap otherwise: programs that poll
    /// call this.
    ///
    /// # Errors
    /// The device no longer exists.
    fn progress(&self) -> Result<()>;

    /// Opens the way from a VI to the node of `remote`, as far as that is needed, and gives the node's
    /// number. Does not wait until it is open.
    ///
    /// # Errors
    /// A VI that is not this port's; `remote` is not on this network; the device no longer exists.
    fn reach(&self, vi: u16, remote: &NetAddress) -> Result<u32>;

    /// What the provider of a node is to know of a VI that is about to be connected to one there.
    /// Called more than once for some connections.
    ///
    /// # Errors
    /// A VI that is not this port's; the port has no more of what a connection needs.
    fn provider_data(&self, vi: u16, node: u32) -> Result<ProviderData>;

    /// Connects a VI to the VI `remote` of a node; `remote.attributes.connection` is the id that
    /// both sides have for the connection. The data come from the other node, and may be anything.
    ///
    /// # Errors
    /// [`crate::Error::PeerDown`] if the node no longer exists; the device refused.
    fn connect_vi(&self, vi: u16, node: u32, remote: &Endpoint) -> Result<()>;
}
