//! A lane: what its threads share, how it starts and how it stops.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use port::sync::lock;
use rustix::event::{EventfdFlags, eventfd};
use vipl::{NetAddress, Nic};

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::hello;
use crate::link::{Link, Shared};
use crate::network::Networks;
use crate::table::{Conflict, Greeted, Host, Table};

/// Completions that the queue of all links has room for; more wait on the NIC.
const COMPLETIONS: u32 = 4096;

/// What a lane is to be.
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses of this node.
    pub networks: Networks,
    /// The longest IP packet, in bytes; the same on all nodes.
    pub mtu: u32,
    /// Nodes to connect with, beside those that are found on the network.
    pub peers: Vec<Host>,
}

/// What happens on a lane, for a person.
#[derive(Clone, Debug)]
pub enum Event {
    /// A node is connected.
    Up(Host, Vec<IpAddr>),
    /// It is not any more.
    Down(Host, Vec<IpAddr>),
    /// A node is not connected, because of its addresses.
    Refused(Host, Conflict),
    /// A node asks for a connection with another MTU.
    OtherMtu(Host),
    /// There is no room for a connection with a node.
    NoRoom(Host, Error),
    /// The lane has ended; it is to be stopped.
    Failed(Error),
}

/// Who is notified of events: by any thread of the lane, which it must not hold up.
pub type Report = Box<dyn Fn(&Event) + Send + Sync>;

/// IP packets of a file, carried by VIA. Its threads:
///
/// | thread | from | to |
/// |---|---|---|
/// | packets | the file, a packet for each read | sends |
/// | completions | receives, of all links | the file |
/// | listener, acceptor | requests of others | links |
/// | connector | packets without a link | requests; links that are to be closed |
#[derive(Debug)]
pub struct Lane {
    inner: Arc<Inner>,
    threads: Vec<JoinHandle<()>>,
}

/// See [`Lane`].
pub(crate) struct Inner {
    pub(crate) shared: Shared,
    pub(crate) networks: Networks,
    /// The own address of VIA, with the discriminator of the LAN.
    pub(crate) local: NetAddress,
    pub(crate) state: Mutex<State>,
    /// Of the state, for the connector.
    pub(crate) changed: Condvar,
    /// All links by number, connected or not.
    links: Mutex<BTreeMap<u64, Arc<Link>>>,
    next_link: AtomicU64,
    pub(crate) packets: OwnedFd,
    /// Wakes the thread of the packets.
    pub(crate) stop: OwnedFd,
    stopped: AtomicBool,
    began: Instant,
    pub(crate) counters: Counters,
    pub(crate) report: Report,
}

/// What is under one lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) table: Table<Arc<Link>>,
    /// Links that the connector is to close.
    pub(crate) doomed: Vec<Arc<Link>>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("networks", &self.networks).finish_non_exhaustive()
    }
}

impl Lane {
    /// Carries the packets of `packets`, of which each read gives one and each write takes one, and which
    /// does not block ([`crate::Tun`]), by the NIC.
    ///
    /// # Errors
    /// The MTU is too long for the NIC; it has no room; threads cannot be started.
    pub fn start(nic: Nic, packets: OwnedFd, config: Config, report: Report) -> Result<Self> {
        let Config { networks, mtu, peers } = config;
        let limits = nic.query();
        if mtu > limits.max_transfer_size {
            return Err(Error::Mtu { mtu, longest: limits.max_transfer_size });
        }
        // Ends of connections are seen at the receives, which are flushed.
        nic.error_callback(Some(Arc::new(|_| {})));
        let tag = nic.create_ptag()?;
        let cq = nic.create_cq(COMPLETIONS.min(limits.max_cq_entries))?;
        let own = limits.local_address;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let stop = stop.map_err(|why| Error::System { what: "eventfd", why })?;
        let table = Table::new(own.clone(), networks.clone(), &peers);
        let inner = Arc::new(Inner {
            shared: Shared { nic, tag, cq, mtu },
            local: NetAddress::new(&own, networks.discriminator().as_bytes()),
            networks,
            state: Mutex::new(State { table, doomed: Vec::new() }),
            changed: Condvar::new(),
            links: Mutex::default(),
            next_link: AtomicU64::new(1),
            packets,
            stop,
            stopped: AtomicBool::new(false),
            began: Instant::now(),
            counters: Counters::default(),
            report,
        });
        let mut lane = Self { inner, threads: Vec::new() };
        let (requests, arrived) = std::sync::mpsc::channel();
        lane.spawn("lane listener", move |inner| inner.listen(&requests))?;
        lane.spawn("lane acceptor", move |inner| inner.accept(&arrived))?;
        lane.spawn("lane connector", |inner| inner.connect())?;
        lane.spawn("lane completions", |inner| inner.receive())?;
        lane.spawn("lane packets", |inner| inner.send())?;
        Ok(lane)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce(&Inner) + Send + 'static) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        let thread = std::thread::Builder::new().name(name.to_owned());
        self.threads.push(thread.spawn(move || run(&inner)).map_err(|_| Error::NoThread)?);
        Ok(())
    }

