//! Listeners, in the manner of `tokio::net::TcpListener`.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use super::stream::TcpStream;
use crate::address::Address;
use crate::device::Device;
use crate::to_address::ToAddress;

/// A port at which connections arrive, for tasks.
#[derive(Debug)]
pub struct TcpListener {
    listener: crate::TcpListener,
}

impl TcpListener {
    /// Listens at a port of this host, see [`crate::TcpListener::bind`]. It is a future only because tokio's
    /// is one.
    ///
    /// # Errors
    /// As that.
    #[expect(clippy::unused_async, reason = "as tokio's")]
    pub async fn bind(device: &Device, local: impl ToAddress) -> io::Result<Self> {
        Ok(Self::from_std(crate::TcpListener::bind(device, local)?))
    }

    /// Makes a listener one for tasks.
    #[must_use]
    pub const fn from_std(listener: crate::TcpListener) -> Self {
        Self { listener }
    }

    /// Waits for a connection, and gives the address that it is from. If the task stops waiting, no
    /// connection is lost.
    ///
    /// # Errors
    /// As [`crate::TcpListener::accept`]; the policy is `HANDLER`.
    pub async fn accept(&self) -> io::Result<(TcpStream, Address)> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// The same, polled.
    ///
    /// # Errors
    /// As [`TcpListener::accept`].
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, Address)>> {
        let Some(accepted) = self.listener.accept_or_wake(cx.waker()) else { return Poll::Pending };
        let accepted =
            accepted.and_then(|(stream, address)| Ok((TcpStream::from_std(stream)?, address)));
        Poll::Ready(accepted)
    }

    /// Its address.
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> io::Result<Address> {
        self.listener.local_addr()
    }
}
