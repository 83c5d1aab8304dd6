//! The device, and the listener to which other processes come.
//!
//! It is there from the first connection on that is offered. Who connects says by his discriminator what
//! for, and for which connection of TCP ([`Request`]).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use port::process::{at_exit, without_signals};
use sovia::preload::ALL_STAYS;
use sovia::{Device, Policy, TcpListener, TcpStream};
use vipl::{NetAddress, Nic, Reliability};

use crate::kernel;
use crate::key::Key;
use crate::log;
use crate::per_process::PerProcess;
use crate::status;

/// The discriminator at which processes under this library listen.
const DISCRIMINATOR: &[u8] = b"viaduct run";
/// Raised with every change of what the two ends of a link say ([`crate::link`]): ends that differ stay TCP.
/// What asks for a connection to go back to TCP is the same in all.
const REVISION: u8 = 1;
/// Why a process that restricts itself leaves VIA.
pub(crate) const RESTRICTS: &str = "this process restricts itself";

/// What another process wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Request {
    /// Both ends have offered a connection: the stream is for it.
    Link = b'L',
    /// Another process uses this end: it shall go by TCP again.
    Give = b'G',
    /// The other end goes by TCP again: this one shall not send by VIA any more.
    Stop = b'S',
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is none.
    Malformed,
    /// It is for a link of another revision, by this end.
    Revision(Key),
}

impl Request {
    /// The discriminator of who asks.
    fn discriminator(self, key: &Key) -> Vec<u8> {
        let mut bytes = vec![self as u8];
        bytes.extend(key.to_bytes());
        if self == Self::Link {
            bytes.push(REVISION);
        }
        bytes
    }

    /// What a discriminator says, which any process may have written.
    ///
    /// # Errors
    /// See [`Refused`].
    pub(crate) fn parse(discriminator: &[u8]) -> Result<(Self, Key), Refused> {
        let whole = |(request, key): (Self, &[u8])| {
            Key::from_bytes(key).map(|key| (request, key)).ok_or(Refused::Malformed)
        };
        match discriminator {
            [b'L', key @ .., revision] => {
                let (request, key) = whole((Self::Link, key))?;
                let is_same = *revision == REVISION;
                if is_same { Ok((request, key)) } else { Err(Refused::Revision(key)) }
            }
            [b'G', key @ ..] => whole((Self::Give, key)),
            [b'S', key @ ..] => whole((Self::Stop, key)),
            _ => Err(Refused::Malformed),
        }
    }
}

/// Does what other processes ask for.
pub(crate) type Serve = fn(&TcpListener);

/// See the module.
#[derive(Debug)]
pub(crate) struct Service {
    device: Device,
    host: Vec<u8>,
}

/// The service.
static SERVICE: PerProcess<Arc<Service>> = PerProcess::new();
/// How long a thread waits for another one that starts it.
const START: Duration = Duration::from_secs(60);
/// Why nothing can be offered, which is said once.
static USELESS: ArcSwapOption<String> = ArcSwapOption::const_empty();

/// Nothing can be offered from now on. True: that is new.
fn set_useless(why: &str) -> bool {
    let none: Option<Arc<String>> = None;
    USELESS.compare_and_swap(&none, Some(Arc::new(why.to_owned()))).is_none()
}

/// The service of this process, if there is one.
pub(crate) fn current() -> Option<Arc<Service>> {
    SERVICE.current()
}

/// Connections cannot be claimed.
pub(crate) fn has_no_folder(error: &io::Error) {
    let folder = port::trust::run_time_folder();
    has_no_device(&format!("{}: {error}", folder.display()));
}

/// There is no device.
pub(crate) fn has_no_device(why: &str) {
    if set_useless(why) {
        log::warn(format_args!("{why}: {ALL_STAYS}"));
    }
}

/// Nothing more is offered by this process, which is about to restrict itself.
pub(crate) fn give_up() {
    let _ = set_useless(RESTRICTS);
}

