//! `udp:` and `eth:`, VIA over UDP and over raw Ethernet, after M-VIA (`docs/udp.md`).
//!
//! [`NetVia`] is a port that VIPL runs on. Every process that opens a node has a socket; the VIs of
//! its NIC handles share it. A message is cut into packets, which are numbered, acknowledged and sent
//! again for each connection.
//!
//! ```text
//!   doorbell -> engine -> link, flow -> socket ==> socket -> node -> arrive -> flow -> descriptors
//!                 ^                                           |
//!                 `--- acknowledgements, answers -------------'
//! ```
//!
//! | module | what |
//! |---|---|
//! | `node`, `context` | what all NIC handles of a process share: the socket, VIs, timers |
//! | `service`, `wake` | the thread that answers while the program computes; sleeping |
//! | `control`, `connect`, `auth` | connections, by the connection manager; who may make them |
//! | `memory`, `queue` | registered memory; completion queues and waiting |
//! | `state`, `doorbell` | a VI; where its work begins |
//! | `engine`, `arrive`, `ending` | what it does with what is posted and with what arrives; how that ends |
//! | `link`, `flow` | an end of a connection; the order of its packets, sans I/O |
//! | `format`, `address`, `socket` | packets, addresses, what carries them |
//! | `capture` | packets in a file |
//!
//! Whoever polls a queue takes what has arrived for all. A node's thread does it when nobody has for
//! some milliseconds.

mod address;
mod arrive;
mod auth;
mod capture;
mod connect;
mod context;
mod control;
mod counters;
mod doorbell;
mod ending;
mod engine;
mod error;
mod flow;
mod format;
mod link;
mod memory;
mod node;
mod queue;
mod service;
mod socket;
mod state;
mod wake;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

use port::connection::{Requests, requests};
use port::events::EventList;
use port::sync::lock;
use port::{
    Doorbell, Error as PortError, MAX_TRANSFER_BYTES, PortAttributes, PortEvent, Queue,
    Result as PortResult, StopReason, ViOps, ViPort, ViSettings,
};

pub use address::{Address, DEFAULT_PORT, parse};
pub use auth::Key;
pub use error::{Error, Result};
pub use socket::interfaces;

use crate::via::completion::{self, ENTRIES, Records};
use crate::via::descriptor;
use crate::via::region::{self, Regions};
use crate::via::table::{self, Table};
use crate::via::vi::{ViCore, check_presence};
use context::Net;
use control::Control;
use doorbell::ViDoorbell;
use node::Node;
use queue::{Cq, QUEUES};
use socket::Socket;
use state::{State, Vi};

/// Handles of a node.
const HANDLES: usize = 128;
/// How long a port that is closed waits for its peers to acknowledge what was sent.
const CLOSE_NS: u64 = 1_000_000_000;
/// How long a peer may not answer, in milliseconds, where nothing else is asked for.
pub const TIME_OUT_MS: u64 = 5_000;

/// What a node is opened with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The secret that its peers have too.
    pub key: Key,
    /// How long a peer may not answer before connections with it are broken, in milliseconds.
    pub time_out_ms: u64,
    /// A file that all packets are written into, for Wireshark.
    pub pcap: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { key: Key::new(b""), time_out_ms: TIME_OUT_MS, pcap: None }
    }
}

/// A node of this process. Its ports share its socket; it goes with the last of them.
#[derive(Clone, Debug)]
pub struct NetNode(Arc<Ending>);

/// Ends a node.
#[derive(Debug)]
struct Ending {
    kind: &'static str,
    node: Arc<Node>,
    service: Option<JoinHandle<()>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.node.ended.store(true, Ordering::Release);
        if self.node.net.is_present()
            && let Some(service) = self.service.take()
        {
            self.node.service.nudge();
            // It leaves the socket, so that another node may have the address.
            let _ = service.join();
        }
    }
}

