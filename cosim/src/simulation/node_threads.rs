//! Nodes side by side, each on a thread of its own.
//!
//! The nodes run a stretch of cycles and then meet. A beat takes at least a stretch from one node to
//! another, so no node can see in a stretch what another one does in it, and the run is the same as
//! if the nodes ran one after the other.

use std::thread;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};

use super::network::{SharedNetwork, SharedPort};
use super::{Node, NodeHost};

/// Polls for the next stretch before a node's thread sleeps: some ten microseconds, less than waking
/// it takes.
const SPINS: u32 = 2_000;

/// A stretch for one node.
struct Stretch<H> {
    node: Node<H>,
    now: u64,
    cycles: u64,
}

/// One node's thread.
struct Worker<H> {
    work: Sender<Stretch<H>>,
    done: Receiver<(Node<H>, bool)>,
}

/// The threads of all nodes but the first, which runs on the caller's.
pub(super) struct NodeThreads<H> {
    workers: Vec<Worker<H>>,
}

impl<H> Default for NodeThreads<H> {
    fn default() -> Self {
        Self { workers: Vec::new() }
    }
}

fn receive<T>(from: &Receiver<T>) -> Option<T> {
    for _ in 0..SPINS {
        match from.try_recv() {
            Ok(value) => return Some(value),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => core::hint::spin_loop(),
        }
    }
    from.recv().ok()
}

impl<H: NodeHost + 'static> Worker<H> {
    fn new(number: usize, mut port: SharedPort) -> Self {
        let (work, stretches) = bounded::<Stretch<H>>(1);
        let (results, done) = bounded(1);
        let run = move || {
            while let Some(Stretch { mut node, now, cycles }) = receive(&stretches) {
                let touched = node.run(now, cycles, &mut port);
                if results.send((node, touched)).is_err() {
                    return;
                }
            }
        };
        // The thread ends when `work` is dropped.
        let thread = thread::Builder::new().name(format!("node {number}"));
        thread.spawn(run).expect("a thread for a simulated node");
        Self { work, done }
    }
}

impl<H: NodeHost + 'static> NodeThreads<H> {
    /// Runs all nodes for some cycles from `now`. True if a host was touched.
    ///
    /// # Panics
    /// If a node's thread does.
    pub(super) fn run(
        &mut self,
        nodes: &mut Vec<Node<H>>,
        network: &SharedNetwork,
        now: u64,
        cycles: u64,
    ) -> bool {
        let Some(others) = nodes.len().checked_sub(1) else { return false };
        while self.workers.len() < others {
            let number = self.workers.len() + 1;
            self.workers.push(Worker::new(number, SharedPort::new(network, number)));
        }
        for (worker, node) in self.workers.iter().zip(nodes.drain(1..)) {
            let sent = worker.work.send(Stretch { node, now, cycles });
            assert!(sent.is_ok(), "the thread of a simulated node ended");
        }
        let mut touched = nodes[0].run(now, cycles, &mut SharedPort::new(network, 0));
        for worker in &self.workers {
            let (node, saw) =
                receive(&worker.done).expect("the thread of a simulated node panicked");
            touched |= saw;
            nodes.push(node);
        }
        touched
    }
}
