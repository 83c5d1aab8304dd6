//! Devices that are looked at and not used.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use host_driver::observer::Observer;
use port::{PortAttributes, ViPort};

use crate::error::{Error, Result};
use crate::url::Place;
use crate::{default, open_any, place_of};

/// Longest time that a simulator may take for an answer to an observer.
const ANSWER: Duration = Duration::from_secs(5);
/// The same, once that long was waited for others.
const ANSWER_LATE: Duration = Duration::from_millis(50);

/// A device that is looked at: one that this process has opened, or one that a simulator serves,
/// which stays whose it is.
#[derive(Debug)]
pub enum Observed {
    /// Opened here.
    Port(Arc<dyn ViPort>),
    /// Served, at this socket.
    Served(PathBuf, Box<Observer>),
}

/// Looks at the device that `name` names, which for a folder of sockets is its first one that
/// answers.
///
/// # Errors
/// As [`crate::open`]; a served device may be in use.
pub fn observe(name: &str) -> Result<Observed> {
    match place_of(name, default::place)? {
        Place::Folder(folder) => first(folder),
        Place::VfioUser(path) if path.is_dir() => first(path),
        Place::VfioUser(path) => served(&path, Instant::now()),
        place => Ok(Observed::Port(open_any(place)?)),
    }
}

/// Looks at the device at a socket, one of several that are looked at since `start`: a simulator that
/// does not answer at one does not at others.
pub(crate) fn served(path: &Path, start: Instant) -> Result<Observed> {
    let bound = ANSWER.saturating_sub(start.elapsed()).max(ANSWER_LATE);
    Ok(Observed::Served(path.to_owned(), Box::new(Observer::connect(path, bound)?)))
}

fn first(folder: PathBuf) -> Result<Observed> {
    let mut why = Vec::new();
    let start = Instant::now();
    for socket in default::sockets(&folder) {
        match served(&socket, start) {
            Err(Error::Driver(error)) => why.push(error),
            other => return other,
        }
    }
    Err(if why.is_empty() { Error::NoDefault { folder } } else { Error::NoneFree { folder, why } })
}

impl Observed {
    /// The URL of a served device; another one's is what it was opened by.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        match self {
            Self::Port(_) => None,
            Self::Served(path, _) => Some(format!("vfio-user:{}", path.display())),
        }
    }

    /// The process that has a served device, if one has.
    #[must_use]
    pub fn owner(&self) -> Option<u32> {
        match self {
            Self::Port(_) => None,
            Self::Served(_, observer) => observer.owner(),
        }
    }

    /// As [`ViPort::attributes`].
    #[must_use]
    pub fn attributes(&self) -> &PortAttributes {
        match self {
            Self::Port(port) => port.attributes(),
            Self::Served(_, observer) => observer.attributes(),
        }
    }

    /// As [`ViPort::counters`].
    ///
    /// # Errors
    /// The device no longer exists, or does not answer.
    pub fn counters(&self) -> port::Result<Vec<(&'static str, u64)>> {
        match self {
            Self::Port(port) => port.counters(),
            Self::Served(_, observer) => Ok(observer.counters()?),
        }
    }

    /// As [`ViPort::state`].
    ///
    /// # Errors
    /// The device no longer exists, or does not answer.
    pub fn state(&self) -> port::Result<&'static str> {
        match self {
            Self::Port(port) => port.state(),
            Self::Served(_, observer) => Ok(observer.state()?),
        }
    }
}