    /// What was carried and dropped so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    /// Ends the lane: its connections, and its NIC. Takes a second at most, or two.
    pub fn stop(&mut self) {
        let inner = &self.inner;
        inner.stopped.store(true, Ordering::Release);
        // Under the lock, so that the connector is not about to wait.
        drop(lock(&inner.state));
        inner.changed.notify_all();
        // It fails when the count is full, and then the thread is awake.
        let _ = rustix::io::write(&inner.stop, &1_u64.to_ne_bytes());
        let links = core::mem::take(&mut *lock(&inner.links));
        links.values().for_each(|link| link.close());
        inner.shared.nic.clone().close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.stop();
        }
    }
}

impl Inner {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Time since the start, in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Something of which nobody can go on, unless the lane is being stopped anyway.
    pub(crate) fn fail(&self, error: Error) {
        if !self.is_stopped() {
            (self.report)(&Event::Failed(error));
        }
    }

    // --- links ---

    /// A link that is not connected yet.
    ///
    /// # Errors
    /// The NIC has no room for it.
    pub(crate) fn new_link(&self, host: &Host) -> Result<Arc<Link>> {
        let number = self.next_link.fetch_add(1, Ordering::Relaxed);
        let link = Arc::new(Link::new(&self.shared, number, host.clone())?);
        lock(&self.links).insert(number, Arc::clone(&link));
        // Whoever stops the lane has closed those that were there.
        if self.is_stopped() {
            self.close_link(&link);
        }
        Ok(link)
    }

    pub(crate) fn link(&self, number: u64) -> Option<Arc<Link>> {
        lock(&self.links).get(&number).cloned()
    }

    /// Closes a link that the table does not have any more.
    pub(crate) fn close_link(&self, link: &Arc<Link>) {
        lock(&self.links).remove(&link.number());
        link.close();
        if link.is_up() {
            let addresses = link.addresses().unwrap_or_default().to_vec();
            (self.report)(&Event::Down(link.host.clone(), addresses));
        }
    }

    /// Has the connector close a link, which may take a while.
    fn doom(&self, link: &Arc<Link>) {
        if lock(&self.links).remove(&link.number()).is_some() {
            lock(&self.state).doomed.push(Arc::clone(link));
            self.changed.notify_all();
        }
    }

    /// A link is connected: both sides say hello.
    pub(crate) fn connected(&self, link: Arc<Link>, by_own: bool) {
        // A hello that is lost is overdue at the other side, which then disconnects.
        let _ = link.send_hello(&hello::to_bytes(&self.networks.addresses()));
        let mut state = lock(&self.state);
        let second = state.table.connected(&link.host, Arc::clone(&link), by_own, self.now());
        drop(state);
        self.changed.notify_all();
        if let Some(second) = second {
            self.close_link(&second);
        }
        self.greet(&link);
    }

    /// The hello of the other side may have arrived before this side knew of the connection.
    pub(crate) fn greet(&self, link: &Arc<Link>) {
        let Some(addresses) = link.addresses() else { return };
        let mut state = lock(&self.state);
        let greeted = state.table.hello(&link.host, link, addresses, self.now());
        if greeted == Greeted::Up {
            link.set_up();
        }
        drop(state);
        match greeted {
            Greeted::Up => (self.report)(&Event::Up(link.host.clone(), addresses.to_vec())),
            Greeted::Refused(why) => {
                (self.report)(&Event::Refused(link.host.clone(), why));
                self.doom(link);
            }
            Greeted::Ignored => {}
        }
    }

    /// The NIC has ended a connection.
    pub(crate) fn lost(&self, link: &Arc<Link>) {
        lock(&self.state).table.lost(&link.host, link);
        self.doom(link);
    }
}
