//! The bare distributed message queue, without VIA on it: what VIPL on `shm:` is a layer over.

use std::sync::Arc;

use port::clan::message_queue::{Layout, Receiver, Sender};
use port::clan::{ClanPort, Remote};
use port::memory::PAGE_BYTES;

use super::node::Node;
use super::{Offered, Transport, poll};
use crate::Failure;

/// Bytes of a message: what goes with its flags into a cache line.
pub(super) const BODY: usize = 56;
const COUNT: usize = 256;
const LAYOUT: Layout = Layout { slots: PAGE_BYTES, count: COUNT, written: Some(0), read: 64 };
const BYTES: usize = PAGE_BYTES + 64 * COUNT;

struct Queue {
    to: Box<dyn Remote>,
    sender: Sender,
    receiver: Receiver,
    _port: Arc<dyn ClanPort>,
}

impl Queue {
    fn new(node: Node, to: Box<dyn Remote>) -> Self {
        let sender = Sender::new(LAYOUT, node.memory.clone(), 0);
        let receiver = Receiver::new(LAYOUT, node.memory, 0);
        Self { to, sender, receiver, _port: node.port }
    }
}

pub(super) fn offer() -> Result<Offered, Failure> {
    Ok(Node::new(BYTES)?.offer(Queue::new))
}

pub(super) fn join(place: &str) -> Result<Box<dyn Transport>, Failure> {
    let node = Node::new(BYTES)?;
    let to = node.join(place)?;
    Ok(Box::new(Queue::new(node, to)))
}

impl Transport for Queue {
    fn send(&mut self, _length: usize, stamp: u32) -> Result<(), Failure> {
        poll(|| Ok((self.sender.room() > 0).then_some(())))?;
        let sent = self.sender.send(&mut *self.to, &[stamp.into(), 0, 0, 0, 0, 0, 0]);
        sent.map_err(|error| format!("the message queue: {error:?}").into())
    }

    fn receive(&mut self, length: usize) -> Result<u32, Failure> {
        poll(|| self.poll_receive(length))
    }

    #[inline]
    fn poll_receive(&mut self, _length: usize) -> Result<Option<u32>, Failure> {
        let Some(body) = self.receiver.peek() else { return Ok(None) };
        self.receiver.take();
        let returned = self.receiver.give_back(&mut *self.to);
        returned.map_err(|error| format!("the message queue: {error:?}"))?;
        Ok(Some(u32::try_from(body[0] & u64::from(u32::MAX))?))
    }
}
