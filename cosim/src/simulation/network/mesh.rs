//! A mesh: a wire between every two nodes. The NIC has one link port; a frame goes
//! to the wire of its destination node, and the frames that arrive on the wires of a node take
//! turns.

use nic_model::device::{Beat, Link as _};
use nic_model::link::{Faults, Side, Wire};
use nic_regs::frame::Type;

use super::Network;

/// A node's end of the network.
#[derive(Clone, Debug, Default)]
struct Port {
    /// Where the frame goes that is being sent: nowhere (Some(None)) if there is no such node.
    sending: Option<Option<usize>>,
    /// From whom the frame comes that is being received.
    receiving: Option<usize>,
    /// Whose turn is next.
    next: usize,
    /// Somebody uses the node.
    used: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Mesh {
    ports: Vec<Port>,
    /// By [`Mesh::wire`]; a node also has one to itself.
    wires: Vec<Wire>,
    busy: bool,
    /// Frames dropped because their source was not the node that sent them.
    forged: u64,
}

impl Mesh {
    /// Every wire has this latency, in cycles, and these faults, each from a seed of its own.
    #[must_use]
    pub fn new(nodes: usize, latency: u64, faults: &Faults) -> Self {
        let count = nodes * (nodes + 1) / 2;
        let wires = (0..count as u64).map(|number| {
            let seed = faults.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            Wire::with_faults(latency, &Faults { seed, ..faults.clone() })
        });
        Self { ports: vec![Port::default(); nodes], wires: wires.collect(), busy: false, forged: 0 }
    }

    /// The wire between two nodes, and the end that is `a`'s when it sends.
    fn wire(&mut self, a: usize, b: usize) -> (&mut Wire, Side) {
        let (low, high) = (a.min(b), a.max(b));
        let side = if a == low { Side::A } else { Side::B };
        (&mut self.wires[high * (high + 1) / 2 + low], side)
    }

    /// Frames dropped because their source was not the node that sent them: a program can write any
    /// number to the NODE register of its NIC, and must not speak for other nodes by it.
    pub(crate) const fn forged(&self) -> u64 {
        self.forged
    }
}

impl Network for Mesh {
    fn ready(&self, _port: usize, _now: u64) -> bool {
        true
    }

    fn send(&mut self, port: usize, now: u64, beat: Beat) {
        let to = match self.ports[port].sending {
            Some(to) => to,
            None => {
                // The first beat of the header: the type in byte 1, the source in byte 4, the
                // destination in byte 5.
                let bytes = beat.data.to_le_bytes();
                let forged = usize::from(bytes[4]) != port;
                self.forged += u64::from(forged);
                let to = Some(usize::from(bytes[5])).filter(|to| !forged && *to < self.ports.len());
                let used = to.is_some_and(|to| self.ports[to].used);
                let waits = bytes[1] == Type::Syn as u8 && !used;
                self.busy |= bytes[1] != Type::Ack as u8 && !waits;
                self.ports[port].sending = Some(to);
                to
            }
        };
        if let Some(to) = to {
            let (wire, side) = self.wire(port, to);
            wire.end(side).send(now, beat);
        }
        if beat.last {
            self.ports[port].sending = None;
        }
    }

    fn receive(&mut self, port: usize, now: u64) -> Option<Beat> {
        let nodes = self.ports.len();
        let Port { receiving, next, .. } = self.ports[port];
        let candidates = match receiving {
            Some(from) => from..from + 1,
            None => next..next + nodes,
        };
        for from in candidates {
            let from = from % nodes;
            let (wire, side) = self.wire(from, port);
            let Some(beat) = wire.end(side.other()).receive(now) else { continue };
            let port = &mut self.ports[port];
            port.receiving = (!beat.last).then_some(from);
            port.next = (from + 1) % nodes;
            return Some(beat);
        }
        None
    }

    /// A node that opens a channel to one that nobody uses has to wait until somebody does, and only
    /// then is there something to wait for.
    fn take_busy(&mut self) -> bool {
        core::mem::take(&mut self.busy)
    }

