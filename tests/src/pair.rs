//! Two nodes on a wire with driver and VIPL on each, and what most scenarios need of them.

use host_driver::address::NodeAddress;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cosim::root_complex::HostSettings;
use cosim::simulation::seeded::{SeededBus, SeededSimulation, SimulationConfig};
use host_driver::HardwarePort;
use host_driver::bus::Bus;
use host_driver::nic::{Nic as DriverNic, NicConfig};
use nic_model::link::{Faults, Wire};
use vipl::{
    Completion, DmaMemory, ErrorCode, MemAttributes, NetAddress, Nic, Ptag, Region, Reliability,
    Vi, ViAttributes, VipReturn, Waiting,
};

use crate::{DeviceKind, device};

/// The reliability levels.
pub const LEVELS: [Reliability; 3] =
    [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];

/// Long enough for everything that is to happen.
pub const LONG: Duration = Duration::from_millis(20);

/// Cycles from one end of the wire to the other.
const WIRE_LATENCY: u64 = 20;

/// Asynchronous errors: VI number and code.
pub type Errors = Arc<Mutex<Vec<(u16, ErrorCode)>>>;

/// What a pair is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its devices.
    pub kind: DeviceKind,
    /// The device of node 1, if it is another.
    pub other: Option<DeviceKind>,
    /// What the wire does to frames.
    pub faults: Faults,
    /// The simulation; its seed is that of the nodes too.
    pub simulation: SimulationConfig,
    /// What the hosts do (RTL only).
    pub host: HostSettings,
    /// Registers set at bring-up: offset, value.
    pub registers: Vec<(u32, u32)>,
    /// Time between two looks whether the card is there, in nanoseconds.
    pub presence_ns: u64,
    /// Bound of admin commands, in nanoseconds.
    pub command_ns: u64,
    /// How programs wait.
    pub waiting: Waiting,
}

impl Setup {
    /// A good wire and ideal hosts.
    #[must_use]
    pub fn new(kind: DeviceKind) -> Self {
        Self {
            kind,
            other: None,
            faults: Faults::default(),
            simulation: SimulationConfig::default(),
            host: HostSettings::default(),
            registers: Vec::new(),
            presence_ns: NicConfig::new(0, &[]).presence_ns,
            command_ns: NicConfig::new(0, &[]).command_ns,
            waiting: Waiting::default(),
        }
    }

    /// The same with programs that sleep at once where they wait.
    #[must_use]
    pub fn sleeping(kind: DeviceKind) -> Self {
        Self { waiting: Waiting::Sleep { after: Duration::ZERO }, ..Self::new(kind) }
    }

    /// The same with these faults and the seed of all choices.
    #[must_use]
    pub fn with_faults(kind: DeviceKind, seed: u64, faults: Faults) -> Self {
        let simulation = SimulationConfig { seed, ..SimulationConfig::default() };
        Self { faults: Faults { seed, ..faults }, simulation, ..Self::new(kind) }
    }

    /// Settings of a node.
    #[must_use]
    pub fn node(&self, number: u8) -> NicConfig {
        let seed = self.simulation.seed + u64::from(number);
        let registers = self.registers.clone();
        let (presence_ns, command_ns) = (self.presence_ns, self.command_ns);
        NicConfig { registers, presence_ns, command_ns, ..NicConfig::new(number, &[1 - number]) }
            .with_seed(seed)
    }
}

/// Prints how to repeat a run that fails.
#[derive(Debug)]
pub struct Note {
    text: String,
    simulation: SeededSimulation,
}

impl Drop for Note {
    #[expect(clippy::print_stderr, reason = "the harness shows it with the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed at {:?}: {}", self.simulation, self.text);
        }
    }
}

/// A node's NIC as a program has it.
#[derive(Debug)]
pub struct Node {
    /// The driver below.
    pub driver: Arc<DriverNic>,
    /// The NIC.
    pub nic: Nic,
    /// A protection tag.
    pub tag: Ptag,
    errors: Errors,
    number: u8,
}

/// Two nodes and the wire.
#[derive(Debug)]
pub struct Pair {
    /// Node 0.
    pub a: Node,
    /// Node 1.
    pub b: Node,
    /// The simulation that both are in.
    pub simulation: SeededSimulation,
    /// Their buses.
    pub buses: [Arc<SeededBus>; 2],
    /// The wire.
    pub wire: Arc<Mutex<Wire>>,
    /// What to say if it fails.
    pub note: Note,
}

