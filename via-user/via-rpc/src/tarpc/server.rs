//! The server's ends, one for each client, with one thread that waits for the completion queue.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Outlet, ServerTransport, Transport};
use crate::accept::LOOK;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::server::{Event, Server};
use crate::settings::Settings;

/// The transports of clients that connect; an error ends them. Dropped, it ends their connections, in
/// some tenths of a second.
#[derive(Debug)]
pub struct Incoming<Request, Response> {
    transports: UnboundedReceiver<Result<ServerTransport<Request, Response>>>,
    stopped: Arc<AtomicBool>,
}

/// Serves an endpoint, as [`Server::bind`].
///
/// # Errors
/// As [`Server::bind`].
pub fn listen<Request: 'static, Response: 'static>(
    device: &Device,
    endpoint: &str,
    settings: &Settings,
) -> Result<Incoming<Request, Response>> {
    let server = Server::bind(device, endpoint, settings)?;
    let (sender, transports) = unbounded_channel();
    let stopped = Arc::new(AtomicBool::new(false));
    let incoming = Incoming { transports, stopped: Arc::clone(&stopped) };
    let thread = std::thread::Builder::new().name("via-rpc tarpc".to_owned());
    let started = thread.spawn(move || run(&server, &sender, &stopped));
    started.map_err(|error| Error::NoThread(Arc::new(error)))?;
    Ok(incoming)
}

/// Hands messages to the transports until nobody wants them.
fn run<Request, Response>(
    server: &Server,
    transports: &UnboundedSender<Result<ServerTransport<Request, Response>>>,
    stopped: &AtomicBool,
) {
    let mut outlets: BTreeMap<u64, Outlet> = BTreeMap::new();
    let mut body = Vec::new();
    while !stopped.load(Ordering::Acquire) {
        match server.next(&mut body, LOOK) {
            Ok(Event::Connected(peer)) => {
                let (transport, outlet) = Transport::new(peer);
                outlets.insert(outlet.peer.id(), outlet);
                // Dropped if nobody wants it, which ends the connection.
                let _ = transports.send(Ok(transport));
            }
            Ok(Event::Request(request)) => {
                let peer = request.into_peer();
                if let Some(outlet) = outlets.get(&peer.id()) {
                    outlet.message(core::mem::take(&mut body));
                }
            }
            Ok(Event::Ended(peer, error)) => {
                let outlet = outlets.remove(&peer.id());
                // A client that has left is the end of its transport, and nothing else.
                if let (Some(outlet), false) = (outlet, matches!(error, Error::Lost)) {
                    outlet.end(error);
                }
            }
            Err(Error::TimedOut) => {}
            Err(error) => {
                let _ = transports.send(Err(error));
                return;
            }
        }
    }
}

impl<Request, Response> Stream for Incoming<Request, Response> {
    type Item = Result<ServerTransport<Request, Response>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.transports.poll_recv(context)
    }
}

impl<Request, Response> Drop for Incoming<Request, Response> {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
    }
}
