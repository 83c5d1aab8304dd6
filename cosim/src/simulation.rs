//! The simulation: devices, their hosts, the network between them, one clock.
//!
//! | module | what |
//! |---|---|
//! | [`network`] | what connects the nodes: a wire, a mesh of wires |
//! | [`host`] | host memory behind an IOMMU, and an interrupt controller |
//! | [`seeded`] | the deterministic scheduler: time passes only when a program waits |
//! | `on_demand` | a clock that runs while something is pending |
//! | [`live`] | the scheduler of programs that do not know of the simulation: a thread runs the clock |
//!
//! `cosim::serve` runs the same nodes for programs of other processes. Every node is stepped once a
//! cycle, in the order of its number, so a run is a function of what was done to it and when.

mod empty_slot;
pub mod host;
pub mod live;
pub mod network;
mod node_threads;
pub(crate) mod on_demand;
pub mod seeded;

use std::sync::Arc;

use nic_model::device::{Beat, Device, HostBus, Link};

use host_driver::sync::lock;

use empty_slot::EmptySlot;
use network::{Port, SharedNetwork, SharedPort};
use node_threads::NodeThreads;

/// A device of a simulation: the model or the Verilated RTL.
pub type SimulatedDevice = Box<dyn Device + Send>;

/// The host of a node.
pub(crate) trait NodeHost: HostBus + Send {
    /// Whether the device used its host since the last call.
    fn take_busy(&mut self) -> bool;

    /// Whether the device wrote something since the last call that a waiting program wants to see
    /// at once. It ends a run early.
    fn take_touched(&mut self) -> bool {
        false
    }
}

/// A device and its host.
struct Node<H> {
    device: SimulatedDevice,
    host: H,
    /// Without its cable the node's frames are lost, and none arrive.
    is_connected: bool,
}

impl<H: NodeHost> Node<H> {
    /// Runs one cycle. True if the host was touched.
    fn step(&mut self, now: u64, port: &mut dyn Link) -> bool {
        let link = if self.is_connected { port } else { &mut Unconnected };
        self.device.step(now, &mut self.host, link);
        self.host.take_touched()
    }

    /// Runs some cycles, on a port that nodes of other threads use too.
    fn run(&mut self, now: u64, cycles: u64, port: &mut SharedPort) -> bool {
        (now..now + cycles).fold(false, |touched, now| self.step(now, port) | touched)
    }
}

/// The end of a cable that leads nowhere.
struct Unconnected;

impl Link for Unconnected {
    fn ready(&self, _now: u64) -> bool {
        true
    }

    fn send(&mut self, _now: u64, _beat: Beat) {}

    fn receive(&mut self, _now: u64) -> Option<Beat> {
        None
    }
}

/// The nodes of a simulation. A scheduler owns it and decides when it runs.
pub(crate) struct Simulation<H> {
    nodes: Vec<Node<H>>,
    network: SharedNetwork,
    threads: NodeThreads<H>,
    now: u64,
}

impl<H> core::fmt::Debug for Simulation<H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Simulation({} nodes at cycle {})", self.nodes.len(), self.now)
    }
}

impl<H: NodeHost + 'static> Simulation<H> {
    /// Connects nodes 0, 1, ... to the ports 0, 1, ... of a network.
    pub(crate) fn new(
        network: SharedNetwork,
        nodes: impl IntoIterator<Item = (SimulatedDevice, H)>,
    ) -> Self {
        let node = |(device, host)| Node { device, host, is_connected: true };
        let nodes = nodes.into_iter().map(node).collect();
        Self { nodes, network, threads: NodeThreads::default(), now: 0 }
    }

    /// Cycles run so far.
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// The device of a node.
    pub(crate) fn device(&mut self, node: usize) -> &mut dyn Device {
        &mut *self.nodes[node].device
    }

    /// The host of a node.
    pub(crate) fn host(&self, node: usize) -> &H {
        &self.nodes[node].host
    }

    /// The host of a node, to change it.
    pub(crate) fn host_mut(&mut self, node: usize) -> &mut H {
        &mut self.nodes[node].host
    }

    /// The hosts of all nodes, in order.
    pub(crate) fn hosts(&mut self) -> impl Iterator<Item = &mut H> {
        self.nodes.iter_mut().map(|node| &mut node.host)
    }

    /// Runs up to `cycles` cycles of every node. True if a host was touched, which ends them early.
    pub(crate) fn run(&mut self, cycles: u64) -> bool {
        let mut network = lock(&self.network);
        let mut touched = false;
        for _ in 0..cycles {
            for (number, node) in self.nodes.iter_mut().enumerate() {
                touched |= node.step(self.now, &mut Port::new(&mut *network, number));
            }
            network.step(self.now);
            self.now += 1;
            if touched {
                break;
            }
        }
        touched
    }

    /// Runs `cycles` cycles of every node, each on a thread of its own: at most as many as a beat
    /// takes from one port of the network to another. True if a host was touched.
    pub(crate) fn run_side_by_side(&mut self, cycles: u64) -> bool {
        let touched = self.threads.run(&mut self.nodes, &self.network, self.now, cycles);
        let mut network = lock(&self.network);
        (self.now..self.now + cycles).for_each(|now| network.step(now));
        self.now += cycles;
        touched
    }

    /// Reads 1 to 8 bytes of a BAR. None if the device does not answer within `limit` cycles.
    pub(crate) fn read(
        &mut self,
        node: usize,
        (bar, offset): (u8, u64),
        length: usize,
        limit: u64,
    ) -> Option<u64> {
        self.device(node).bar_read(bar, offset, length);
        for _ in 0..limit {
            if let Some(value) = self.device(node).bar_response() {
                return Some(value);
            }
            self.run(1);
        }
        None
    }

    /// Writes 1 to 64 bytes of a BAR, which do not cross a multiple of 64.
    pub(crate) fn write(&mut self, node: usize, bar: u8, offset: u64, data: &[u8]) {
        self.device(node).bar_write(bar, offset, data);
    }

    /// The nodes whose devices have work of their own under way. Frames on the network and timers
    /// are not.
    pub(crate) fn busy_nodes(&self) -> impl Iterator<Item = usize> {
        self.nodes.iter().enumerate().filter_map(|(i, node)| node.device.busy().then_some(i))
    }

    /// Puts another device in a node's place.
    pub(crate) fn replace(&mut self, node: usize, device: SimulatedDevice) {
        lock(&self.network).cut(node, self.now);
        self.nodes[node].device = device;
    }

    /// Pulls a node's card out of its slot: reads give all ones, and writes lead nowhere.
    pub(crate) fn unplug(&mut self, node: usize) {
        self.nodes[node].device = Box::new(EmptySlot::default());
    }

    /// Puts a wrapper around the network: an observer or a fault injector.
    pub(crate) fn wrap_network(&mut self, wrap: impl FnOnce(SharedNetwork) -> SharedNetwork) {
        self.network = wrap(Arc::clone(&self.network));
        // Their ports are those of the network inside.
        self.threads = NodeThreads::default();
    }

    /// Pulls a node's cable out, or puts it back.
    pub(crate) fn set_connected(&mut self, node: usize, is_connected: bool) {
        self.nodes[node].is_connected = is_connected;
    }
}