impl Node {
    /// Brings a NIC up and opens it.
    #[must_use]
    pub fn open(bus: Arc<dyn Bus>, config: &NicConfig) -> Self {
        Self::open_with(bus, config, Waiting::default())
    }

    /// The same with another way of waiting.
    #[must_use]
    pub fn open_with(bus: Arc<dyn Bus>, config: &NicConfig, waiting: Waiting) -> Self {
        let driver = DriverNic::open(bus, config).expect("bring-up");
        let port = HardwarePort::open(Arc::clone(&driver)).expect("a port");
        let nic = Nic::open_with(port, waiting);
        let errors = Errors::default();
        let list = Arc::clone(&errors);
        nic.error_callback(Some(Arc::new(move |error| {
            let vi = error.vi.as_ref().map_or(u16::MAX, Vi::number);
            list.lock().unwrap().push((vi, error.code));
        })));
        let tag = nic.create_ptag().unwrap();
        Self { driver, nic, tag, errors, number: config.node }
    }

    /// A VI of this level without completion queues.
    #[must_use]
    pub fn vi(&self, level: Reliability) -> Vi {
        self.nic.create_vi(ViAttributes::new(level, self.tag), None, None).unwrap()
    }

    /// A VI of this level that lets its peer do RDMA, as far as the level and the device have it.
    #[must_use]
    pub fn open_vi(&self, level: Reliability) -> Vi {
        let caps = self.driver.capabilities();
        let attributes = ViAttributes {
            enable_rdma_write: caps.rdma_write,
            enable_rdma_read: caps.rdma_read && level != Reliability::Unreliable,
            ..ViAttributes::new(level, self.tag)
        };
        self.nic.create_vi(attributes, None, None).unwrap()
    }

    /// New registered memory that the peer may write and read, as far as the device has that.
    #[must_use]
    pub fn open_region(&self, bytes: usize) -> Region {
        let caps = self.driver.capabilities();
        let attributes = MemAttributes {
            enable_rdma_write: caps.rdma_write,
            enable_rdma_read: caps.rdma_read,
            ..MemAttributes::new(self.tag)
        };
        self.nic.register_mem(&DmaMemory::new(bytes).unwrap(), attributes).unwrap()
    }

    /// New registered memory.
    #[must_use]
    pub fn region(&self, bytes: usize) -> Region {
        let memory = DmaMemory::new(bytes).unwrap();
        self.nic.register_mem(&memory, MemAttributes::new(self.tag)).unwrap()
    }

    /// An address on this node.
    #[must_use]
    pub fn address(&self, service: &[u8]) -> NetAddress {
        NetAddress::of_node(self.number, service)
    }

    /// The asynchronous errors since the last call.
    #[must_use]
    pub fn errors(&self) -> Vec<(u16, ErrorCode)> {
        self.nic.progress();
        std::mem::take(&mut *self.errors.lock().unwrap())
    }
}

impl Pair {
    /// A pair with a good wire.
    #[must_use]
    pub fn new(kind: DeviceKind) -> Self {
        Self::with(&Setup::new(kind))
    }

    /// A pair as described.
    #[must_use]
    pub fn with(setup: &Setup) -> Self {
        let seeds = |n: u64| HostSettings { seed: setup.host.seed + n, ..setup.host.clone() };
        let kinds = [setup.kind, setup.other.unwrap_or(setup.kind)];
        let devices = [0, 1].map(|n: u8| device(kinds[usize::from(n)], &seeds(n.into())));
        let wire = Wire::with_faults(WIRE_LATENCY, &setup.faults);
        let (simulation, buses, wire) = SeededSimulation::pair(setup.simulation, devices, wire);
        let note = Note { text: format!("{setup:?}"), simulation: simulation.clone() };
        let open =
            |n: u8| Node::open_with(buses[usize::from(n)].clone(), &setup.node(n), setup.waiting);
        let (a, b) = (open(0), open(1));
        Self { a, b, simulation, buses, wire, note }
    }

