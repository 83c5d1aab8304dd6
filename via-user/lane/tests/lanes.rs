//! Lanes without the kernel: the test is the network device of each, at the other end of a pair of sockets
//! that keep packets apart.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use lane::{Config, Conflict, Drop, Error, Event, Host, Lane, Networks, hello};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use vipl::{
    Descriptor, DmaMemory, MemAttributes, NetAddress, Nic, Reliability, Vi, ViAttributes,
    VipReturn, Waiting,
};

/// Bound of what must happen.
const SOON: Duration = Duration::from_secs(5);
const MTU: u32 = 1500;

/// A LAN that a test has to itself: lanes find each other, those of other tests and of other programs too.
#[derive(Clone, Copy)]
struct Lan(u32);

impl Lan {
    fn new(test: u32) -> Self {
        Self(std::process::id() * 16 + test)
    }

    /// The IPv4 address of a node.
    fn v4(self, node: u8) -> String {
        let [_, _, high, low] = self.0.to_be_bytes();
        format!("10.{high}.{low}.{node}")
    }

    /// Its addresses, with their networks.
    fn node(self, node: u8) -> [String; 2] {
        [format!("{}/24", self.v4(node)), format!("fd07::{node}/64")]
    }

    /// A packet from a node to another one.
    fn packet(self, from: u8, to: u8, length: usize) -> Vec<u8> {
        packet(&self.v4(from), &self.v4(to), length)
    }
}

/// A lane, and its kernel.
struct Node {
    lane: Lane,
    kernel: OwnedFd,
    events: Receiver<Event>,
    host: Host,
}

fn networks(addresses: &[String]) -> Networks {
    Networks::new(addresses.iter().map(|text| text.parse().unwrap()).collect()).unwrap()
}

fn nic(url: &str) -> Nic {
    // At rest no processor is used for looking: the tests run beside others.
    Nic::open_with(device::open(url).unwrap(), Waiting::Sleep { after: Duration::ZERO })
}

impl Node {
    fn start(url: &str, addresses: &[String]) -> Self {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (kernel, packets) = pair.unwrap();
        rustix::io::ioctl_fionbio(&kernel, false).unwrap();
        sockopt::set_socket_timeout(&kernel, sockopt::Timeout::Recv, Some(SOON)).unwrap();
        let (sender, events) = channel();
        let report = move |event: &Event| drop(sender.send(event.clone()));
        let nic = nic(url);
        let host = nic.query().local_address;
        let config = Config { networks: networks(addresses), mtu: MTU, peers: Vec::new() };
        let lane = Lane::start(nic, packets, config, Box::new(report)).unwrap();
        Self { lane, kernel, events, host }
    }

    fn send(&self, packet: &[u8]) {
        assert_eq!(rustix::io::write(&self.kernel, packet), Ok(packet.len()));
    }

    fn receive(&self) -> Vec<u8> {
        let mut buffer = vec![0; 1 << 16];
        let length = rustix::io::read(&self.kernel, &mut buffer[..]);
        let length = length.unwrap_or_else(|why| {
            let events: Vec<Event> = self.events.try_iter().collect();
            panic!("no packet: {why}; {}; {events:?}", self.lane.counters())
        });
        buffer.truncate(length);
        buffer
    }

    /// Waits until a node is up that has this address as its first one.
    fn wait_for(&self, address: &str) {
        self.wait(|event| matches!(event, Event::Up(_, all) if all[0].to_string() == address));
    }

    fn wait(&self, wanted: impl Fn(&Event) -> bool) {
        while !wanted(&self.events.recv_timeout(SOON).expect("an event")) {}
    }

    fn wait_until_dropped(&self, why: Drop, count: u64) {
        let end = Instant::now() + SOON;
        while self.dropped(why) < count {
            assert!(Instant::now() < end, "{}", self.lane.counters());
            std::thread::yield_now();
        }
    }

    fn dropped(&self, why: Drop) -> u64 {
        self.lane.counters().dropped(why)
    }
}

fn packet(source: &str, destination: &str, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|at| (at % 251).to_le_bytes()[0]).collect();
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
    let of = |text: &str| text.parse::<Ipv4Addr>().unwrap().octets();
    bytes[12..16].copy_from_slice(&of(source));
    bytes[16..20].copy_from_slice(&of(destination));
    bytes
}

