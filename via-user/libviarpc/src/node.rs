//! The device of this process, on which all of its clients and servers are, and hosts by name.

use std::sync::{Arc, Mutex};

use port::fork;
use port::sync::lock;
use via_rpc::Device;
use vipl::waiting::SPIN_VARIABLE;
use vipl::{Nic, Waiting};

use crate::failure::{Code, Failure, Outcome};
use crate::place;

/// The host whose servers are found by where they said that they are ([`place`]).
pub(crate) const LOCALHOST: &str = "localhost";

/// With the process's number among its forked ancestors: a child has not its parent's device.
static DEVICE: Mutex<Option<(u32, Device)>> = Mutex::new(None);

/// The default device, opened the first time.
///
/// # Errors
/// `VIARPC_NO_DEVICE`: why there is none.
pub fn device() -> Outcome<Device> {
    let generation = fork::generation();
    let known = fork::without_forks(|| lock(&DEVICE).clone());
    match known {
        Some((of, device)) if of == generation => return Ok(device),
        // It is the parent's, of which nothing may be touched.
        other => core::mem::forget(other),
    }
    let none = |why: String| Failure::new(Code::NoDevice, why);
    let waiting = Waiting::from_environment()
        .map_err(|value| none(format!("{SPIN_VARIABLE}={value}: neither microseconds nor inf")))?;
    let port = device::open("").map_err(|error| none(error.to_string()))?;
    let nic = Nic::open_with(port, waiting);
    // Each call finds its connection broken; the program's output is its own.
    nic.error_callback(Some(Arc::new(|_| ())));
    let device = Device::new(nic).map_err(|error| none(error.to_string()))?;
    let made = (generation, device.clone());
    let old = fork::without_forks(|| lock(&DEVICE).replace(made));
    core::mem::forget(old);
    Ok(device)
}

/// The host address of a name, for an endpoint. `localhost`, unless the hosts file says otherwise, is
/// where a program of this user on this machine serves the endpoint, else the own host.
///
/// # Errors
/// `VIARPC_NO_HOST`.
pub fn host(device: &Device, name: &str, endpoint: &str) -> Outcome<Vec<u8>> {
    let nic = device.nic();
    let mut found = nic.ns_host_by_name(name, 0);
    if found.is_err() {
        // It may not be started.
        found = nic.ns_init(None).and_then(|()| nic.ns_host_by_name(name, 0));
    }
    match found {
        Ok(address) => Ok(address.host),
        Err(_) if name == LOCALHOST => Ok(place::find(endpoint).unwrap_or_else(|| device.host())),
        Err(error) => {
            let text = format!("host `{name}`: {error}; a node's name, or one of the hosts file");
            Err(Failure::new(Code::NoHost, text))
        }
    }
}