    /// Connects two VIs, each side on a thread of its own.
    pub fn connect(&self, a: &Vi, b: &Vi) {
        let service = a.number().to_le_bytes();
        let slots = [self.simulation.slot("server"), self.simulation.slot("client")];
        let [server, client] = slots;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _token = server.enter();
                let request = self.b.nic.connect_wait(&self.b.address(&service), LONG).unwrap();
                request.accept(b).unwrap();
            });
            scope.spawn(|| {
                let _token = client.enter();
                let remote = self.b.address(&service);
                a.connect_request(&self.a.address(b""), &remote, LONG).unwrap();
            });
        });
    }

    /// A connected pair of VIs.
    #[must_use]
    pub fn connected(&self, level: Reliability) -> (Vi, Vi) {
        let (a, b) = (self.a.vi(level), self.b.vi(level));
        self.connect(&a, &b);
        (a, b)
    }

    /// Runs until nothing is under way, and has both drivers look.
    pub fn settle(&self) {
        self.simulation.run_until_idle(2_000_000).unwrap();
        self.a.nic.progress();
        self.b.nic.progress();
    }

    /// Neither device touched memory that it may not.
    pub fn assert_no_stray_access(&self) {
        assert!(self.simulation.faults(0).is_empty() && self.simulation.faults(1).is_empty());
    }

    /// A message of some frames from `a` to `b` arrives.
    pub fn assert_works(&self, a: &Vi, b: &Vi) {
        let (send, recv) = (Buffer::new(&self.a, 5000), Buffer::new(&self.b, 5000));
        send.set(&pattern(5000, 1));
        b.post_recv(&recv.descriptor).unwrap();
        a.post_send(&send.descriptor).unwrap();
        b.recv_wait(LONG).unwrap();
        a.send_wait(LONG).unwrap();
        assert!(recv.data() == pattern(5000, 1));
    }
}

/// A sending or receiving buffer with its descriptor, in one registration.
#[derive(Debug)]
pub struct Buffer {
    /// The registration.
    pub region: Region,
    /// The descriptor.
    pub descriptor: vipl::Descriptor,
    offset: usize,
    length: usize,
}

impl Buffer {
    /// A buffer of this length.
    #[must_use]
    pub fn new(node: &Node, length: usize) -> Self {
        Self::at(node, length, 1024)
    }

    /// The data at `offset` (at least 320) of the region.
    #[must_use]
    pub fn at(node: &Node, length: usize, offset: usize) -> Self {
        let region = node.region(offset + length + 64);
        let descriptor = region.descriptor(0, 16).unwrap();
        let segment = region.segment(offset, u32::try_from(length).unwrap());
        descriptor.prepare(&[segment], None).unwrap();
        Self { region, descriptor, offset, length }
    }

    /// Fills the buffer, and has the descriptor name these bytes.
    pub fn set(&self, data: &[u8]) {
        self.region.memory().copy_from(self.offset, data);
        let segment = self.region.segment(self.offset, u32::try_from(data.len()).unwrap());
        self.descriptor.prepare(&[segment], None).unwrap();
    }

    /// What the descriptor says has arrived.
    #[must_use]
    pub fn data(&self) -> Vec<u8> {
        let length = (self.descriptor.length() as usize).min(self.length);
        self.region.memory().to_vec(self.offset, length)
    }
}

/// Bytes that differ from place to place.
#[must_use]
pub fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 251 + seed * 13).to_le_bytes()[0]).collect()
}

/// The error bits of a completion that must be an error with its descriptor.
#[must_use]
#[track_caller]
pub fn error_bits(completion: &Completion) -> u32 {
    match completion {
        Err(e) if e.code == VipReturn::DescriptorError => {
            e.descriptor.as_ref().expect("a descriptor").status().errors()
        }
        other => panic!("expected an error, got {other:?}"),
    }
}

/// The driver's error in a cause, if it is one.
#[must_use]
pub fn driver_error(cause: &vipl::Cause) -> Option<&host_driver::Error> {
    match cause {
        vipl::Cause::Port(error) => error.source_as(),
        vipl::Cause::Hosts(_) => None,
    }
}

/// The code of a failed function.
#[must_use]
#[track_caller]
pub fn code<T: std::fmt::Debug>(result: vipl::Result<T>) -> VipReturn {
    result.expect_err("a failure").code
}
