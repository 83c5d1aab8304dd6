//! Two nodes on a wire, and what most tests need of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use host_driver::bus::Bus;
use host_driver::bus::sim::{SharedWire, SimBus, World, WorldConfig};
use host_driver::nic::{Nic as DriverNic, NicConfig};
use host_driver::port::HardwarePort;
use nic_model::Model;
use nic_model::link::{Faults, Wire};
use vipl::{
    Completion, DmaMemory, ErrorCode, MemAttributes, NetAddress, Nic, Ptag, Region, Reliability,
    Vi, ViAttributes, VipReturn,
};

pub(crate) const LEVELS: [Reliability; 3] =
    [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];

/// Long enough for everything that is to happen.
pub(crate) const LONG: Duration = Duration::from_millis(20);

/// Asynchronous errors: VI number and code.
pub(crate) type Errors = Arc<Mutex<Vec<(u16, ErrorCode)>>>;

pub(crate) struct Node {
    pub(crate) driver: Arc<DriverNic>,
    pub(crate) nic: Nic,
    pub(crate) tag: Ptag,
    pub(crate) errors: Errors,
    number: u8,
}

pub(crate) struct Pair {
    pub(crate) world: World,
    pub(crate) buses: [Arc<SimBus>; 2],
    pub(crate) wire: SharedWire,
    pub(crate) a: Node,
    pub(crate) b: Node,
}

impl Node {
    pub(crate) fn open(bus: Arc<dyn Bus>, config: &NicConfig) -> Self {
        let driver = DriverNic::open(bus, config).expect("bring-up");
        let nic = Nic::open(HardwarePort::open(Arc::clone(&driver)).expect("a port"));
        let errors = Errors::default();
        let list = Arc::clone(&errors);
        nic.error_callback(Some(Arc::new(move |error| {
            let vi = error.vi.as_ref().map_or(u16::MAX, Vi::number);
            list.lock().unwrap().push((vi, error.code));
        })));
        let tag = nic.create_ptag().unwrap();
        Self { driver, nic, tag, errors, number: config.node }
    }

    pub(crate) fn vi(&self, level: Reliability) -> Vi {
        self.nic.create_vi(ViAttributes::new(level, self.tag), None, None).unwrap()
    }

    pub(crate) fn region(&self, bytes: usize) -> Region {
        let memory = DmaMemory::new(bytes).unwrap();
        self.nic.register_mem(&memory, MemAttributes::new(self.tag)).unwrap()
    }

    pub(crate) fn address(&self, service: &[u8]) -> NetAddress {
        NetAddress::of_node(self.number, service)
    }

    pub(crate) fn errors(&self) -> Vec<(u16, ErrorCode)> {
        self.nic.progress();
        std::mem::take(&mut *self.errors.lock().unwrap())
    }
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with(&Faults::default(), WorldConfig::default())
    }

    pub(crate) fn with(faults: &Faults, config: WorldConfig) -> Self {
        let devices: [Box<dyn nic_model::device::Device + Send>; 2] =
            [Box::new(Model::default()), Box::new(Model::default())];
        let wire = Wire::with_faults(20, faults);
        let (world, buses, wire) = World::pair(config, devices, wire);
        let a = Node::open(buses[0].clone(), &NicConfig::new(0, &[1]).with_seed(config.seed));
        let b = Node::open(buses[1].clone(), &NicConfig::new(1, &[0]).with_seed(config.seed + 1));
        Self { world, buses, wire, a, b }
    }

    /// Connects two VIs, each side on a thread of its own.
    pub(crate) fn connect(&self, a: &Vi, b: &Vi) {
        let service = a.number().to_le_bytes();
        let seats = [self.world.join_baton("server"), self.world.join_baton("client")];
        let [server, client] = seats;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _turn = server.enter();
                let request = self.b.nic.connect_wait(&self.b.address(&service), LONG).unwrap();
                request.accept(b).unwrap();
            });
            scope.spawn(|| {
                let _turn = client.enter();
                let remote = self.b.address(&service);
                a.connect_request(&self.a.address(b""), &remote, LONG).unwrap();
            });
        });
    }

    /// A connected pair of VIs.
    pub(crate) fn connected(&self, level: Reliability) -> (Vi, Vi) {
        let (a, b) = (self.a.vi(level), self.b.vi(level));
        self.connect(&a, &b);
        (a, b)
    }

    pub(crate) fn settle(&self) {
        self.world.run_until_idle(2_000_000).unwrap();
        self.a.nic.progress();
        self.b.nic.progress();
    }
}

/// A sending or receiving buffer with its descriptor, in one registration.
pub(crate) struct Buffer {
    pub(crate) region: Region,
    pub(crate) descriptor: vipl::Descriptor,
    offset: usize,
    length: usize,
}

impl Buffer {
    pub(crate) fn new(node: &Node, length: usize) -> Self {
        Self::at(node, length, 1024)
    }

    /// The data at `offset` (at least 320) of the region.
    pub(crate) fn at(node: &Node, length: usize, offset: usize) -> Self {
        let region = node.region(offset + length + 64);
        let descriptor = region.descriptor(0, 16).unwrap();
        let segment = region.segment(offset, u32::try_from(length).unwrap());
        descriptor.prepare(&[segment], None).unwrap();
        Self { region, descriptor, offset, length }
    }

    pub(crate) fn set(&self, data: &[u8]) {
        self.region.memory().copy_from(self.offset, data);
        let segment = self.region.segment(self.offset, u32::try_from(data.len()).unwrap());
        self.descriptor.prepare(&[segment], None).unwrap();
    }

    pub(crate) fn data(&self) -> Vec<u8> {
        let length = (self.descriptor.length() as usize).min(self.length);
        self.region.memory().to_vec(self.offset, length)
    }
}

/// Bytes that differ from place to place.
pub(crate) fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 251 + seed * 13).to_le_bytes()[0]).collect()
}

/// The error bits of a completion that must be an error with its descriptor.
pub(crate) fn error_bits(completion: &Completion) -> u32 {
    match completion {
        Err(e) if e.code == VipReturn::DescriptorError => {
            e.descriptor.as_ref().expect("a descriptor").status().errors()
        }
        other => panic!("expected an error, got {other:?}"),
    }
}

/// The code of a failed function.
pub(crate) fn code<T: std::fmt::Debug>(result: vipl::Result<T>) -> VipReturn {
    result.expect_err("a failure").code
}
