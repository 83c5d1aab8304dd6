//! Many VIs of all levels at once, in both directions, over a bad link: every message arrives once,
//! whole, in order.

use std::collections::VecDeque;

use host_driver::peer::Epochs;
use nic_model::link::Faults;
use vipl::{Cq, Queue, Reliability, Vi, ViAttributes, VipReturn};

use tests::{Buffer, DeviceKind, LONG, Node, Pair, Setup, on_every_kind, pattern};

const VIS: usize = 12;
const MESSAGES: usize = 300;
const LONGEST: u32 = 9000;

/// One direction of a connection.
struct Flow {
    from: Vi,
    to: Vi,
    /// Posted receives and the messages that they must get.
    recvs: VecDeque<(Buffer, Vec<u8>)>,
    sends: VecDeque<Buffer>,
}

fn vi_on(node: &Node, level: Reliability, cq: &Cq) -> Vi {
    node.nic.create_vi(ViAttributes::new(level, node.tag), Some(cq), Some(cq)).unwrap()
}

/// The usual faults of the wire.
pub(crate) fn bad_link(kind: DeviceKind, seed: u64) -> Setup {
    let faults =
        Faults { loss: 0.01, corrupt: 0.01, duplicate: 0.01, cut: 0.01, ..Faults::default() };
    Setup::with_faults(kind, seed, faults)
}

/// All messages, as described; gives the cycles that they took.
pub(crate) fn run(setup: &Setup) -> u64 {
    let pair = Pair::with(setup);
    exchange(&pair, setup.simulation.seed);
    pair.simulation.now()
}

/// All messages, with the seed of their order and lengths.
pub(crate) fn exchange(pair: &Pair, seed: u64) {
    let cqs = [pair.a.nic.create_cq(8).unwrap(), pair.b.nic.create_cq(8).unwrap()];
    let mut flows = Vec::new();
    for i in 0..VIS {
        let level = [Reliability::Delivery, Reliability::Reception][i % 2];
        let (a, b) = (vi_on(&pair.a, level, &cqs[0]), vi_on(&pair.b, level, &cqs[1]));
        pair.connect(&a, &b);
        for (from, to) in [(a.clone(), b.clone()), (b, a)] {
            flows.push(Flow { from, to, recvs: VecDeque::new(), sends: VecDeque::new() });
        }
    }
    let mut random = Epochs::new(seed);
    let mut posted = 0;
    let mut done = 0;
    while done < MESSAGES {
        assert!(pair.simulation.now() < 20_000_000, "stuck after {done} messages, seed {seed}");
        if posted < MESSAGES && posted - done < 40 {
            let pick = random.next_u32() as usize % flows.len();
            let nodes =
                if pick.is_multiple_of(2) { [&pair.a, &pair.b] } else { [&pair.b, &pair.a] };
            let flow = &mut flows[pick];
            let data = pattern((random.next_u32() % LONGEST) as usize, posted);
            let (send, recv) =
                (Buffer::new(nodes[0], data.len()), Buffer::new(nodes[1], data.len()));
            send.set(&data);
            flow.to.post_recv(&recv.descriptor).unwrap();
            flow.from.post_send(&send.descriptor).unwrap();
            flow.recvs.push_back((recv, data));
            flow.sends.push_back(send);
            posted += 1;
        }
        for (side, cq) in cqs.iter().enumerate() {
            let entry = if posted == MESSAGES { cq.wait(LONG / 200) } else { cq.done() };
            let Ok(entry) = entry else {
                assert!(matches!(entry, Err(VipReturn::NotDone | VipReturn::Timeout)));
                pair.simulation.run(100);
                continue;
            };
            let descriptor = entry.vi.done(entry.queue).unwrap();
            // Numbers are the same on both nodes, so the node gives the direction.
            let sending = entry.queue == Queue::Send;
            let direction = if sending { side } else { 1 - side };
            let of_vi =
                |flow: &&mut Flow| *(if sending { &flow.from } else { &flow.to }) == entry.vi;
            let flow = flows.iter_mut().skip(direction).step_by(2).find(of_vi).unwrap();
            if sending {
                let send = flow.sends.pop_front().unwrap();
                assert_eq!(send.descriptor.address(), descriptor.address());
                forget(if side == 0 { &pair.a } else { &pair.b }, &send);
            } else {
                let (recv, data) = flow.recvs.pop_front().unwrap();
                assert!(recv.data() == data, "seed {seed}");
                forget(if side == 0 { &pair.a } else { &pair.b }, &recv);
                done += 1;
            }
        }
    }
    assert_eq!((pair.a.errors(), pair.b.errors()), (vec![], vec![]));
    pair.assert_no_stray_access();
}

fn forget(node: &Node, buffer: &Buffer) {
    node.nic.deregister_mem(&buffer.region).unwrap();
}

fn many_vis_over_a_bad_link(kind: DeviceKind) {
    for seed in 1..=4 {
        run(&bad_link(kind, seed));
    }
    assert_eq!(run(&bad_link(kind, 1)), run(&bad_link(kind, 1)));
}

on_every_kind! {
    many_vis_over_a_bad_link,
}
