//! Streams, in the manner of `tokio::net::TcpStream`.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use ::tokio::task;

use super::io::Io;
use super::split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use crate::address::Address;
use crate::device::Device;
use crate::to_address::ToAddress;

/// A stream of bytes each way. It is closed when it is dropped, or both halves are.
#[derive(Debug)]
pub struct TcpStream {
    io: Arc<Io>,
}

impl TcpStream {
    /// Connects to a port of a host of VIA, in a thread for calls that block. A task that does not wait for
    /// it any more gives the connection up.
    ///
    /// # Errors
    /// As [`crate::TcpStream::connect`]; the policy is `HANDLER`.
    ///
    /// # Panics
    /// Outside of a runtime of tokio.
    pub async fn connect(device: &Device, peer: impl ToAddress) -> io::Result<Self> {
        let (device, peer) = (device.clone(), peer.to_address(device)?);
        let connected = task::spawn_blocking(move || crate::TcpStream::connect(&device, peer));
        Self::from_std(connected.await.map_err(io::Error::other)??)
    }

    /// Makes a stream one for tasks, with nobody else.
    ///
    /// # Errors
    /// [`crate::Error::Shared`]; the policy is `HANDLER`.
    pub fn from_std(stream: crate::TcpStream) -> io::Result<Self> {
        Ok(Self { io: Arc::new(Io::new(stream)?) })
    }

    /// See [`crate::TcpStream::peer_addr`].
    ///
    /// # Errors
    /// None, as for the next ones.
    pub fn peer_addr(&self) -> io::Result<Address> {
        self.io.stream().peer_addr()
    }

    /// See [`crate::TcpStream::local_addr`].
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> io::Result<Address> {
        self.io.stream().local_addr()
    }

    /// See [`crate::TcpStream::set_nodelay`].
    ///
    /// # Errors
    /// None.
    pub fn set_nodelay(&self, no_delay: bool) -> io::Result<()> {
        self.io.stream().set_nodelay(no_delay)
    }

    /// See [`crate::TcpStream::nodelay`].
    ///
    /// # Errors
    /// None.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.io.stream().nodelay()
    }

    /// See [`crate::TcpStream::take_error`].
    ///
    /// # Errors
    /// None.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.stream().take_error()
    }

    /// Copies bytes that a read gives next, and leaves them; none at the end.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn peek(&self, out: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.io.poll_peek(cx, out)).await
    }

    /// Two halves for one task.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        (ReadHalf { io: &self.io }, WriteHalf { io: &self.io })
    }

    /// Two halves that may be in tasks of their own. Dropping the one that writes ends its direction.
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let write = OwnedWriteHalf::new(Arc::clone(&self.io));
        (OwnedReadHalf { io: self.io }, write)
    }
}

impl OwnedReadHalf {
    /// Joins the halves of a stream.
    ///
    /// # Errors
    /// The halves, if they are of two streams.
    pub fn reunite(self, mut write: OwnedWriteHalf) -> Result<TcpStream, (Self, OwnedWriteHalf)> {
        if !Arc::ptr_eq(&self.io, &write.io) {
            return Err((self, write));
        }
        write.is_reunited = true;
        Ok(TcpStream { io: self.io })
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.io.poll_read(cx, buffer)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.flush();
        Poll::Ready(Ok(()))
    }

    /// Ends the direction; the other one still brings bytes.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.shut_down();
        Poll::Ready(Ok(()))
    }
}
