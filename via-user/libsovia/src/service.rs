//! The device, and the listener to which other processes come.
//!
//! It is there from the first connection on that is offered. Who connects says by his discriminator what
//! for, and for which connection of TCP ([`Request`]).

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use port::fork;
use port::process::{at_exit, without_signals};
use port::sync::lock;
use sovia::{Device, Policy, TcpListener, TcpStream};
use vipl::{NetAddress, Nic};

use crate::kernel;
use crate::key::Key;
use crate::log;

/// The discriminator at which processes under this library listen.
const DISCRIMINATOR: &[u8] = b"viaduct run";
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

impl Request {
    /// The discriminator of who asks.
    fn discriminator(self, key: &Key) -> Vec<u8> {
        let mut bytes = vec![self as u8];
        bytes.extend(key.to_bytes());
        bytes
    }

    /// What a discriminator says.
    pub(crate) fn parse(discriminator: &[u8]) -> Option<(Self, Key)> {
        let (kind, key) = discriminator.split_first()?;
        let request = match kind {
            b'L' => Self::Link,
            b'G' => Self::Give,
            b'S' => Self::Stop,
            _ => return None,
        };
        Some((request, Key::from_bytes(key)?))
    }
}

/// Does what other processes ask for.
pub(crate) type Serve = fn(&TcpListener);

/// See the module.
#[derive(Debug)]
pub(crate) struct Service {
    /// Number of this process among its forked ancestors.
    generation: u32,
    device: Device,
    host: Vec<u8>,
}

/// The service.
static SERVICE: Mutex<Option<Arc<Service>>> = Mutex::new(None);
/// The process in which a thread starts it: its number among forked ancestors, counted from 1. A child
/// after a fork has not its parent's threads, nor could it unlock a lock of theirs.
static STARTING: AtomicU32 = AtomicU32::new(0);
/// Time between two looks whether another thread has started it.
const LOOK: Duration = Duration::from_micros(200);
/// Nothing can be offered: it was said once.
static IS_USELESS: AtomicBool = AtomicBool::new(false);

/// The service of this process, if there is one.
pub(crate) fn current() -> Option<Arc<Service>> {
    let service = fork::without_forks(|| lock(&SERVICE).clone())?;
    if service.generation == fork::generation() {
        return Some(service);
    }
    core::mem::forget(service);
    None
}

/// Connections cannot be claimed.
pub(crate) fn has_no_folder(error: &io::Error) {
    if !IS_USELESS.swap(true, Ordering::AcqRel) {
        let folder = port::trust::run_time_folder();
        log::warn(format_args!("{}: {error}: all stays TCP", folder.display()));
    }
}

/// There is no device.
pub(crate) fn has_no_device(why: &str) {
    if !IS_USELESS.swap(true, Ordering::AcqRel) {
        log::warn(format_args!("{why}: all stays TCP"));
    }
}

/// Nothing more is offered by this process, which is about to restrict itself.
pub(crate) fn give_up() {
    IS_USELESS.store(true, Ordering::Release);
}

/// Whether nothing can be offered.
pub(crate) fn is_useless() -> bool {
    IS_USELESS.load(Ordering::Acquire)
}

impl Service {
    /// The service of this process, started if there is none: `serve` does what others ask for, `at_end`
    /// what is to be done at the end of the program.
    ///
    /// # Errors
    /// Why there is no device.
    pub(crate) fn get(serve: Serve, at_end: extern "C" fn()) -> Result<Arc<Self>, String> {
        let own = fork::generation() + 1;
        loop {
            if let Some(service) = current() {
                return Ok(service);
            }
            let other = STARTING.load(Ordering::Acquire);
            if other == own {
                std::thread::sleep(LOOK);
            } else if STARTING
                .compare_exchange(other, own, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                let started = Self::start(serve, at_end);
                STARTING.store(0, Ordering::Release);
                return started;
            }
        }
    }

    fn start(serve: Serve, at_end: extern "C" fn()) -> Result<Arc<Self>, String> {
        kernel::spare_address_space();
        let port = device::open(&log::settings().device).map_err(|error| error.to_string())?;
        let nic = Nic::open(port);
        // Each call finds its connection broken; the program's output is its own.
        nic.error_callback(Some(Arc::new(|error| log::verbose(error))));
        let device = Device::new(nic, Policy::DACKS).map_err(|error| error.to_string())?;
        let host = device.host();
        let local = NetAddress::new(&host, DISCRIMINATOR);
        let listener = TcpListener::bind_to(&device, &local).map_err(|error| error.to_string())?;
        let service = Arc::new(Self { generation: fork::generation(), device, host });
        let thread = std::thread::Builder::new().name("sovia requests".to_owned());
        without_signals(|| thread.spawn(move || serve(&listener)))
            .map_err(|error| format!("no thread: {error}"))?;
        // After the device's own, so that it runs before it.
        let _ = at_exit(at_end);
        let old = fork::without_forks(|| lock(&SERVICE).replace(Arc::clone(&service)));
        core::mem::forget(old);
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
