//! Datagrams from the network into a node of `udp:`, by its socket: of the peer of its VIs, right and
//! wrong, and of anybody.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use port::connection::{Endpoint, Provider, ProviderData};
use port::{DmaMemory, NetAddress, Reliability, RemoteAttributes, ViPort};
use soft_nic::net::{Address, NetNode, NetVia, Options};
use tests::LEVELS;
use vipl::{MemAttributes, Nic, Region, Vi, ViAttributes};

use crate::input::{Input, Mask};

/// Steps of an input at most.
const STEPS: usize = 48;
/// Receives of each VI.
const RECEIVES: usize = 4;
/// Bytes of registered memory, and those that receives have; the others no peer may write.
const MEMORY_BYTES: usize = 1 << 16;
const RECEIVE_BYTES: usize = 0x400;
/// What the peer names its ends, and the bytes of packets that it takes.
const TOKEN: u64 = 0x1234_5678_9abc_def0;
const LONGEST: u32 = 1_400;
/// Bytes of a packet's headers.
const HEADER_BYTES: usize = 32;
const DATA_HEADER_BYTES: usize = 64;
/// What memory has that nobody wrote.
const FILLER: u8 = 0x5a;

/// A node whose VIs are connected to `peer`.
struct Node {
    port: Arc<NetVia>,
    nic: Nic,
    region: Region,
    peer: UdpSocket,
    to: SocketAddr,
    /// With what the node has named their connections.
    vis: Vec<(Vi, u64)>,
    sequence: [u32; 3],
}

/// See the module. Nothing is written but in receives that are posted.
pub(crate) fn datagrams(data: &[u8]) {
    let mut input = Input::new(data);
    let mut node = Node::new();
    let other = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        let packet = match input.u8() % 8 {
            0 => {
                let length = input.below(128);
                input.bytes(length).to_vec()
            }
            1 => beside(&mut input),
            2 => node.acknowledgement(&mut input),
            _ => node.fragment(&mut input),
        };
        let from = if input.u8() == 255 { &other } else { &node.peer };
        // What the system does not take is lost, as on any network.
        let _ = from.send_to(&packet, node.to);
        let _ = node.port.progress();
        node.nic.progress();
    }
    node.nic.progress();
    node.check();
}

