//! Connections: client and server, and peers.

use crate::address::NetAddress;
use crate::attributes::{Incoming, Progress, RemoteAttributes};
use crate::error::{Error, Result};

/// Connection management of a port.
pub trait ConnectionOps {
    /// Starts to wait for requests to `local`; returns the listener. Several may wait at one address:
    /// each request goes to one of them.
    ///
    /// # Errors
    /// The port cannot wait for requests.
    fn listen(&self, local: &NetAddress) -> Result<u32>;

    /// The request that arrived, if one did; it ends the waiting.
    ///
    /// # Errors
    /// None will come: the device no longer exists.
    fn listen_poll(&self, listener: u32) -> Result<Option<Incoming>>;

    /// Ends the waiting.
    fn listen_stop(&self, listener: u32);

    /// Requests a connection of VI `local.vi` with the listener at `remote`, until `bound_ns` are
    /// over; returns the request. The port chooses `local.connection`.
    ///
    /// # Errors
    /// `remote` is not on this network; a VI that is not this port's.
    fn connect(
        &self,
        local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        bound_ns: u64,
    ) -> Result<u32>;

    /// Progress of a request; anything but Pending ends it.
    ///
    /// # Errors
    /// The device refused to connect the VI.
    fn connect_poll(&self, request: u32) -> Result<Progress>;

    /// Gives a request up.
    fn connect_cancel(&self, request: u32);

    /// Accepts a request with VI `local.vi`.
    ///
    /// # Errors
    /// The device refused to connect the VI; a VI that is not this port's.
    fn accept(&self, incoming: &Incoming, local: RemoteAttributes) -> Result<()>;

    /// Progress of an acceptance; anything but Pending ends it.
    fn accept_poll(&self, incoming: &Incoming) -> Progress;

    /// Gives up a request that arrived, or its acceptance.
    fn reject(&self, incoming: &Incoming);

    /// Requests a connection of VI `local.vi` with the peer at `remote` that names `from`, until
    /// `bound_ns` are over; both sides do. Returns the request.
    ///
    /// # Errors
    /// `remote` is not on this network, or both addresses are one; a VI that is not this port's;
    /// the port has no connections of peers.
    fn peer_connect(
        &self,
        local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        bound_ns: u64,
    ) -> Result<u32> {
        let _ = (local, from, remote, bound_ns);
        Err(Error::NotSupported { what: "connection of peers" })
    }

    /// Progress of a peer's request; anything but Pending ends it. Cancelled, if the time is not
    /// over, means that it failed in a way that another try may mend. One thread at a time for a
    /// request.
    ///
    /// # Errors
    /// The device refused to connect the VI.
    fn peer_poll(&self, request: u32) -> Result<Progress> {
        let _ = request;
        Ok(Progress::Cancelled)
    }

    /// Gives a peer's request up.
    fn peer_cancel(&self, request: u32) {
        let _ = request;
    }
}
