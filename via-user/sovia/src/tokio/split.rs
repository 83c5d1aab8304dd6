//! Halves of a stream, in the manner of `tokio::net::tcp`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::io::Io;

/// What reads, of a stream that one task has.
#[derive(Debug)]
pub struct ReadHalf<'a> {
    pub(super) io: &'a Io,
}

/// What writes, of a stream that one task has.
#[derive(Debug)]
pub struct WriteHalf<'a> {
    pub(super) io: &'a Io,
}

/// What reads, of a stream whose halves are apart.
#[derive(Debug)]
pub struct OwnedReadHalf {
    pub(super) io: Arc<Io>,
}

/// What writes, of a stream whose halves are apart. Dropped, it ends its direction.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    pub(super) io: Arc<Io>,
    /// The stream is whole again: nothing ends.
    pub(super) is_reunited: bool,
}

impl OwnedWriteHalf {
    pub(super) const fn new(io: Arc<Io>) -> Self {
        Self { io, is_reunited: false }
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if !self.is_reunited {
            self.io.shut_down();
        }
    }
}

/// The traits of tokio, of a half.
macro_rules! reads {
    ($half:ty) => {
        impl AsyncRead for $half {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.io.poll_read(cx, buffer)
            }
        }
    };
}

macro_rules! writes {
    ($half:ty) => {
        impl AsyncWrite for $half {
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

            fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.io.shut_down();
                Poll::Ready(Ok(()))
            }
        }
    };
}

reads!(ReadHalf<'_>);
reads!(OwnedReadHalf);
writes!(WriteHalf<'_>);
writes!(OwnedWriteHalf);
