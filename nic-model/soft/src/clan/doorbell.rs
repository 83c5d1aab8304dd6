//! The doorbells of a VI: where the work of a VI begins.

use std::sync::Arc;

use port::Queue;
use port::doorbell::{Post, Ring};
use port::sync::lock;

use super::net::Net;
use super::state::Vi;
use super::{direct, engine};

/// The doorbell of one of a VI's queues.
#[derive(Debug)]
pub(super) struct ViDoorbell {
    pub(super) net: Arc<Net>,
    pub(super) vi: Arc<Vi>,
    pub(super) queue: Queue,
}

impl Ring for ViDoorbell {
    fn ring(&self, post: &Post) {
        // A child after fork shares the memory of its parent's connections.
        if !self.net.port.is_present() {
            return;
        }
        let mut state = lock(&self.vi.state);
        match self.queue {
            Queue::Send => engine::post_send(&self.net, &mut state, post),
            Queue::Recv => engine::post_recv(&self.net, &mut state, post),
        }
    }

    fn send_now(&self, data: &[u8], immediate: Option<u32>) -> bool {
        self.queue == Queue::Send
            && self.net.port.is_present()
            && direct::send(&self.net, &mut lock(&self.vi.state), data, immediate)
    }

    fn poll(&self) {
        if !self.net.port.is_present() {
            return;
        }
        engine::progress(&self.net, &mut lock(&self.vi.state));
    }
}
