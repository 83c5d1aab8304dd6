//! Connections, client and server: request, accept, reject.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use port::address::{DISCRIMINATOR_MAX, HOST_ADDRESS_MAX};
use port::{Incoming, NetAddress, Progress, RemoteAttributes};

use crate::attributes::{RemoteViAttributes, ViAttributes};
use crate::error::{Error, Result, VipReturn};
use crate::objects::{Nic, Vi};
use crate::waiting::{WaitPolicy, nothing_to_arm};

/// Bound of the sleeps of an acceptance. The port ends it: on a board long before.
const ACCEPT_BOUND: Duration = Duration::from_secs(1);

/// A request that arrived (`VIP_CONN_HANDLE`). Dropped without an answer it is rejected.
#[derive(Debug)]
#[doc(alias = "VIP_CONN_HANDLE")]
pub struct ConnectionRequest {
    nic: Nic,
    incoming: Incoming,
    answered: AtomicBool,
}

pub(crate) fn check(address: &NetAddress) -> Result<()> {
    let fits =
        address.host.len() <= HOST_ADDRESS_MAX && address.discriminator.len() <= DISCRIMINATOR_MAX;
    if fits { Ok(()) } else { Err(VipReturn::InvalidParameter.into()) }
}

/// What the other side gets to know of a VI.
pub(crate) fn local_attributes(vi: &Vi) -> RemoteAttributes {
    let a: ViAttributes = vi.attributes();
    RemoteAttributes {
        vi: vi.number(),
        connection: 0,
        reliability: a.reliability,
        rdma_write: a.enable_rdma_write,
        rdma_read: a.enable_rdma_read,
        max_transfer: a.max_transfer_size,
        qos: a.qos,
    }
}

/// Why VIs with these attributes cannot be connected, if they cannot.
pub(crate) fn mismatch(mine: &ViAttributes, theirs: &RemoteAttributes) -> Option<VipReturn> {
    if mine.reliability != theirs.reliability {
        Some(VipReturn::InvalidReliabilityLevel)
    } else if mine.max_transfer_size != theirs.max_transfer {
        Some(VipReturn::InvalidMtu)
    } else if mine.qos != theirs.qos {
        Some(VipReturn::InvalidQos)
    } else {
        None
    }
}

impl ConnectionRequest {
    pub(crate) const fn new(nic: Nic, incoming: Incoming) -> Self {
        Self { nic, incoming, answered: AtomicBool::new(false) }
    }

    /// The requester's own address.
    #[must_use]
    pub const fn remote_address(&self) -> &NetAddress {
        &self.incoming.from
    }

    /// The attributes of the requester's VI.
    #[must_use]
    pub fn remote_attributes(&self) -> RemoteViAttributes {
        self.incoming.attributes.into()
    }

    /// Whether the request was accepted: it can be neither accepted nor rejected then, also if the
    /// requester was gone or the VI was disconnected meanwhile.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    /// Accepts the request with an Idle VI. If the attributes do not match, the requester is not
    /// notified, and the request can be accepted with another VI, or rejected.
    ///
    /// # Errors
    /// [`VipReturn::InvalidReliabilityLevel`], [`VipReturn::InvalidMtu`],
    /// [`VipReturn::InvalidQos`]; [`VipReturn::InvalidState`] unless the VI is Idle, or if another
    /// thread disconnects it meanwhile; [`VipReturn::Timeout`] if the requester no longer exists;
    /// [`VipReturn::InvalidParameter`] for a VI of another NIC, or one that is destroyed.
    #[doc(alias = "VipConnectAccept")]
    pub fn accept(&self, vi: &Vi) -> Result<()> {
        vi.check(&self.nic)?;
        if let Some(code) = mismatch(&vi.attributes(), &self.incoming.attributes) {
            return Err(code.into());
        }
        if self.is_answered() {
            return Err(VipReturn::InvalidState.into());
        }
        vi.begin_connect()?;
        if let Err(error) = self.nic.port().accept(&self.incoming, local_attributes(vi)) {
            vi.connect_failed(true)?;
            let gone = matches!(error, port::Error::NoSuch { .. } | port::Error::PeerDown(_));
            let code = if gone { VipReturn::Timeout } else { Error::from(error.clone()).code };
            return Err(Error { code, source: Some(error.into()) });
        }
        self.answered.store(true, Ordering::Release);
        // The port ends it in time.
        let what = "a confirmation of VI";
        let mut policy = WaitPolicy::new(&self.nic, ACCEPT_BOUND, what, vi.number().into());
        loop {
            self.nic.progress();
            if vi.is_abandoned() {
                self.nic.port().reject(&self.incoming);
                vi.connect_failed(true)?;
                return Err(VipReturn::InvalidState.into());
            }
            match self.nic.port().accept_poll(&self.incoming) {
                Progress::Pending => policy.pause(&self.nic, nothing_to_arm),
                Progress::Established(_) => {
                    vi.connected()?;
                    vi.handle_early_stop();
                    return Ok(());
                }
                _ => {
                    vi.connect_failed(true)?;
                    return Err(VipReturn::Timeout.into());
                }
            }
        }
    }