/// The nodes of a LAN, from 1 on, which all know each other; they start at the same time, so that they
/// request each other.
fn nodes(lan: Lan, urls: &[String]) -> Vec<Node> {
    let nodes: Vec<Node> = std::thread::scope(|scope| {
        let starts = (1..).zip(urls);
        let all: Vec<_> = starts
            .map(|(number, url)| scope.spawn(move || Node::start(url, &lan.node(number))))
            .collect();
        all.into_iter().map(|node| node.join().unwrap()).collect()
    });
    // Those that found each other before both could answer need a reason to look again.
    for (number, node) in (1..).zip(&nodes) {
        node.send(&packet(&lan.v4(number), "224.0.0.1", 20));
    }
    for (number, node) in (1..).zip(&nodes) {
        let numbers = (1..).zip(&nodes).map(|(other, _)| other);
        let mut others: Vec<String> =
            numbers.filter(|other| *other != number).map(|other| lan.v4(other)).collect();
        while !others.is_empty() {
            let event = node.events.recv_timeout(SOON).expect("an event");
            if let Event::Up(_, all) = event {
                others.retain(|other| *other != all[0].to_string());
            }
        }
    }
    nodes
}

fn shm(name: &str, count: usize) -> Vec<String> {
    (1..=count).map(|node| format!("shm:?node=lane-{name}-{node}")).collect()
}

#[test]
fn packets_of_every_length_arrive_whole_and_at_their_node_alone() {
    let lan = Lan::new(0);
    let nodes = nodes(lan, &shm("whole", 3));
    for length in [20, 21, 63, 64, 576, 1499, 1500] {
        let to = lan.packet(1, 2, length);
        let back = lan.packet(2, 1, length);
        nodes[0].send(&to);
        // What was sent to everyone at the start may come before.
        let next = |node: &Node| loop {
            let packet = node.receive();
            if packet[16] != 224 {
                return packet;
            }
        };
        assert_eq!(next(&nodes[1]), to);
        nodes[1].send(&back);
        assert_eq!(next(&nodes[0]), back);
    }
    let everyone = lan.packet(1, 255, 100);
    nodes[0].send(&everyone);
    for node in &nodes[1..] {
        while node.receive() != everyone {}
    }
}

#[test]
fn lanes_run_on_a_simulated_nic() {
    let urls = [0, 1].map(|node| format!("sim:model?node={node}"));
    let lan = Lan::new(1);
    let nodes = nodes(lan, &urls);
    let to = lan.packet(1, 2, 1500);
    nodes[0].send(&to);
    while nodes[1].receive() != to {}
}

#[test]
fn what_is_no_packet_of_this_node_is_dropped_and_counted() {
    let lan = Lan::new(2);
    let nodes = nodes(lan, &shm("drops", 2));
    let good = lan.packet(1, 2, 40);
    let before = nodes[0].dropped(Drop::NoPeer);
    for bad in [
        vec![0x45; 3],
        vec![0x55; 40],
        good[..39].to_vec(),
        lan.packet(2, 1, 40),
        lan.packet(9, 2, 40),
        lan.packet(1, 77, 40),
        good.clone(),
    ] {
        nodes[0].send(&bad);
    }
    while nodes[1].receive() != good {}
    let dropped = |why| nodes[0].dropped(why);
    assert_eq!(dropped(Drop::SentMalformed), 3);
    assert_eq!(dropped(Drop::SentForeign), 2);
    assert_eq!(dropped(Drop::NoPeer) - before, 1);
}

#[test]
fn a_node_that_ends_and_comes_back_is_connected_anew() {
    let urls = shm("back", 2);
    let lan = Lan::new(3);
    let mut nodes = nodes(lan, &urls);
    nodes[1].lane.stop();
    drop(nodes.pop());
    nodes[0].wait(|event| matches!(event, Event::Down(..)));
    let before = nodes[0].dropped(Drop::NoPeer);
    nodes[0].send(&lan.packet(1, 2, 40));
    nodes[0].wait_until_dropped(Drop::NoPeer, before + 1);
    let again = Node::start(&urls[1], &lan.node(2));
    again.wait_for(&lan.v4(1));
    nodes[0].wait_for(&lan.v4(2));
    let good = lan.packet(1, 2, 50);
    nodes[0].send(&good);
    assert_eq!(again.receive(), good);
}

#[test]
fn a_node_with_an_address_of_another_one_is_refused() {
    let (lan, urls) = (Lan::new(4), shm("twice", 2));
    let first = Node::start(&urls[0], &lan.node(1));
    let second = Node::start(&urls[1], &lan.node(1));
    let own = Conflict::Own(lan.v4(1).parse().unwrap());
    first.wait(|event| matches!(event, Event::Refused(_, why) if *why == own));
    drop(second);
}

#[test]
fn an_mtu_that_the_device_has_not_is_refused() {
    let config =
        Config { networks: networks(&Lan::new(5).node(1)), mtu: 1 << 20, peers: Vec::new() };
    let (packets, _kernel) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let started = Lane::start(nic("shm:?node=lane-mtu"), packets, config, Box::new(|_| {}));
    assert!(matches!(started, Err(Error::Mtu { .. })));
}

