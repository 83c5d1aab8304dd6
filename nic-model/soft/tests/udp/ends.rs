//! Two ends of a connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use port::{DmaMemory, NetAddress, Reliability, ViPort};
use soft_nic::net::{Address, NetNode, NetVia, Options};
use vipl::{Descriptor, MemAttributes, Nic, Region, Vi, ViAttributes, ViState};

use crate::relay::Relay;

/// Bounds a wait that only a fault makes long.
pub const LONG: Duration = Duration::from_secs(60);
const BYTES: usize = 4 << 20;

pub struct End {
    pub port: Arc<NetVia>,
    pub nic: Nic,
    pub region: Region,
    pub vi: Vi,
    pub address: SocketAddr,
}

pub fn options(time_out_ms: u64) -> Options {
    Options { time_out_ms, ..Options::default() }
}

impl End {
    pub fn new(level: Reliability, options: &Options) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), level, options)
    }

    pub fn at(address: SocketAddr, level: Reliability, options: &Options) -> Self {
        let node = NetNode::udp(address, options).unwrap();
        let Address::Udp(address) = node.address() else { panic!("no UDP") };
        let port = node.port().unwrap();
        let nic = Nic::open(Arc::clone(&port) as Arc<dyn ViPort>);
        let tag = nic.create_ptag().unwrap();
        let mut attributes = ViAttributes::new(level, tag);
        attributes.enable_rdma_write = true;
        attributes.enable_rdma_read = level != Reliability::Unreliable;
        let vi = nic.create_vi(attributes, None, None).unwrap();
        let mut memory = MemAttributes::new(tag);
        (memory.enable_rdma_write, memory.enable_rdma_read) = (true, true);
        let region = nic.register_mem(&DmaMemory::new(BYTES).unwrap(), memory).unwrap();
        Self { port, nic, region, vi, address }
    }

    pub fn counter(&self, name: &str) -> u64 {
        let counters = self.port.counters().unwrap();
        counters.iter().find(|(known, _)| *known == name).expect(name).1
    }

    /// Descriptor number `slot`, of `length` bytes at `data`.
    pub fn descriptor(&self, slot: usize, data: usize, length: usize) -> Descriptor {
        let descriptor = self.region.descriptor(slot * 64, 1).unwrap();
        let segment = self.region.segment(data, u32::try_from(length).unwrap());
        descriptor.prepare(&[segment], None).unwrap();
        descriptor
    }

    /// Waits until the VI is in a state.
    pub fn await_state(&self, state: ViState, bound: Duration) -> Duration {
        let start = Instant::now();
        while self.vi.state() != state {
            assert!(start.elapsed() < bound, "{:?} after {bound:?}", self.vi.state());
            self.nic.progress();
            std::thread::sleep(Duration::from_micros(100));
        }
        start.elapsed()
    }
}

pub fn host(address: SocketAddr) -> Vec<u8> {
    let SocketAddr::V4(four) = address else { panic!("IPv4") };
    let mut host = four.ip().octets().to_vec();
    host.extend_from_slice(&four.port().to_be_bytes());
    host
}

/// Waits for a request to an address, and accepts it.
pub fn serve(b: &End, address: SocketAddr) -> vipl::Result<()> {
    let local = NetAddress::new(&host(address), b"service");
    // The requester may have given up when the acceptance arrives; then it asks again.
    loop {
        let request = b.nic.connect_wait(&local, Duration::from_secs(20))?;
        if request.accept(&b.vi).is_ok() {
            return Ok(());
        }
    }
}

/// Requests a connection with whoever waits at an address.
pub fn request(a: &End, address: SocketAddr) -> vipl::Result<()> {
    let remote = NetAddress::new(&host(address), b"service");
    let from = NetAddress::new(&host(a.address), b"");
    loop {
        match a.vi.connect_request(&from, &remote, Duration::from_secs(20)) {
            // Nobody may wait yet.
            Err(error) if error.code == vipl::VipReturn::NoMatch => {}
            other => return other.map(drop),
        }
    }
}

/// Connects `a` with `b`, which it reaches at an address.
pub fn connect(a: &End, b: &End, address_of_b: SocketAddr) -> vipl::Result<()> {
    std::thread::scope(|scope| {
        // A relay has another address than the node behind it.
        let server = scope.spawn(move || serve(b, address_of_b));
        let requested = request(a, address_of_b);
        requested.and(server.join().unwrap())
    })
}

/// Two ends that are connected by a relay.
pub fn pair(relay: &Relay, level: Reliability, options: &Options) -> (End, End) {
    let (a, b) = (End::new(level, options), End::new(level, options));
    relay.other(1, b.address);
    let address_of_b = relay.other(0, a.address);
    connect(&a, &b, address_of_b).unwrap();
    (a, b)
}

/// The bytes of message `number`.
pub fn pattern(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + number * 31 + (i >> 8)).to_le_bytes()[0]).collect()
}