    fn set_used(&mut self, port: usize, used: bool) {
        self.ports[port].used = used;
    }

    fn cut(&mut self, port: usize, now: u64) {
        if self.ports[port].sending.is_some() {
            self.send(port, now, Beat { data: 0, last: true });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(from: u64, to: u64, body: u64) -> [Beat; 2] {
        let data = (Type::Data as u64) << 8 | from << 32 | to << 40;
        [Beat { data, last: false }, Beat { data: body, last: true }]
    }

    /// What arrives at a node within some cycles: the second beats of the frames.
    fn arrivals(mesh: &mut Mesh, node: usize) -> Vec<u64> {
        let beats: Vec<_> = (0..40).filter_map(|now| mesh.receive(node, now)).collect();
        beats
            .chunks(2)
            .map(|frame| {
                assert!(frame.len() == 2 && !frame[0].last && frame[1].last, "{frame:?}");
                frame[1].data
            })
            .collect()
    }

    #[test]
    fn frames_go_to_their_destination_whole() {
        let mut mesh = Mesh::new(3, 5, &Faults::default());
        for from in 0..3_u64 {
            for to in 0..4_u64 {
                for (cycle, beat) in (0_u64..).zip(frame(from, to, 10 * from + to)) {
                    let node = usize::try_from(from).unwrap();
                    mesh.send(node, 2 * to + cycle, beat);
                }
            }
        }
        assert!(mesh.take_busy() && !mesh.take_busy());
        for to in 0..3 {
            let mut got = arrivals(&mut mesh, to);
            got.sort_unstable();
            let to = to as u64;
            assert_eq!(got, [to, 10 + to, 20 + to], "also from itself, none from nowhere");
        }
    }

    #[test]
    fn frames_with_the_source_of_another_node_are_dropped() {
        let mut mesh = Mesh::new(3, 1, &Faults::default());
        for (now, beat) in (0..).zip(frame(1, 0, 7).into_iter().chain(frame(2, 0, 8))) {
            mesh.send(2, now, beat);
        }
        assert_eq!((arrivals(&mut mesh, 0), mesh.forged()), (vec![8], 1));
    }

    #[test]
    fn a_channel_to_nobody_is_no_work() {
        let mut mesh = Mesh::new(2, 1, &Faults::default());
        let syn = Beat { data: (Type::Syn as u64) << 8 | 1 << 40, last: true };
        mesh.send(0, 0, syn);
        assert!(!mesh.take_busy());
        mesh.set_used(1, true);
        mesh.send(0, 1, syn);
        assert!(mesh.take_busy());
        assert_eq!((0..9).filter_map(|now| mesh.receive(1, now)).count(), 2, "both arrive");
    }

    #[test]
    fn acknowledgements_are_no_work_and_cut_frames_end() {
        let mut mesh = Mesh::new(2, 1, &Faults::default());
        let ack = Beat { data: (Type::Ack as u64) << 8 | 1 << 40, last: false };
        mesh.send(0, 0, ack);
        assert!(!mesh.take_busy());
        mesh.cut(0, 1);
        mesh.cut(0, 2);
        assert_eq!(arrivals(&mut mesh, 1), [0]);
    }

    #[test]
    fn each_pair_has_faults_of_its_own() {
        let faults = Faults { seed: 3, loss: 0.5, ..Faults::default() };
        let mut mesh = Mesh::new(3, 1, &faults);
        let mut patterns = Vec::new();
        for to in [1_u64, 2] {
            for body in 0..20 {
                for (cycle, beat) in (0_u64..).zip(frame(0, to, body)) {
                    mesh.send(0, 2 * body + cycle, beat);
                }
            }
            let node = usize::try_from(to).unwrap();
            let beats: Vec<_> = (0..100).filter_map(|now| mesh.receive(node, now)).collect();
            patterns.push(beats.iter().filter(|b| b.last).map(|b| b.data).collect::<Vec<_>>());
        }
        assert!(
            patterns[0] != patterns[1] && patterns.iter().all(|got| (1..20).contains(&got.len()))
        );
    }
}
