//! A listener as the stream of connections that tonic's server takes. Tonic wants a trait of its own of
//! them, so they are wrapped.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use sovia::Address;
use sovia::tokio::{TcpListener, TcpStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::codegen::tokio_stream::Stream;
use tonic::transport::server::Connected;

/// See the module.
#[derive(Debug)]
pub(crate) struct Incoming {
    listener: TcpListener,
}

impl Incoming {
    pub(crate) const fn new(listener: TcpListener) -> Self {
        Self { listener }
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let accepted = self.listener.poll_accept(cx);
        accepted.map(|accepted| Some(accepted.map(|(stream, _)| Connection { stream })))
    }
}

/// A connection of the server.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
}

impl Connected for Connection {
    /// The client's address, which handlers find in a request's extensions.
    type ConnectInfo = Option<Address>;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.peer_addr().ok()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