#[test]
fn a_kernel_device_that_is_removed_ends_the_lane() {
    let node = Node::start("shm:?node=lane-removed", &Lan::new(6).node(1));
    rustix::net::shutdown(&node.kernel, rustix::net::Shutdown::Both).unwrap();
    node.wait(|event| matches!(event, Event::Failed(Error::NoDevice)));
}

/// A program that speaks the protocol of lanes, and is none.
struct Forger {
    vi: Vi,
    memory: DmaMemory,
    descriptor: Descriptor,
    region: vipl::Region,
}

impl Forger {
    fn connect(url: &str, lan: Lan, to: &Host, mtu: u32) -> Result<Self, vipl::Error> {
        let nic = nic(url);
        let tag = nic.create_ptag()?;
        let memory = DmaMemory::new(4096).unwrap();
        let region = nic.register_mem(&memory, MemAttributes::new(tag))?;
        let attributes = ViAttributes {
            max_transfer_size: mtu,
            ..ViAttributes::new(Reliability::Unreliable, tag)
        };
        let vi = nic.create_vi(attributes, None, None)?;
        let discriminator = networks(&lan.node(9)).discriminator();
        let at = |host: &[u8]| NetAddress::new(host, discriminator.as_bytes());
        // The lane may be asking itself whether there is one here.
        let own = nic.query().local_address;
        while let Err(error) = vi.connect_request(&at(&own), &at(to), SOON) {
            if error.code != VipReturn::Reject || mtu != MTU {
                return Err(error);
            }
        }
        let descriptor = region.descriptor(0, 1)?;
        Ok(Self { vi, memory, descriptor, region })
    }

    fn send(&self, bytes: &[u8], immediate: Option<u32>) {
        self.memory.copy_from(1024, bytes);
        let length = u32::try_from(bytes.len()).unwrap();
        self.descriptor.prepare(&[self.region.segment(1024, length)], immediate).unwrap();
        self.vi.post_send(&self.descriptor).unwrap();
        self.vi.send_wait(SOON).unwrap();
    }
}

#[test]
fn a_peer_that_forges_is_not_believed() {
    let lan = Lan::new(7);
    let node = Node::start("shm:?node=lane-forged", &lan.node(1));
    let forger = Forger::connect("shm:?node=lane-forger", lan, &node.host, MTU).unwrap();
    let good = lan.packet(9, 1, 40);
    forger.send(&good, Some(0));
    for bad in [&b"no address"[..], b"10.0.0.9 224.0.0.1", &[0xff; 9], &[b'1'; 1000]] {
        forger.send(bad, Some(hello::KIND));
    }
    // Of its addresses, that which is not in the network is not taken.
    forger.send(format!("{} 192.0.2.1", lan.v4(9)).as_bytes(), Some(hello::KIND));
    node.wait(|event| matches!(event, Event::Up(_, all) if all.len() == 1));
    forger.send(lan.v4(8).as_bytes(), Some(hello::KIND));
    for (number, bad) in (1..).zip([
        lan.packet(8, 1, 40),
        packet("192.0.2.1", &lan.v4(1), 40),
        lan.packet(1, 1, 40),
        vec![0x45; 20],
        vec![],
    ]) {
        forger.send(&bad, Some(number));
    }
    forger.send(&good, None);
    forger.send(&good, Some(hello::KIND + 1));
    forger.send(&good, Some(8));
    assert_eq!(node.receive(), good, "the last one, and no other");
    let dropped = |why| node.dropped(why);
    assert_eq!(dropped(Drop::Early), 1);
    assert_eq!(dropped(Drop::Foreign), 3);
    assert_eq!(dropped(Drop::Malformed), 4 + 2 + 2);
    assert_eq!(dropped(Drop::Lost), 2, "numbers 6 and 7");
}

#[test]
fn a_peer_without_a_hello_is_disconnected() {
    let lan = Lan::new(8);
    let node = Node::start("shm:?node=lane-polite", &lan.node(1));
    let forger = Forger::connect("shm:?node=lane-mute", lan, &node.host, MTU).unwrap();
    // A receive of its own takes the hello of the lane; the next one ends with the connection.
    let receive = |at| {
        let descriptor = forger.region.descriptor(at, 1).unwrap();
        descriptor.prepare(&[forger.region.segment(1024, 1024)], None).unwrap();
        forger.vi.post_recv(&descriptor).unwrap();
    };
    receive(128);
    receive(256);
    while forger.vi.recv_wait(SOON).is_ok() {}
    let state = forger.vi.query().state;
    assert_eq!(state, vipl::ViState::Error);
}

#[test]
fn a_peer_with_another_mtu_is_named() {
    let lan = Lan::new(9);
    let node = Node::start("shm:?node=lane-mtu-1500", &lan.node(1));
    assert!(Forger::connect("shm:?node=lane-mtu-1400", lan, &node.host, 1400).is_err());
    node.wait(|event| matches!(event, Event::OtherMtu(_)));
}
