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
        self.end_frame(node);
        self.nodes[node].device = device;
    }

    /// Ends the frame that a node was sending, which its receiver would wait for without end.
    fn end_frame(&self, node: usize) {
        lock(&self.network).cut(node, self.now);
    }

    /// Pulls a node's card out of its slot: reads give all ones, and writes lead nowhere.
    pub(crate) fn unplug(&mut self, node: usize) {
        self.replace(node, Box::new(EmptySlot::default()));
    }

    /// Puts a wrapper around the network: an observer or a fault injector.
    pub(crate) fn wrap_network(&mut self, wrap: impl FnOnce(SharedNetwork) -> SharedNetwork) {
        self.network = wrap(Arc::clone(&self.network));
        // Their ports are those of the network inside.
        self.threads = NodeThreads::default();
    }

    /// Pulls a node's cable out, or puts it back.
    pub(crate) fn set_connected(&mut self, node: usize, is_connected: bool) {
        if !is_connected {
            self.end_frame(node);
        }
        self.nodes[node].is_connected = is_connected;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use nic_model::link::Faults;
    use nic_regs::frame::Type;

    use super::host::HostMemory;
    use super::network::{Mesh, Network as _};
    use super::*;

    type Beats = Arc<Mutex<Vec<Beat>>>;

    /// Sends its beats, one a cycle, and keeps what arrives.
    struct Talker {
        beats: VecDeque<Beat>,
        got: Beats,
    }

    impl Device for Talker {
        fn bar_write(&mut self, _bar: u8, _offset: u64, _data: &[u8]) {}

        fn bar_read(&mut self, _bar: u8, _offset: u64, _length: usize) {}

        fn bar_response(&mut self) -> Option<u64> {
            None
        }

        fn step(&mut self, now: u64, _host: &mut dyn HostBus, link: &mut dyn Link) {
            if let Some(beat) = self.beats.pop_front() {
                link.send(now, beat);
            }
            lock(&self.got).extend(link.receive(now));
        }

        fn busy(&self) -> bool {
            !self.beats.is_empty()
        }
    }

    /// A node that is cut off in the middle of a frame leaves its receiver to the other nodes.
    #[test]
    fn a_node_that_is_cut_off_in_mid_frame_blocks_nobody() {
        type CutOff = fn(&mut Simulation<HostMemory>);
        let ways: [CutOff; 2] =
            [|simulation| simulation.unplug(0), |simulation| simulation.set_connected(0, false)];
        for cut_off in ways {
            let got = Beats::default();
            let first = |from: u64| {
                let data = (Type::Data as u64) << 8 | from << 32 | 2 << 40;
                Beat { data, last: false }
            };
            let end = Beat { data: 7, last: true };
            let nodes = [0, 1, 2].map(|number| {
                let beats = (number == 0).then(|| first(0)).into_iter().collect();
                let talker = Talker { beats, got: Arc::clone(&got) };
                (Box::new(talker) as SimulatedDevice, HostMemory::new(number))
            });
            let network = Arc::new(Mutex::new(Mesh::new(3, 5, &Faults::default())));
            let mut simulation = Simulation::new(network.clone(), nodes);
            simulation.run(20);
            assert_eq!(*lock(&got), [first(0)]);
            cut_off(&mut simulation);
            for (now, beat) in (20..).zip([first(1), end]) {
                lock(&network).send(1, now, beat);
            }
            simulation.run(20);
            assert_eq!(lock(&got)[1..], [Beat { data: 0, last: true }, first(1), end]);
        }
    }
}