impl NetNode {
    /// Makes this process a node with a UDP socket at an address; port 0 stands for any free one.
    ///
    /// # Errors
    /// [`Error`]: the address is none, another program's or not this computer's; the system lacks
    /// something.
    pub fn udp(address: SocketAddr, options: &Options) -> Result<Self> {
        Self::open(Socket::udp(address)?, "udp", options)
    }

    /// Makes this process the node of an Ethernet interface: the protocol of UDP on raw frames.
    ///
    /// # Errors
    /// [`Error`]: there is no such interface, it is no Ethernet, down, or another program's; the program
    /// may not send raw frames; the system lacks something.
    pub fn eth(interface: &str, options: &Options) -> Result<Self> {
        Self::open(Socket::eth(interface)?, "eth", options)
    }

    fn open(mut socket: Socket, kind: &'static str, options: &Options) -> Result<Self> {
        if let Some(path) = &options.pcap {
            socket.capture(path)?;
        }
        let net = Net::new(socket, options.time_out_ms.saturating_mul(1_000_000))?;
        let node = Arc::new(Node::new(net, Control::new(options.key.clone()))?);
        let service = Some(service::start(&node)?);
        Ok(Self(Arc::new(Ending { kind, node, service })))
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.0.node.net.socket.own()
    }

    /// Whether this process opened it; false in a child after fork, to which it is absent.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.0.node.net.is_present()
    }

    /// There until the node has released its address.
    #[must_use]
    pub fn presence(&self) -> Weak<()> {
        Arc::downgrade(&self.0.node.net.presence)
    }

    /// Opens a port for a NIC handle.
    ///
    /// # Errors
    /// Too many.
    pub fn port(&self) -> PortResult<Arc<NetVia>> {
        let own = self.address();
        let longest = self.0.node.net.socket.longest_of_own();
        let mtu = longest.saturating_sub(format::DATA_HEADER_BYTES);
        let attributes = PortAttributes {
            name: format!("{} {own}", self.0.kind),
            hardware_version: 1,
            host_address: own.to_host(),
            vis: table::VIS,
            regions: region::REGIONS,
            queues: QUEUES,
            queue_entries: ENTRIES,
            segments: descriptor::SEGMENTS_MAX,
            max_transfer: MAX_TRANSFER_BYTES,
            native_mtu: u32::try_from(mtu).unwrap_or(u32::MAX),
            tags: region::TAGS,
            push: false,
            rdma_write: true,
            rdma_read: true,
            ..PortAttributes::default()
        };
        let handle = self.0.node.add_handle(HANDLES)?;
        Ok(Arc::new(NetVia {
            _handle: handle,
            node: self.clone(),
            attributes,
            regions: Arc::default(),
            events: Arc::default(),
            requests: Requests::default(),
            vis: Table::of_vis(),
            queues: Table::of_queues(QUEUES as usize),
            lost: AtomicBool::new(false),
            pending: Mutex::default(),
        }))
    }
}

/// A port of a NIC handle.
#[derive(Debug)]
pub struct NetVia {
    /// Counts the handles of the node.
    _handle: Arc<()>,
    node: NetNode,
    attributes: PortAttributes,
    regions: Arc<Regions>,
    events: Arc<EventList>,
    requests: Requests,
    vis: Table<Vi>,
    queues: Table<Cq>,
    /// The program was notified that the node is absent.
    lost: AtomicBool,
    /// VIs that are about to be connected to a node, and how their connections are named.
    pending: Mutex<BTreeMap<u16, (u32, u64)>>,
}

impl NetVia {
    /// The node that it is on.
    #[must_use]
    pub fn net_node(&self) -> NetNode {
        self.node.clone()
    }

    fn node(&self) -> &Arc<Node> {
        &self.node.0.node
    }

    fn net(&self) -> &Net {
        &self.node().net
    }

    fn records_of(&self, settings: &ViSettings) -> PortResult<[Option<Arc<Records>>; 2]> {
        completion::records_of(settings, |queue| Ok(self.queues.get(queue)?.records.clone()))
    }

