//! Cycles: of one frame through the block, and of streams of frames. The figures are exact where
//! nothing random is in the way; a change is meant or a mistake.

use crate::network::Network;
use crate::node::Frame;
use crate::peer::Single;
use nic_regs::counter::Counter;
use nic_regs::frame::{Header, Type, flag};

fn data(peer: u8, serial: u32, length: u16, sequenced: bool) -> Frame {
    let flags = if sequenced { flag::SEQUENCED } else { 0 };
    let header = Header {
        kind: Type::Data as u8,
        length,
        flags,
        word: serial,
        dst_vi: 78,
        src_vi: 77,
        ..Header::default()
    };
    let payload = (0..header.payload_beats()).map(|beat| u64::from(serial) << 16 | beat as u64);
    Frame { peer, header, payload: payload.collect() }
}

/// Frames on every route, one route after the other for each sender; cycles from when each route has delivered a
/// quarter of them until each has delivered all, and so many frames on a route meanwhile.
fn stream(network: &mut Network, routes: &[(u8, u8)], frames: u32, length: u16) -> (u64, u64) {
    for serial in 0..frames {
        for &(from, to) in routes {
            let frame = data(to, serial, length, true);
            network.nodes[usize::from(from)].outbox.push_back(frame);
        }
    }
    let before: Vec<usize> = network.nodes.iter().map(|node| node.inbox.len()).collect();
    let reach = |network: &mut Network, each: usize| {
        network.until(2_000_000, "a stream", |network| {
            routes.iter().all(|&(_, to)| {
                let to = usize::from(to);
                let all = routes.iter().filter(|route| usize::from(route.1) == to).count() * each;
                network.nodes[to].inbox.len() - before[to] >= all
            })
        })
    };
    let early = frames as usize / 4;
    reach(network, early);
    let cycles = reach(network, frames as usize);
    for node in &network.nodes {
        assert_eq!(node.count(Counter::FramesRetransmitted), 0);
        assert_eq!(node.count(Counter::DropStaging), 0);
    }
    (cycles, u64::from(frames) - early as u64)
}

fn pair(latency: u64, seed: u64) -> Network {
    let mut network = Network::new(2, seed);
    network.wire = true;
    network.latency = latency;
    for node in &mut network.nodes {
        node.model.inputs.retry_timeout = 20_000;
    }
    network.open(0, 1, 64);
    stream(&mut network, &[(0, 1), (1, 0)], 1, 8);
    network.run(1_000);
    network
}

/// Tenths of a cycle for each frame.
fn tenths((cycles, frames): (u64, u64)) -> u64 {
    cycles * 10 / frames
}

/// From question to answer, from commit to the first beat: the first frame of a channel, and a
/// later one.
#[test]
fn question_and_first_beat() {
    for sequenced in [true, false] {
        let mut single = Single::opened(40);
        for _ in 0..2 {
            single.0.run(1_000);
            single.0.nodes[0].outbox.push_back(data(1, 0, 8, sequenced));
            let network = &mut single.0;
            // The step that asks, then two cycles.
            let ask = |network: &Network| network.nodes[0].model.outputs.pool_ask_done != 0;
            assert_eq!(network.until(100, "an answer", ask), 1 + 2);
            let commit = |network: &Network| network.nodes[0].model.inputs.pool_commit_valid != 0;
            network.until(100, "a commit", commit);
            let beat = |network: &Network| network.nodes[0].model.outputs.tx_valid != 0;
            assert_eq!(network.until(100, "a beat", beat), 6);
        }
    }
}

/// Eight bytes, with acknowledgements and credits on the way back: tenths of a cycle for a frame of
/// one direction. With 250 cycles of latency the 64 credits are the bound: a frame for each of
/// them, in a round trip of 570 to 660 cycles.
#[test]
fn small_streams() {
    let one_way: &[(u8, u8)] = &[(0, 1)];
    let both_ways = &[(0, 1), (1, 0)];
    for (routes, latency, most) in [
        (one_way, 0, 60),
        (one_way, 100, 60),
        (one_way, 250, 104),
        (both_ways, 0, 66),
        (both_ways, 100, 80),
        (both_ways, 250, 90),
    ] {
        let mut network = pair(latency, 41);
        let acks =
            |network: &Network| network.nodes.iter().map(|n| n.count(Counter::AcksSent)).sum();
        let before: u64 = acks(&network);
        let each = tenths(stream(&mut network, routes, 1_000, 8));
        assert!(each <= most, "{routes:?}, latency {latency}: {each}");
        // Acknowledgements ride along, or cover many frames.
        let acks = acks(&network) - before;
        assert!(acks <= 120, "{routes:?}, latency {latency}: {acks} Acks");
    }
}

/// The same for one node with four peers.
#[test]
fn many_peers() {
    let mut network = Network::new(5, 42);
    let out: Vec<(u8, u8)> = (1..5).map(|peer| (0, peer)).collect();
    let back: Vec<(u8, u8)> = (1..5).map(|peer| (peer, 0)).collect();
    for &(node, peer) in &out {
        network.open(node, peer, 64);
    }
    let both = [out.clone(), back.clone()].concat();
    stream(&mut network, &both, 1, 8);
    for (routes, most) in [(out, 72), (back, 51), (both, 89)] {
        network.run(1_000);
        let (cycles, frames) = stream(&mut network, &routes, 300, 8);
        let each = tenths((cycles, frames * 4));
        assert!(each <= most, "{routes:?}: {each}");
    }
}

/// 4 KiB: share of the link's beats in use, in thousandths. Four frames are in flight between the
/// first beat out and the return of their units, and in the pool until they are acknowledged.
#[test]
fn large_streams() {
    let one_way: &[(u8, u8)] = &[(0, 1)];
    let both_ways = &[(0, 1), (1, 0)];
    for (routes, latency, least) in [
        (one_way, 0, 995),
        (one_way, 250, 995),
        (one_way, 400, 965),
        (both_ways, 0, 980),
        (both_ways, 100, 975),
        (both_ways, 250, 975),
    ] {
        let mut network = pair(latency, 43);
        let (cycles, frames) = stream(&mut network, routes, 60, 4096);
        let share = 516_000 * frames / cycles;
        assert!(share >= least, "{routes:?}, latency {latency}: {share}");
    }
}
