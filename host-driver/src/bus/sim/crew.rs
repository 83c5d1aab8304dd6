//! Nodes side by side, each on a thread of its own.
//!
//! The nodes run a stretch of cycles and then meet. No beat is faster from one node to another than
//! a stretch, so none of them can see in a stretch what another one does in it, and what happens is
//! the same as if they ran one after the other.

use std::thread;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};

use super::Node;

/// Turns of a loop that looks for the next stretch before its thread sleeps: some ten microseconds,
/// less than waking up takes.
const SPINS: u32 = 2_000;

/// A stretch for one node.
struct Stretch {
    node: Node,
    now: u64,
    cycles: u64,
}

/// One node's thread.
struct Hand {
    work: Sender<Stretch>,
    done: Receiver<(Node, bool)>,
}

/// The threads of all nodes but the first, which runs on the caller's.
#[derive(Default)]
pub(super) struct Crew {
    hands: Vec<Hand>,
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

impl Hand {
    fn new(number: usize) -> Self {
        let (work, stretches) = bounded::<Stretch>(1);
        let (results, done) = bounded(1);
        let run = move || {
            while let Some(Stretch { mut node, now, cycles }) = receive(&stretches) {
                let touched = node.run(now, cycles);
                if results.send((node, touched)).is_err() {
                    return;
                }
            }
        };
        // It ends with `work`.
        let thread = thread::Builder::new().name(format!("node {number}"));
        thread.spawn(run).expect("a thread for a simulated node");
        Self { work, done }
    }
}

impl Crew {
    /// Runs all nodes for some cycles from `now`. True if a host saw something small.
    ///
    /// # Panics
    /// If a node's thread does.
    pub(super) fn run(&mut self, nodes: &mut Vec<Node>, now: u64, cycles: u64) -> bool {
        let Some(others) = nodes.len().checked_sub(1) else { return false };
        while self.hands.len() < others {
            self.hands.push(Hand::new(self.hands.len() + 1));
        }
        for (hand, node) in self.hands.iter().zip(nodes.drain(1..)) {
            let sent = hand.work.send(Stretch { node, now, cycles });
            assert!(sent.is_ok(), "the thread of a simulated node is gone");
        }
        let mut touched = nodes[0].run(now, cycles);
        for hand in &self.hands {
            let (node, saw) = receive(&hand.done).expect("the thread of a simulated node panicked");
            touched |= saw;
            nodes.push(node);
        }
        touched
    }
}
