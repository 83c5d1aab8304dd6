//! Live simulations, opened by URL: `sim:model?nodes=N`.

use host_driver::address::NodeAddress;
use std::time::Duration;

use tests::pattern;
use vipl::{
    DmaMemory, MemAttributes, NetAddress, Nic, Region, Reliability, Vi, ViAttributes, VipReturn,
};

/// Bound of everything here; it only says that something hangs.
const SOON: Duration = Duration::from_secs(30);
const BYTES: u32 = 9000;

struct End {
    nic: Nic,
    node: u8,
    vi: Vi,
    region: Region,
}

impl End {
    fn open(options: &str, node: u8) -> Self {
        let port = device::open(&format!("sim:model?{options}&node={node}")).unwrap();
        let nic = Nic::open(port);
        let tag = nic.create_ptag().unwrap();
        let memory = DmaMemory::new(128 + 2 * BYTES as usize).unwrap();
        let region = nic.register_mem(&memory, MemAttributes::new(tag)).unwrap();
        let attributes = ViAttributes::new(Reliability::Delivery, tag);
        let vi = nic.create_vi(attributes, None, None).unwrap();
        Self { nic, node, vi, region }
    }

    fn address(&self, service: &[u8]) -> NetAddress {
        NetAddress::of_node(self.node, service)
    }

    /// Connects to another end.
    fn connect(&self, other: &Self) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let request = other.nic.connect_wait(&other.address(b"end"), SOON).unwrap();
                request.accept(&other.vi).unwrap();
            });
            let (from, to) = (self.address(b""), other.address(b"end"));
            // Until the other thread waits.
            let ask = || self.vi.connect_request(&from, &to, SOON).err().map(|error| error.code);
            while let Some(code) = ask() {
                assert_eq!(code, VipReturn::NoMatch);
            }
        });
    }

    /// Sends a message to the end that it is connected with.
    fn send(&self, to: &Self, seed: usize) {
        let data = pattern(BYTES as usize, seed);
        self.region.memory().copy_from(128, &data);
        let send = self.region.descriptor(0, 1).unwrap();
        send.prepare(&[self.region.segment(128, BYTES)], None).unwrap();
        let recv = to.region.descriptor(64, 1).unwrap();
        let at = 128 + BYTES as usize;
        recv.prepare(&[to.region.segment(at, BYTES)], None).unwrap();
        to.vi.post_recv(&recv).unwrap();
        self.vi.post_send(&send).unwrap();
        self.vi.send_wait(SOON).unwrap();
        to.vi.recv_wait(SOON).unwrap();
        assert!(to.region.memory().to_vec(at, BYTES as usize) == data);
    }
}

/// Each node reaches each other, and itself, also over wires that lose and corrupt.
#[test]
fn simulations_have_as_many_nodes_as_asked_for() {
    for options in
        ["simulation=five&nodes=5", "simulation=bad&nodes=5&loss=0.02&corrupt=0.02&latency=50"]
    {
        for (from, to) in [(0, 4), (4, 1), (2, 3), (3, 3)] {
            let (a, b) = (End::open(options, from), End::open(options, to));
            a.connect(&b);
            for round in 0..5 {
                a.send(&b, round);
                b.send(&a, round + 100);
            }
        }
    }
    for (options, part) in [("nodes=65", "1 to 64"), ("nodes=3&node=3", "not one of 3")] {
        let text = device::open(&format!("sim:model?{options}")).unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    }
}

/// Threads create and destroy completion queues on a handle while another thread closes it; whoever
/// has another handle of the same device creates queues as before.
#[test]
fn a_close_during_queue_creation_harms_no_other_handle() {
    let open = || Nic::open(device::open("sim:model?simulation=closing&nodes=1").unwrap());
    let kept = open();
    for round in 0..40 {
        let nic = open();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let nic = nic.clone();
                scope.spawn(
                    move || {
                        while nic.create_cq(4).is_ok_and(|queue| queue.destroy().is_ok()) {}
                    },
                );
            }
            std::thread::sleep(Duration::from_micros(500 + 100 * round));
            nic.close();
        });
        // More than there are: a number that the device holds and nobody owns turns up.
        for _ in 0..8 {
            kept.create_cq(4).unwrap().destroy().unwrap();
        }
    }
    let all = kept.query().max_cq;
    let queues: Vec<_> = (0..all).map(|_| kept.create_cq(4).unwrap()).collect();
    assert!(kept.create_cq(4).is_err());
    queues.iter().for_each(|queue| queue.destroy().unwrap());
}

/// The nodes that answer are the same however often a program asks, with nodes that nobody uses
/// among those that are asked.
#[test]
fn nodes_are_discovered_as_often_as_asked() {
    let open = |node| {
        let url = format!("sim:model?simulation=discovery&nodes=4&node={node}");
        Nic::open(device::open(&url).unwrap())
    };
    let (first, _third) = (open(0), open(2));
    for round in 0..200 {
        let found = first.query_management(vipl::SMI_AUTODISCOVERY);
        let found = found.unwrap_or_else(|error| panic!("call {round}: {error}"));
        assert_eq!(found.addresses, [NetAddress::of_node(2, b"")], "call {round}");
    }
}
