//! `DmaWrite` against a byte-accurate memory.
use crate::{Collector, Stable, chance, each_seed};
use cosim::verilated::blocks::dma_write::Model;
use nic_regs::tlp::{MEM_WRITE, Request};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::{HashMap, VecDeque};

type Memory = HashMap<u64, u8>;

struct Packet {
    address: u64,
    bytes: Vec<u8>,
}

impl Packet {
    fn random(rng: &mut SmallRng) -> Self {
        let length = match rng.random_range(0..4) {
            0 => rng.random_range(1..=16),
            1 => rng.random_range(1..=200),
            2 => rng.random_range(1..=4096),
            _ => [1, 4, 8, 12, 16, 64, 4095, 4096][rng.random_range(0..8)],
        };
        // Low addresses overlap; others cross 4 GiB and lie high.
        let base = [0, 0x1_0000_0000 - 2048, 0xffff_ffff_0000_0000][rng.random_range(0..3)];
        let address = base + rng.random_range(0..2048);
        Self { address, bytes: (0..length).map(|_| rng.random()).collect() }
    }

    fn beats(&self) -> VecDeque<u64> {
        let lane = (self.address % 8) as usize;
        let count = (lane + self.bytes.len()).div_ceil(8);
        let mut beats = VecDeque::from(vec![0xdead_beef_dead_beef; count]);
        for (at, &byte) in self.bytes.iter().enumerate() {
            let (beat, bit) = ((lane + at) / 8, (lane + at) % 8 * 8);
            beats[beat] = beats[beat] & !(0xff << bit) | u64::from(byte) << bit;
        }
        beats
    }
}

/// Writes a TLP to memory and checks its form.
fn apply(memory: &mut Memory, tlp: &[u64], max_payload: u8, requester: u16) -> usize {
    assert!(tlp.len() > 2, "a write without data");
    assert_eq!((tlp[0] >> 24) as u8, MEM_WRITE);
    let request = Request::from_beats([tlp[0], tlp[1]]);
    assert_eq!(request.requester, requester);
    assert_eq!(tlp[0] & 0x00ff_fc00, 0, "attributes and reserved bits");
    assert_eq!(tlp.len() - 2, request.data_beats());
    let limit = 128u64 << max_payload.min(2);
    let end = request.address + 4 * u64::from(request.length_dw) - 1;
    assert_eq!(request.address / limit, end / limit, "crosses a limit: {request:x?}");
    assert_ne!(request.first_be, 0);
    assert_eq!(request.last_be == 0, request.length_dw == 1, "{request:x?}");
    let mut enables = Vec::new();
    for dword in 0..request.length_dw {
        let be = match dword {
            0 => request.first_be,
            n if n + 1 == request.length_dw => request.last_be,
            _ => 0xf,
        };
        enables.extend((0..4).map(|bit| be >> bit & 1 == 1));
    }
    let first = enables.iter().position(|&on| on).unwrap();
    let last = enables.iter().rposition(|&on| on).unwrap();
    assert!(enables[first..=last].iter().all(|&on| on), "holes: {request:x?}");
    for (at, _) in enables.iter().enumerate().filter(|&(_, &on)| on) {
        let address = request.address + at as u64;
        let beat = tlp[2 + (address / 8 - request.address / 8) as usize];
        memory.insert(address, (beat >> (address % 8 * 8)) as u8);
    }
    last - first + 1
}

struct Client {
    packets: VecDeque<Packet>,
    beats: VecDeque<u64>,
    offering: bool,
    /// Of a client that requests its packets ahead: how many it has requested, and whether it requests one now.
    requested: usize,
    requesting: bool,
}

impl Client {
    fn new(rng: &mut SmallRng) -> Self {
        let packets = (0..60).map(|_| Packet::random(rng)).collect();
        Self { packets, beats: VecDeque::new(), offering: false, requested: 0, requesting: false }
    }

    /// Valid, address, length, data and last of this cycle.
    fn drive(&mut self, rng: &mut SmallRng, busy: u32) -> (u8, u64, u16, u64, u8) {
        let Some(packet) = self.packets.front() else { return Default::default() };
        if self.beats.is_empty() {
            self.beats = packet.beats();
        }
        self.offering |= chance(rng, busy);
        let data = if self.offering { self.beats[0] } else { rng.random() };
        let last = u8::from(self.beats.len() == 1);
        (self.offering.into(), packet.address, packet.bytes.len() as u16, data, last)
    }

    /// Requests the next packet: valid, address, length.
    fn request(&mut self, rng: &mut SmallRng, busy: u32) -> (u8, u64, u16) {
        let Some(packet) = self.packets.get(self.requested) else {
            self.requesting = false;
            return Default::default();
        };
        self.requesting |= chance(rng, busy);
        (self.requesting.into(), packet.address, packet.bytes.len() as u16)
    }

    /// The beat has moved; with the last one the packet is in order.
    fn moved(&mut self, memory: &mut Memory) -> usize {
        self.offering = false;
        self.beats.pop_front();
        if !self.beats.is_empty() {
            return 0;
        }
        let packet = self.packets.pop_front().unwrap();
        for (at, &byte) in packet.bytes.iter().enumerate() {
            memory.insert(packet.address + at as u64, byte);
        }
        packet.bytes.len()
    }
}

