//! The doorbells of a VI: where the work of a VI begins.

use std::sync::Arc;

use port::Queue;
use port::doorbell::{Post, Ring};

use super::engine;
use super::node::Node;
use super::state::Vi;

/// The doorbell of one of a VI's queues.
#[derive(Debug)]
pub(super) struct ViDoorbell {
    pub(super) node: Arc<Node>,
    pub(super) vi: Arc<Vi>,
    pub(super) queue: Queue,
}

impl Ring for ViDoorbell {
    fn ring(&self, post: &Post) {
        let net = &self.node.net;
        // A child after fork has none of its parent's connections.
        if !net.is_present() {
            return;
        }
        match self.queue {
            Queue::Send => {
                self.vi.run(net, net.now(), |state| engine::post_send(state, post));
                net.wakes.wake();
            }
            Queue::Recv => engine::post_recv(&mut port::sync::lock(&self.vi.state), post),
        }
    }

    fn poll(&self) {
        self.node.look();
    }
}
