//! Both ends as transports of the crate `tarpc`: streams of messages in, sinks of messages out, as JSON.
//!
//! ```text
//!   task ──start_send──► marshalled in a registered buffer ──► connection ──► VI
//!   task ◄──channel── thread that waits for the VI (client), or for the completion queue (server)
//! ```
//!
//! A task never waits for VIA: the thread of its end takes packets, wakes it with a message, or when
//! messages that waited for credits have left. A task that does not read has the other side wait.

mod client;
mod server;

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_sink::Sink;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::error::{Error, Result as RpcResult};
use crate::peer::Peer;

pub use client::connect;
pub use server::{Incoming, listen};

/// What a client of tarpc is made with.
pub type ClientTransport<Request, Response> =
    Transport<::tarpc::Response<Response>, ::tarpc::ClientMessage<Request>>;
/// What a channel of a server of tarpc is made with.
pub type ServerTransport<Request, Response> =
    Transport<::tarpc::ClientMessage<Request>, ::tarpc::Response<Response>>;

/// Messages that a task has not read, from which on the other side waits.
const UNREAD: usize = 64;
/// Bytes that wait for credits, from which on a task waits.
const UNSENT: usize = 256 << 10;

/// Why a transport failed.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The connection.
    #[error(transparent)]
    Rpc(#[from] Error),
    /// A message that cannot be encoded, or is not what this end expects.
    #[error("a message is not the expected JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// One end of a connection: what it receives is `Item`, what it sends `SinkItem`.
#[derive(Debug)]
pub struct Transport<Item, SinkItem> {
    peer: Peer,
    inbox: UnboundedReceiver<RpcResult<Vec<u8>>>,
    unread: Arc<AtomicUsize>,
    is_over: bool,
    messages: PhantomData<fn(SinkItem) -> Item>,
}

/// The other end of a transport's inbox, in its thread.
#[derive(Debug)]
struct Outlet {
    peer: Peer,
    sender: UnboundedSender<RpcResult<Vec<u8>>>,
    unread: Arc<AtomicUsize>,
}

/// Has the other side wait, or not. The count is read under the lock: thread and task may come here at
/// the same time, in any order.
fn pause(peer: &Peer, unread: &AtomicUsize) {
    let mut connection = peer.lock();
    connection.pause(unread.load(Ordering::Acquire) >= UNREAD);
}

impl Outlet {
    /// Hands a message to the task.
    fn message(&self, body: Vec<u8>) {
        if self.unread.fetch_add(1, Ordering::AcqRel) + 1 == UNREAD {
            pause(&self.peer, &self.unread);
        }
        // Nobody reads any more: the connection ends with the transport.
        let _ = self.sender.send(Ok(body));
    }

    fn end(self, error: Error) {
        let _ = self.sender.send(Err(error));
    }
}

impl<Item, SinkItem> Transport<Item, SinkItem> {
    fn new(peer: Peer) -> (Self, Outlet) {
        let (sender, inbox) = unbounded_channel();
        let unread = Arc::new(AtomicUsize::new(0));
        let outlet = Outlet { peer: peer.clone(), sender, unread: Arc::clone(&unread) };
        (Self { peer, inbox, unread, is_over: false, messages: PhantomData }, outlet)
    }

    /// The other side.
    #[must_use]
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Waits until no more than so many bytes wait for credits.
    fn poll_sent(&self, most: usize, context: &Context<'_>) -> Poll<Result<(), TransportError>> {
        let mut connection = self.peer.lock();
        connection.check()?;
        if connection.queued_bytes() <= most {
            return Poll::Ready(Ok(()));
        }
        connection.wake_when_sent(context.waker());
        Poll::Pending
    }
}

impl<Item: DeserializeOwned, SinkItem> Stream for Transport<Item, SinkItem> {
    type Item = Result<Item, TransportError>;

    /// An error ends the stream. So does a client that has left or died; a server that has is an error.
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let received = ready!(self.inbox.poll_recv(context));
        let item = match received {
            Some(Ok(body)) => {
                if self.unread.fetch_sub(1, Ordering::AcqRel) == UNREAD {
                    pause(&self.peer, &self.unread);
                }
                serde_json::from_slice(&body).map_err(TransportError::from)
            }
            Some(Err(error)) => Err(error.into()),
            None => {
                self.is_over = true;
                return Poll::Ready(None);
            }
        };
        self.is_over = item.is_err();
        Poll::Ready(Some(item))
    }
}

impl<Item, SinkItem: Serialize> Sink<SinkItem> for Transport<Item, SinkItem> {
    type Error = TransportError;

    fn poll_ready(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.poll_sent(UNSENT, context)
    }

    fn start_send(self: Pin<&mut Self>, item: SinkItem) -> Result<(), TransportError> {
        let mut buffer = self.peer.lock().buffer(0)?;
        serde_json::to_writer(&mut buffer, &item)?;
        // Messages of tarpc have numbers of their own.
        Ok(self.peer.lock().queue(buffer, 0)?)
    }

    fn poll_flush(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.poll_sent(0, context)
    }

    fn poll_close(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        ready!(self.poll_sent(0, context))?;
        self.peer.lock().close();
        Poll::Ready(Ok(()))
    }
}

impl<Item, SinkItem> Drop for Transport<Item, SinkItem> {
    fn drop(&mut self) {
        self.peer.lock().close();
    }
}
