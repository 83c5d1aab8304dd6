//! Connections of peers: both sides name each other, and neither is the server.
//!
//! The request does not block; whoever handles the NIC's events afterwards ([`Nic::progress`]: every
//! call that finds nothing done) also carries it on, so the VI may become Connected before
//! [`Vi::connect_peer_done`] reports. A request stands until its time is over, also before the other
//! side makes its own: there is no 'no match' here.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::{Arc, Weak};

use port::sync::{lock, try_lock};
use port::{NetAddress, Progress};

use crate::attributes::RemoteViAttributes;
use crate::connection::{check, local_attributes, mismatch};
use crate::error::{Error, Result, VipReturn};
use crate::objects::{Nic, Peering, Vi, ViInner};
use crate::waiting::{WaitPolicy, nothing_to_arm};

impl Peering {
    /// The port's request, while it is under way.
    pub(crate) const fn request(&self) -> Option<u32> {
        match self {
            Self::Pending { request, .. } => Some(*request),
            Self::Ended(_) => None,
        }
    }
}

impl Nic {
    /// Carries on the connections with peers that are under way.
    pub(crate) fn peer_progress(&self) {
        let vis: Vec<_> = {
            let mut list = lock(&self.inner().peering);
            list.retain(|kept| kept.strong_count() > 0);
            self.inner().peering_count.store(list.len(), Ordering::Release);
            list.iter().filter_map(Weak::upgrade).collect()
        };
        for vi in vis {
            let vi = Vi::from_inner(vi);
            // Somebody else carries it on otherwise.
            let connected =
                try_lock(&vi.inner().peering).is_some_and(|mut peering| vi.carry_on(&mut peering));
            if connected {
                vi.handle_early_stop();
            }
        }
    }

    fn keep_peering(&self, vi: &Arc<ViInner>) {
        let mut list = lock(&self.inner().peering);
        list.push(Arc::downgrade(vi));
        self.inner().peering_count.store(list.len(), Ordering::Release);
    }

    fn forget_peering(&self, vi: &ViInner) {
        let mut list = lock(&self.inner().peering);
        list.retain(|kept| !core::ptr::eq(kept.as_ptr(), vi));
        self.inner().peering_count.store(list.len(), Ordering::Release);
    }
}

impl Vi {
    /// Asks for a connection with the VI whose program names `local` as its remote address and
    /// `remote` as its local one; it does so sooner or later, and this does not wait for it. A local
    /// address without a host part gets this NIC's.
    ///
    /// # Errors
    /// [`VipReturn::InvalidState`] unless Idle; [`VipReturn::InvalidParameter`] for addresses that
    /// are too long, alike, or, the local one, not of this node, and for a timeout of zero;
    /// [`VipReturn::NotReachable`] for an address that is not on this network;
    /// [`VipReturn::ErrorResource`] if the NIC failed.
    #[doc(alias = "VipConnectPeerRequest")]
    pub fn connect_peer_request(
        &self,
        local: &NetAddress,
        remote: &NetAddress,
        timeout: Duration,
    ) -> Result<()> {
        let nic = self.nic();
        self.check(nic)?;
        check(local)?;
        check(remote)?;
        if timeout.is_zero() {
            return Err(VipReturn::InvalidParameter.into());
        }
        let mut peering = nic.lock_relaxed(&self.inner().peering, "a VI's peer");
        self.begin_connect()?;
        let bound_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let ends_at = nic.port().now_ns().saturating_add(bound_ns);
        let started = nic.port().peer_connect(local_attributes(self), local, remote, bound_ns);
        let request = match started {
            Ok(request) => request,
            Err(error) => {
                self.connect_failed(false)?;
                return Err(error.into());
            }
        };
        let (local, remote) = (local.clone(), remote.clone());
        *peering = Some(Peering::Pending { request, local, remote, ends_at });
        nic.keep_peering(self.inner_arc());
        Ok(())
    }

