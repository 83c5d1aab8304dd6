//! What connects the nodes of a simulation.

pub mod capture;
mod mesh;

use std::sync::{Arc, Mutex};

use host_driver::sync::lock;
use nic_model::device::{Beat, Link};
use nic_model::link::{Side, Wire};

pub use mesh::Mesh;

/// A network: numbered ports, one for each node. A beat takes at least one cycle from port to port.
pub trait Network: core::fmt::Debug + Send {
    /// Whether `port` takes a beat in this cycle.
    fn ready(&self, port: usize, now: u64) -> bool;
    /// Takes a beat from the node at `port`.
    fn send(&mut self, port: usize, now: u64, beat: Beat);
    /// The next beat for the node at `port` that has arrived by `now`.
    fn receive(&mut self, port: usize, now: u64) -> Option<Beat>;
    /// Runs one cycle of what the network itself does, after the nodes. A wire does nothing.
    fn step(&mut self, now: u64) {
        let _ = now;
    }
    /// Whether a frame that somebody waits for was sent since the last call: more than a pure
    /// acknowledgement, and than a SYN to a port that nobody uses. A network that cannot tell says
    /// whether anything is in flight.
    fn take_busy(&mut self) -> bool;
    /// Says whether a program uses the node at `port`.
    fn set_used(&mut self, port: usize, used: bool) {
        let _ = (port, used);
    }
    /// Ends the frame that the node at `port` was sending: its device is replaced, or cut off.
    fn cut(&mut self, port: usize, now: u64) {
        let _ = (port, now);
    }
}

/// A network that the scheduler, the threads of its nodes, and a test share.
pub type SharedNetwork = Arc<Mutex<dyn Network>>;

/// A wire is a network of two ports.
impl Network for Wire {
    fn ready(&self, port: usize, now: u64) -> bool {
        self.is_ready(side(port), now)
    }

    fn send(&mut self, port: usize, now: u64, beat: Beat) {
        self.end(side(port)).send(now, beat);
    }

    fn receive(&mut self, port: usize, now: u64) -> Option<Beat> {
        self.end(side(port)).receive(now)
    }

    fn take_busy(&mut self) -> bool {
        !self.is_idle()
    }
}

const fn side(port: usize) -> Side {
    if port == 0 { Side::A } else { Side::B }
}

/// A node's port, while one thread runs all nodes.
pub(super) struct Port<'a> {
    network: &'a mut dyn Network,
    port: usize,
}

impl<'a> Port<'a> {
    pub(super) fn new(network: &'a mut dyn Network, port: usize) -> Self {
        Self { network, port }
    }
}

impl Link for Port<'_> {
    fn ready(&self, now: u64) -> bool {
        self.network.ready(self.port, now)
    }

    fn send(&mut self, now: u64, beat: Beat) {
        self.network.send(self.port, now, beat);
    }

    fn receive(&mut self, now: u64) -> Option<Beat> {
        self.network.receive(self.port, now)
    }
}

/// A node's port, while each node has a thread of its own.
pub(super) struct SharedPort {
    network: SharedNetwork,
    port: usize,
}

impl SharedPort {
    pub(super) fn new(network: &SharedNetwork, port: usize) -> Self {
        Self { network: Arc::clone(network), port }
    }
}

impl Link for SharedPort {
    fn ready(&self, now: u64) -> bool {
        lock(&self.network).ready(self.port, now)
    }

    fn send(&mut self, now: u64, beat: Beat) {
        lock(&self.network).send(self.port, now, beat);
    }

    fn receive(&mut self, now: u64) -> Option<Beat> {
        lock(&self.network).receive(self.port, now)
    }
}