/// The first bytes of a packet.
fn front(kind: u8, flags: u16, vi: u16, length: usize, token: u64) -> Vec<u8> {
    let mut bytes = vec![1, kind];
    bytes.extend(flags.to_le_bytes());
    bytes.extend(vi.to_le_bytes());
    bytes.extend(u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend(token.to_le_bytes());
    bytes
}

/// A message beside connections: of the connection manager, or a challenge, or a reset.
fn beside(input: &mut Input<'_>) -> Vec<u8> {
    let (kind, length) = input.pick(&[(3, 16), (4, 32 + 48 + 16), (5, 32 + 16)]);
    let token = if input.flag() { TOKEN } else { input.u64() };
    let mut bytes = front(kind, 0, 0, length, token);
    bytes.extend(input.bytes(length - bytes.len()));
    bytes.resize(length, 0);
    bytes
}

impl Node {
    fn new() -> Self {
        let any = "127.0.0.1:0".parse().expect("an address");
        let node = NetNode::udp(any, &Options::default()).expect("a node");
        let Address::Udp(to) = node.address() else { panic!("no UDP") };
        let port = node.port().expect("a port");
        let nic = Nic::open(Arc::clone(&port) as Arc<dyn ViPort>);
        let tag = nic.create_ptag().expect("a tag");
        let memory = DmaMemory::new(MEMORY_BYTES).expect("memory");
        memory.copy_from(0, &[FILLER; MEMORY_BYTES]);
        let region = nic.register_mem(&memory, MemAttributes::new(tag)).expect("a region");
        let peer = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let SocketAddr::V4(four) = peer.local_addr().expect("its address") else {
            panic!("no IPv4")
        };
        let mut host = four.ip().octets().to_vec();
        host.extend(four.port().to_be_bytes());
        let host = NetAddress::new(&host, b"");
        let mut vis = Vec::new();
        for (place, level) in LEVELS.into_iter().enumerate() {
            let vi = nic.create_vi(ViAttributes::new(level, tag), None, None).expect("a VI");
            for slot in 0..RECEIVES {
                let number = place * RECEIVES + slot;
                let descriptor = region.descriptor(number * 64, 1).expect("a descriptor");
                let at = buffer(number);
                let length = u32::try_from(RECEIVE_BYTES).expect("small");
                descriptor.prepare(&[region.segment(at, length)], None).expect("its segments");
                vi.post_recv(&descriptor).expect("a receive");
            }
            let token = connect(&port, vi.number(), level, &host);
            vis.push((vi, token));
        }
        Self { port, nic, region, peer, to, vis, sequence: [0; 3] }
    }

    /// What every packet of a connection begins with.
    fn header(
        &self,
        input: &mut Input<'_>,
        kind: u8,
        (level, sequence): (usize, u32),
        length: usize,
    ) -> Vec<u8> {
        let (vi, token) = &self.vis[level];
        let mut mask = Mask::of(input);
        let flags = u16::from(input.u8() & 3);
        let vi = if mask.next() { input.u16() } else { vi.number() };
        let length = if mask.next() { usize::from(input.u16()) } else { length };
        let token = if mask.next() { token ^ input.u64() } else { *token };
        let mut bytes = front(kind, flags, vi, length, token);
        bytes.extend(sequence.to_le_bytes());
        let next = if mask.next() { input.u32() } else { 0 };
        let received = if mask.next() { input.u32() } else { next };
        bytes.extend(next.to_le_bytes());
        bytes.extend(received.to_le_bytes());
        let window = if mask.next() { input.u16() } else { 64 };
        bytes.extend(u32::from(window).to_le_bytes());
        bytes
    }

    fn acknowledgement(&self, input: &mut Input<'_>) -> Vec<u8> {
        let (level, bits) = (input.below(3), input.below(40));
        let mut bytes = self.header(input, 2, (level, 0), HEADER_BYTES + bits);
        bytes.extend(input.bytes(bits));
        bytes.resize(HEADER_BYTES + bits, 0);
        bytes
    }

    /// A data packet that is right but for what the input changes.
    fn fragment(&mut self, input: &mut Input<'_>) -> Vec<u8> {
        let level = input.below(3);
        let mut mask = Mask::of(input);
        let data = if mask.next() { usize::from(input.u16() % 2_048) } else { input.below(64) };
        let ahead = if mask.next() { input.u8().into() } else { 0 };
        let sequence = self.sequence[level].wrapping_add(ahead);
        if ahead == 0 {
            self.sequence[level] = sequence.wrapping_add(1);
        }
        let length = DATA_HEADER_BYTES + data;
        let mut bytes = self.header(input, 1, (level, sequence), length);
        let operation = if mask.next() { input.u8() } else { 1 + input.u8() % 5 };
        let flags = if mask.next() { input.u8() } else { 3 };
        let reason = if mask.next() { input.u8() } else { 1 };
        bytes.extend([operation, flags, reason, if mask.next() { input.u8() } else { 0 }]);
        let message = if mask.next() { input.u32() } else { 0 };
        let whole = if mask.next() { input.u32() } else { u32::try_from(data).expect("small") };
        let offset = if mask.next() { input.u32() } else { 0 };
        let handle = self.region.segment(0, 1).handle ^ if mask.next() { input.u32() } else { 0 };
        for word in [message, whole, offset, 7, handle] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(input.u64().to_le_bytes());
        bytes.resize(length, 0xc3);
        bytes
    }

    /// What nobody may write is as it was.
    fn check(&self) {
        let first = buffer(0);
        let end = buffer(LEVELS.len() * RECEIVES);
        let memory = self.region.memory().to_vec(end, MEMORY_BYTES - end);
        assert!(memory.iter().all(|byte| *byte == FILLER), "a write behind the receives");
        let descriptors = LEVELS.len() * RECEIVES * 64;
        let memory = self.region.memory().to_vec(descriptors, first - descriptors);
        assert!(memory.iter().all(|byte| *byte == FILLER), "a write before the receives");
    }
}

/// Where the buffer of a receive is.
const fn buffer(number: usize) -> usize {
    0x1000 + number * RECEIVE_BYTES
}

/// Connects a VI; gives what the node has named the connection.
fn connect(port: &NetVia, vi: u16, level: Reliability, host: &NetAddress) -> u64 {
    let node = port.reach(vi, host).expect("a way to the peer");
    let own = port.provider_data(vi, node).expect("a name of the connection");
    let token = own.bytes().first_chunk().copied().map_or(0, u64::from_le_bytes);
    let data = [&TOKEN.to_le_bytes()[..], &LONGEST.to_le_bytes()].concat();
    let attributes = RemoteAttributes {
        vi: 9,
        connection: 1,
        reliability: level,
        rdma_write: true,
        rdma_read: true,
        max_transfer: 1 << 16,
        qos: 0,
    };
    let data = ProviderData::new(&data).expect("12 bytes");
    port.connect_vi(vi, node, &Endpoint { attributes, data }).expect("a connection");
    token
}