    /// How the request to the peer is getting on: the attributes of the other side's VI once they
    /// are connected. Anything but [`VipReturn::NotDone`] ends the request and is reported once.
    ///
    /// # Errors
    /// [`VipReturn::NotDone`]; [`VipReturn::Timeout`]; [`VipReturn::InvalidReliabilityLevel`],
    /// [`VipReturn::InvalidMtu`], [`VipReturn::InvalidQos`] if the peer's VI has another one, on both
    /// sides; [`VipReturn::Reject`] if it was refused without a reason that is known here;
    /// [`VipReturn::InvalidState`] if there was no request, or [`Vi::disconnect`] has ended it;
    /// [`VipReturn::InvalidParameter`] if the VI is destroyed; [`VipReturn::ErrorResource`] if the
    /// NIC failed. After an error the VI is Idle.
    #[doc(alias = "VipConnectPeerDone")]
    pub fn connect_peer_done(&self) -> Result<RemoteViAttributes> {
        let nic = self.nic();
        nic.progress();
        self.check(nic)?;
        let mut peering = nic.lock_relaxed(&self.inner().peering, "a VI's peer");
        let connected = self.carry_on(&mut peering);
        let ended = match peering.take() {
            Some(Peering::Ended(result)) => result,
            None => Err(VipReturn::InvalidState.into()),
            pending => {
                *peering = pending;
                Err(VipReturn::NotDone.into())
            }
        };
        drop(peering);
        if connected {
            self.handle_early_stop();
        }
        ended
    }

    /// Waits until the request to the peer has ended; its time-out is the request's.
    ///
    /// # Errors
    /// As [`Vi::connect_peer_done`], but for [`VipReturn::NotDone`].
    #[doc(alias = "VipConnectPeerWait")]
    pub fn connect_peer_wait(&self) -> Result<RemoteViAttributes> {
        // The port ends the request when its time is over.
        let left = match &*self.nic().lock_relaxed(&self.inner().peering, "a VI's peer") {
            Some(Peering::Pending { ends_at, .. }) => {
                Duration::from_nanos(ends_at.saturating_sub(self.nic().port().now_ns()))
            }
            _ => Duration::ZERO,
        };
        let mut policy = WaitPolicy::new(self.nic(), left, "a peer of VI", self.number().into());
        loop {
            match self.connect_peer_done() {
                Err(Error { code: VipReturn::NotDone, .. }) => {
                    policy.pause(self.nic(), nothing_to_arm);
                }
                ended => return ended,
            }
        }
    }

    /// Carries on what is under way. True if the VI is connected now: [`Vi::handle_early_stop`] next, without the
    /// lock, since a handler of the program may be called, which may disconnect the VI.
    fn carry_on(&self, peering: &mut Option<Peering>) -> bool {
        let Some(Peering::Pending { request, local, remote, ends_at }) = peering else {
            return false;
        };
        let nic = self.nic();
        let ended = match nic.port().peer_poll(*request) {
            Ok(Progress::Pending) => return false,
            Ok(Progress::Established(remote)) => self.connected().map(|()| remote.into()),
            Ok(Progress::Cancelled) => match self.try_again(local, remote, *ends_at) {
                Ok(Some(again)) => {
                    *request = again;
                    return false;
                }
                Ok(None) => self.fail(VipReturn::Timeout.into()),
                Err(error) => self.fail(error),
            },
            Ok(Progress::Mismatch(theirs)) => {
                // Without a reason that is known here, the peer has one.
                let code = mismatch(&self.attributes(), &theirs).unwrap_or(VipReturn::Reject);
                self.fail(code.into())
            }
            Ok(Progress::Rejected | Progress::NoMatch) => self.fail(VipReturn::Reject.into()),
            Err(error) => self.fail(error.into()),
        };
        let connected = ended.is_ok();
        *peering = Some(Peering::Ended(ended));
        nic.forget_peering(self.inner());
        connected
    }

    /// The NIC's VI may have been connected for a moment; then it all begins again, if there is
    /// time.
    fn try_again(
        &self,
        local: &NetAddress,
        remote: &NetAddress,
        ends_at: u64,
    ) -> Result<Option<u32>> {
        let port = self.nic().port();
        let left = ends_at.saturating_sub(port.now_ns());
        if left == 0 || self.is_destroyed() {
            return Ok(None);
        }
        self.anew(|| Ok(port.reset_vi(self.number())?))?;
        Ok(Some(port.peer_connect(local_attributes(self), local, remote, left)?))
    }

    fn fail(&self, error: Error) -> Result<RemoteViAttributes> {
        self.connect_failed(true)?;
        Err(error)
    }

    /// Forgets how an earlier request to a peer ended: its connection is taken down.
    pub(crate) fn forget_peer(&self) {
        let mut peering = self.nic().lock_relaxed(&self.inner().peering, "a VI's peer");
        peering.take_if(|peering| peering.request().is_none());
    }

    /// Gives up a request to a peer.
    pub(crate) fn cancel_peer(&self) -> Result<()> {
        let nic = self.nic();
        let mut peering = nic.lock_relaxed(&self.inner().peering, "a VI's peer");
        let taken = peering.take();
        if let Some(request) = taken.as_ref().and_then(Peering::request) {
            nic.port().peer_cancel(request);
            nic.forget_peering(self.inner());
            self.connect_failed(true)?;
        }
        Ok(())
    }
}
