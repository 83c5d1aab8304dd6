//! Waiting for requests, one or several at a time.

use core::time::Duration;

use port::NetAddress;

use crate::connection::{ConnectionRequest, check};
use crate::error::{Result, VipReturn};
use crate::objects::{Nic, Waiting};
use crate::waiting::{WaitPolicy, nothing_to_arm};

/// An address at which several requests may arrive before the program takes the first: those that find
/// nobody who waits are refused, so a program that only waits again and again refuses some of many that
/// come at once.
#[derive(Debug)]
pub struct Listener {
    nic: Nic,
    local: NetAddress,
    /// For how many requests it waits between two calls.
    backlog: usize,
    /// Listeners of the port, each for one request.
    waiting: Vec<u32>,
}

impl Nic {
    /// Waits for a request to `local`. A timeout of zero polls.
    ///
    /// # Errors
    /// [`VipReturn::Timeout`]; [`VipReturn::InvalidParameter`] for an address that is too long;
    /// [`VipReturn::ErrorResource`] if the card is absent.
    #[doc(alias = "VipConnectWait")]
    pub fn connect_wait(&self, local: &NetAddress, timeout: Duration) -> Result<ConnectionRequest> {
        self.listen(local, 1)?.wait(timeout)
    }

    /// Waits for up to `backlog` requests to `local`, from now on until the listener is dropped. Those
    /// that the program has not taken by then are for others that wait there, or are refused.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] for an address that is too long.
    pub fn listen(&self, local: &NetAddress, backlog: usize) -> Result<Listener> {
        check(local)?;
        self.check_open()?;
        let (nic, local) = (self.clone(), local.clone());
        let mut listener = Listener { nic, local, backlog, waiting: Vec::with_capacity(backlog) };
        listener.fill()?;
        Ok(listener)
    }
}

impl Listener {
    /// Waits for as many requests as it is to.
    fn fill(&mut self) -> Result<()> {
        while self.waiting.len() < self.backlog {
            self.waiting.push(self.nic.port().listen(&self.local)?);
        }
        Ok(())
    }

    /// Waits for the next request. A timeout of zero polls.
    ///
    /// # Errors
    /// As [`Nic::connect_wait`].
    pub fn wait(&mut self, timeout: Duration) -> Result<ConnectionRequest> {
        self.wait_as(timeout, self.nic.waiting())
    }

    /// As [`Listener::wait`], with another way of waiting than the NIC's: for a thread of a layer above,
    /// which waits for requests all the time, and is not to take a processor where the program wants its
    /// own waits to poll.
    ///
    /// # Errors
    /// As [`Nic::connect_wait`].
    pub fn wait_as(&mut self, timeout: Duration, waiting: Waiting) -> Result<ConnectionRequest> {
        self.fill()?;
        let nic = self.nic.clone();
        let index = self.waiting.first().copied().unwrap_or(0);
        let what = "a connection request, listener";
        let mut policy = WaitPolicy::of(&nic, waiting, timeout, what, index);
        loop {
            nic.progress();
            nic.check_open()?;
            if let Some(request) = self.poll()? {
                return Ok(request);
            }
            if policy.is_over(&nic) {
                return Err(VipReturn::Timeout.into());
            }
            policy.pause(&nic, nothing_to_arm);
        }
    }

    fn poll(&mut self) -> Result<Option<ConnectionRequest>> {
        for place in 0..self.waiting.len() {
            if let Some(incoming) = self.nic.port().listen_poll(self.waiting[place])? {
                // In order: the port offers requests to the oldest first.
                self.waiting.remove(place);
                return Ok(Some(ConnectionRequest::new(self.nic.clone(), incoming)));
            }
        }
        Ok(None)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        for listener in self.waiting.drain(..) {
            self.nic.port().listen_stop(listener);
        }
    }
}