fn drive(nic: &mut Model, clients: &mut [Client; 4], rng: &mut SmallRng, busy: u32) {
    let ports: Vec<_> = clients.iter_mut().map(|client| client.drive(rng, busy)).collect();
    let i = &mut nic.inputs;
    (i.recv_valid, _, _, i.recv_data, i.recv_last) = ports[0];
    (i.recv_req_valid, i.recv_req_address, i.recv_req_length) = clients[0].request(rng, busy);
    (i.send_valid, i.send_address, i.send_length, i.send_data, i.send_last) = ports[1];
    (i.events_valid, i.events_address, i.events_length, i.events_data, i.events_last) = ports[2];
    (i.admin_valid, i.admin_address, i.admin_length, i.admin_data, i.admin_last) = ports[3];
}

#[test]
fn random_packets() {
    each_seed(0..24, |seed, rng| {
        let mut nic = Model::new();
        let max_payload = [0, 1, 2, 2, 5][seed as usize % 5];
        let requester = rng.random();
        let busy = [20, 60, 100][seed as usize % 3];
        let ready = [30, 80, 100][seed as usize / 3 % 3];
        nic.inputs.max_payload = max_payload;
        nic.inputs.requester = requester;
        nic.reset();
        let mut clients: [Client; 4] = std::array::from_fn(|_| Client::new(rng));
        let (mut expected, mut actual) = (Memory::new(), Memory::new());
        let (mut bytes, mut written) = (0, 0);
        let (mut collector, mut stable) = (Collector::default(), Stable::default());
        let mut cycles = 0;
        while clients.iter().any(|client| !client.packets.is_empty()) {
            cycles += 1;
            assert!(cycles < 1_000_000, "hangs");
            drive(&mut nic, &mut clients, rng, busy);
            nic.inputs.out_ready = chance(rng, ready).into();
            nic.cycle();
            let out = &nic.outputs;
            let readies = [out.recv_ready, out.send_ready, out.events_ready, out.admin_ready];
            let (valid, moves) = (out.out_valid == 1, nic.inputs.out_ready == 1);
            stable.look(valid, out.out_data, out.out_last == 1, moves);
            if valid
                && moves
                && let Some(tlp) = collector.push(out.out_data, out.out_last == 1)
            {
                written += apply(&mut actual, &tlp, max_payload, requester);
            }
            if out.recv_req_ready == 1 && clients[0].requesting {
                (clients[0].requesting, clients[0].requested) = (false, clients[0].requested + 1);
            }
            for (at, (client, ready)) in clients.iter_mut().zip(readies).enumerate() {
                if ready == 1 && client.offering {
                    let ended = client.beats.len() == 1;
                    assert!(
                        at > 0 || client.requested > 0,
                        "a beat of a packet that was not requested"
                    );
                    bytes += client.moved(&mut expected);
                    client.requested -= usize::from(at == 0 && ended);
                }
            }
        }
        assert_eq!(bytes, written);
        assert!(expected == actual, "memory differs");
    });
}

/// Cycles from the first offer of a packet of `length` bytes on one client to its last beat, and
/// for ten in a row; of the client that requests its packets ahead, or of another one.
fn cycles(length: u16, ahead: bool) -> (u32, u32) {
    let mut nic = Model::new();
    nic.inputs.max_payload = 2;
    nic.inputs.out_ready = 1;
    (nic.inputs.recv_req_valid, nic.inputs.recv_valid) = (ahead.into(), ahead.into());
    (nic.inputs.recv_req_length, nic.inputs.send_length) = (length, length);
    nic.inputs.send_valid = (!ahead).into();
    let (mut first, mut packets, mut beats) = (0, 0, 0);
    for cycle in 1.. {
        nic.cycle();
        beats += u16::from(nic.outputs.recv_ready | nic.outputs.send_ready);
        if beats == length.div_ceil(8) {
            (packets, beats) = (packets + 1, 0);
            if packets == 1 {
                first = cycle;
            }
            if packets == 10 {
                return (first, cycle);
            }
        }
    }
    unreachable!()
}

#[test]
fn cost() {
    // Cut and header: 4 cycles before the first data beat. 4 KiB: eight TLPs of 64 beats, two beats
    // of header each.
    for ahead in [true, false] {
        let short = cycles(8, ahead);
        let (first, ten) = cycles(4096, ahead);
        println!("requested ahead: {ahead}; 8 bytes: {short:?}; 4 KiB: {first}, ten: {ten}");
        // An idle cutter is the send engine's; another client is taken a cycle later.
        let early = u32::from(ahead);
        assert_eq!(short, if ahead { (6, 6 + 9 * 3) } else { (5, 50) });
        assert_eq!(first, 2 + early + 8 * 66);
        assert!(ten <= if ahead { 3 + 80 * 66 } else { 10 * (3 + 8 * 66) });
    }
}