    /// Ends a VI's connection; what was sent still reaches the peer, and then that it ended.
    fn disconnect(&self, vi: u16, state: &mut State) {
        let Some(mut link) = state.link.take() else { return };
        if !self.net().is_present() || link.is_over {
            return;
        }
        let unreliable = matches!(state.vi.settings.reliability, port::Reliability::Unreliable);
        if !state.vi.is_stopped || unreliable {
            link.push_stop(self.net().now(), StopReason::Disconnected);
        }
        self.node().linger(vi, link);
    }

    /// Waits until the peers of connections that were left have everything, for some time.
    fn drain(&self) {
        let node = self.node();
        let end = node.net.now() + CLOSE_NS;
        while node.net.is_present() && node.has_lingering() && node.net.now() < end {
            node.look_at_all();
            let seen = node.net.wakes.count();
            if node.has_lingering() {
                let left = node.deadline().saturating_sub(node.net.now());
                node.net.wakes.sleep(&node.net.socket, seen, left.clamp(1, CLOSE_NS));
            }
        }
    }
}

impl ViPort for NetVia {
    fn attributes(&self) -> &PortAttributes {
        &self.attributes
    }

    fn counters(&self) -> PortResult<Vec<(&'static str, u64)>> {
        let mut counters = self.net().counters.all();
        counters.push(("not captured", self.net().socket.not_captured.get()));
        Ok(counters)
    }

    fn close(&self) {
        requests::cancel_all(self);
        for vi in self.vis.all().iter().map(|vi| vi.number) {
            // They are this port's.
            let _ = self.destroy_vi(vi);
        }
        self.queues.clear();
        self.regions.clear();
        self.drain();
    }
}

impl ViOps for NetVia {
    fn create_vi(&self, settings: ViSettings) -> PortResult<u16> {
        check_presence(self.net().is_present())?;
        settings.check_extensions(&self.attributes)?;
        let records = self.records_of(&settings)?;
        let vi = self.node().vis.add(|number| Vi {
            number,
            deadline: AtomicU64::new(u64::MAX),
            state: Mutex::new(State {
                vi: ViCore::new((number, settings), &self.regions, &self.events, records),
                link: None,
            }),
        })?;
        let number = vi.number;
        self.vis.insert(number, &vi);
        Ok(number)
    }

    fn set_vi(&self, vi: u16, settings: ViSettings) -> PortResult<()> {
        settings.check_extensions(&self.attributes)?;
        let records = self.records_of(&settings)?;
        let vi = self.vis.get(vi)?;
        let mut state = lock(&vi.state);
        if state.link.is_some() {
            let (what, value) = ("VI that is connected", vi.number.into());
            return Err(PortError::BadArgument { what, value });
        }
        state.vi.set(settings, records);
        state.vi.empty();
        Ok(())
    }

    fn destroy_vi(&self, vi: u16) -> PortResult<()> {
        self.reset_vi(vi)?;
        self.vis.remove(vi);
        self.node().vis.remove(vi);
        Ok(())
    }

    fn reset_vi(&self, vi: u16) -> PortResult<()> {
        let found = self.vis.get(vi)?;
        let mut state = lock(&found.state);
        self.disconnect(vi, &mut state);
        state.vi.reset();
        drop(state);
        self.events.forget(vi);
        lock(&self.pending).remove(&vi);
        Ok(())
    }

    fn vi_stopped(&self, vi: u16) -> PortResult<bool> {
        Ok(lock(&self.vis.get(vi)?.state).vi.is_stopped)
    }

    fn doorbell(&self, vi: u16, queue: Queue) -> Doorbell {
        match self.vis.get(vi) {
            Ok(vi) => {
                let node = Arc::clone(self.node());
                Doorbell::Call(Arc::new(ViDoorbell { node, vi, queue }))
            }
            Err(_) => Doorbell::nowhere(),
        }
    }

    fn next_event(&self) -> Option<PortEvent> {
        if !self.net().is_present() {
            let is_new = !self.lost.swap(true, Ordering::AcqRel);
            return is_new.then_some(PortEvent::CardLost);
        }
        self.node().look();
        self.events.pop()
    }
}
