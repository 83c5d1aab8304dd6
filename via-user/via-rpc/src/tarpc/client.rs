//! The client's end, with a thread that waits for its VI.

use std::sync::Arc;
use std::time::Duration;

use super::{ClientTransport, Outlet, Transport};
use crate::client::Client;
use crate::connection::Arrival;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::peer::Peer;
use crate::settings::Settings;

/// Connects to an endpoint, as [`Client::connect`]; it waits for the server, so a task that must not
/// makes it in a thread for that.
///
/// # Errors
/// As [`Client::connect`]; [`Error::NoThread`].
pub fn connect<Request, Response>(
    device: &Device,
    host: &[u8],
    endpoint: &str,
    settings: &Settings,
    timeout: Duration,
) -> Result<ClientTransport<Request, Response>> {
    let client = Client::connect(device, host, endpoint, settings, timeout)?;
    let (connection, server) = client.into_connection();
    let (transport, outlet) = Transport::new(Peer::new(connection, server));
    let thread = std::thread::Builder::new().name("via-rpc client".to_owned());
    let started = thread.spawn(move || run(outlet));
    started.map_err(|error| Error::NoThread(Arc::new(error)))?;
    Ok(transport)
}

/// Takes packets until the connection ends, on either side.
fn run(outlet: Outlet) {
    loop {
        let completion = outlet.peer.vi().recv_wait(vipl::INFINITE);
        let mut connection = outlet.peer.lock();
        match connection.arrive(&completion) {
            Ok(Arrival::Message(_)) => {
                let mut body = Vec::new();
                connection.take_message(&mut body);
                drop(connection);
                outlet.message(body);
            }
            Ok(_) => {}
            Err(error) => {
                drop(connection);
                return outlet.end(error);
            }
        }
    }
}
