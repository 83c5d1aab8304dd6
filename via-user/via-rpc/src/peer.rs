//! The other side of a connection that several threads use.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use port::sync::lock;
use vipl::{NetAddress, Vi};

use crate::connection::Connection;

/// The other side of a connection. Clones are the same.
#[derive(Clone, Debug)]
pub struct Peer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: u64,
    address: NetAddress,
    since: Instant,
    /// To wait and to look without the lock.
    vi: Vi,
    connection: Mutex<Connection>,
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Peer {}

impl Peer {
    pub(crate) fn new(connection: Connection, address: NetAddress) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (vi, since) = (connection.vi().clone(), Instant::now());
        let (id, connection) = (NEXT.fetch_add(1, Ordering::Relaxed), Mutex::new(connection));
        Self { inner: Arc::new(Inner { id, address, since, vi, connection }) }
    }

    /// A number that no other connection of this process has.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.inner.id
    }

    /// The other side's address of VIA.
    #[must_use]
    pub fn address(&self) -> &NetAddress {
        &self.inner.address
    }

    /// When the connection began.
    pub(crate) fn since(&self) -> Instant {
        self.inner.since
    }

    pub(crate) fn vi(&self) -> &Vi {
        &self.inner.vi
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Connection> {
        lock(&self.inner.connection)
    }
}