/// Why nothing can be offered; None if it can.
pub(crate) fn why_useless() -> Option<Arc<String>> {
    USELESS.load_full()
}

/// Links are to know what has arrived at the other end ([`crate::link`]).
const POLICY: Policy = Policy { reliability: Reliability::Reception, ..Policy::DACKS };

impl Service {
    /// The service of this process, started if there is none: `serve` does what others ask for, `at_end`
    /// what is to be done at the end of the program.
    ///
    /// # Errors
    /// Why there is no device.
    pub(crate) fn get(serve: Serve, at_end: extern "C" fn()) -> Result<Arc<Self>, String> {
        let late = format!("another thread opens the device for longer than {} s", START.as_secs());
        SERVICE.get(START, late, || Self::start(serve, at_end))
    }

    fn start(serve: Serve, at_end: extern "C" fn()) -> Result<Arc<Self>, String> {
        kernel::spare_address_space();
        let port = device::open(&log::settings().device).map_err(|error| error.to_string())?;
        let nic = Nic::open(port);
        // Each call finds its connection broken; the program's output is its own.
        nic.error_callback(Some(Arc::new(|error| log::verbose(error))));
        let device = Device::new(nic, POLICY).map_err(|error| error.to_string())?;
        let host = device.host();
        let local = NetAddress::new(&host, DISCRIMINATOR);
        let listener = TcpListener::bind_to(&device, &local).map_err(|error| error.to_string())?;
        status::set_device(&device.nic().query().name);
        let service = Arc::new(Self { device, host });
        let thread = std::thread::Builder::new().name("sovia requests".to_owned());
        without_signals(|| thread.spawn(move || serve(&listener)))
            .map_err(|error| format!("no thread: {error}"))?;
        // After the device's own, so that it runs before it.
        let _ = at_exit(at_end);
        Ok(service)
    }

    /// Own host address of VIA.
    pub(crate) fn host(&self) -> &[u8] {
        &self.host
    }

    /// The NIC.
    pub(crate) fn nic(&self) -> &Nic {
        self.device.nic()
    }

    /// Waits until all streams have ended that are closed.
    pub(crate) fn finish(&self, bound: Duration) -> bool {
        self.device.finish(bound)
    }

    /// Asks another process, of this host address, for something.
    pub(crate) fn ask(&self, request: Request, key: &Key, host: &[u8]) -> io::Result<TcpStream> {
        let local = NetAddress::new(&self.host, &request.discriminator(key));
        let peer = NetAddress::new(host, DISCRIMINATOR);
        let stream = TcpStream::connect_to(&self.device, &local, &peer)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new("127.0.0.1:80".parse().unwrap(), "[::1]:40000".parse().unwrap())
    }

    #[test]
    fn requests_survive_their_discriminators_and_what_is_none_is_refused() {
        for request in [Request::Link, Request::Give, Request::Stop] {
            let bytes = request.discriminator(&key());
            assert!(bytes.len() <= port::address::DISCRIMINATOR_MAX);
            assert_eq!(Request::parse(&bytes), Ok((request, key())));
            for length in 0..bytes.len() {
                assert_eq!(Request::parse(&bytes[..length]), Err(Refused::Malformed), "{length}");
            }
            let longer = [&bytes[..], &[REVISION]].concat();
            assert_eq!(Request::parse(&longer), Err(Refused::Malformed));
            let other = [b"X", &bytes[1..]].concat();
            assert_eq!(Request::parse(&other), Err(Refused::Malformed));
        }
    }

    #[test]
    fn a_link_of_another_revision_is_refused_and_going_back_to_tcp_has_none() {
        let mut bytes = Request::Link.discriminator(&key());
        *bytes.last_mut().unwrap() = REVISION + 1;
        assert_eq!(Request::parse(&bytes), Err(Refused::Revision(key())));
        assert_eq!(Request::Give.discriminator(&key()).len(), bytes.len() - 1);
    }
}