    /// Rejects the request.
    #[doc(alias = "VipConnectReject")]
    pub fn reject(self) {
        // Dropping rejects.
    }
}

impl Drop for ConnectionRequest {
    fn drop(&mut self) {
        if !self.is_answered() && !std::thread::panicking() {
            self.nic.port().reject(&self.incoming);
        }
    }
}

impl Vi {
    /// Asks for a connection to whoever waits at `remote`; the other side learns `local`.
    ///
    /// # Errors
    /// [`VipReturn::NoMatch`] promptly if nobody waits there; [`VipReturn::Reject`];
    /// [`VipReturn::Timeout`] if no answer came (also if the other node is dead);
    /// [`VipReturn::NotReachable`] for an address that is not on this network, and for the own one
    /// if the link does not bring back what a node sends to itself (some milliseconds of the NIC);
    /// [`VipReturn::InvalidState`] unless Idle, or if another thread disconnects the VI meanwhile;
    /// [`VipReturn::InvalidParameter`] for a timeout of zero.
    #[doc(alias = "VipConnectRequest")]
    pub fn connect_request(
        &self,
        local: &NetAddress,
        remote: &NetAddress,
        timeout: Duration,
    ) -> Result<RemoteViAttributes> {
        check(local)?;
        check(remote)?;
        if timeout.is_zero() {
            return Err(VipReturn::InvalidParameter.into());
        }
        let nic = self.nic();
        let bound_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let mut policy = WaitPolicy::new(nic, timeout, "an answer for VI", self.number().into());
        self.begin_connect()?;
        let started = nic.port().connect(local_attributes(self), local, remote, bound_ns);
        let exchange = match started {
            Ok(exchange) => exchange,
            Err(error) => {
                self.connect_failed(false)?;
                return Err(error.into());
            }
        };
        loop {
            nic.progress();
            if self.is_abandoned() {
                nic.port().connect_cancel(exchange);
                self.connect_failed(true)?;
                return Err(VipReturn::InvalidState.into());
            }
            let failed = match nic.port().connect_poll(exchange) {
                Ok(Progress::Pending) => {
                    policy.pause(nic, nothing_to_arm);
                    continue;
                }
                Ok(Progress::Established(remote)) => {
                    self.connected()?;
                    self.handle_early_stop();
                    return Ok(remote.into());
                }
                Ok(Progress::Rejected) => (VipReturn::Reject.into(), false),
                // Only a peer is notified of a mismatch.
                Ok(Progress::NoMatch | Progress::Mismatch(_)) => (VipReturn::NoMatch.into(), false),
                // The NIC's VI may have been connected for a moment.
                Ok(Progress::Cancelled) => (VipReturn::Timeout.into(), true),
                Err(error) => (error.into(), true),
            };
            self.connect_failed(failed.1)?;
            return Err(failed.0);
        }
    }
}
