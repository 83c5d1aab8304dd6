//! Many connections directly on [`ClanPort`], without VIA: the server of section 4.3 of the CLAN paper
//! that has a protocol of its own.
//!
//! Each connection is a message queue in each direction, in the one region of each node. A tripwire is
//! set on the write pointer of each queue, and all of them are events of one queue: whoever receives
//! takes the next event, and then the message of its connection.

use std::sync::Arc;

use port::clan::message_queue::{Layout, Receiver, Sender};
use port::clan::{AccessRights, ClanEvent, ClanPort, EventQueue, Remote, Tripwire};

use super::choice::Choice;
use super::node::Node;
use super::{Offered, Transport, poll};
use crate::Failure;

/// Slots of a connection. Its one message needs one; with a few, the read pointer is not stored for
/// each message.
const COUNT: usize = 8;
/// Bytes of a connection in a region: a line for each pointer, and the slots.
const AREA: usize = 128 + 64 * COUNT;

const fn layout(connection: usize) -> Layout {
    let area = AREA * connection;
    Layout { slots: area + 128, count: COUNT, written: Some(area), read: area + 64 }
}

struct Connection {
    sender: Sender,
    receiver: Receiver,
}

struct Clan {
    to: Box<dyn Remote>,
    connections: Vec<Connection>,
    /// What the tripwires report: a tag is a connection.
    events: Arc<dyn EventQueue>,
    choice: Choice,
    _port: Arc<dyn ClanPort>,
}

/// A node whose tripwires are set, and the queue of their events. It is not open to anybody yet, so no
/// message comes before its tripwire.
fn node(connections: usize) -> Result<(Node, Arc<dyn EventQueue>), Failure> {
    let node = Node::new(AREA * connections)?;
    let events = node.port.event_queue()?;
    for connection in 0..connections {
        node.port.set_tripwire(&Tripwire {
            region: node.region,
            offset: (AREA * connection) as u64,
            on: AccessRights::WRITE,
            once: false,
            queue: events.number(),
            tag: connection as u64,
        })?;
    }
    Ok((node, events))
}

impl Clan {
    fn new(
        node: Node,
        events: Arc<dyn EventQueue>,
        to: Box<dyn Remote>,
        choice: Choice,
        connections: usize,
    ) -> Self {
        let connection = |at| Connection {
            sender: Sender::new(layout(at), node.memory.clone(), 0),
            receiver: Receiver::new(layout(at), node.memory.clone(), 0),
        };
        let connections = (0..connections).map(connection).collect();
        Self { to, connections, events, choice, _port: node.port }
    }
}

pub(super) fn offer(connections: usize) -> Result<Offered, Failure> {
    let (node, events) = node(connections)?;
    let choice = Choice::new(connections, false);
    Ok(node.offer(move |node, to| Clan::new(node, events, to, choice, connections)))
}

pub(super) fn join(connections: usize, place: &str) -> Result<Box<dyn Transport>, Failure> {
    let (node, events) = node(connections)?;
    let to = node.join(place)?;
    let choice = Choice::new(connections, true);
    Ok(Box::new(Clan::new(node, events, to, choice, connections)))
}

impl Transport for Clan {
    fn send(&mut self, _length: usize, stamp: u32) -> Result<(), Failure> {
        let sender = &mut self.connections[self.choice.next()?].sender;
        poll(|| Ok((sender.room() > 0).then_some(())))?;
        let sent = sender.send(&mut *self.to, &[stamp.into(), 0, 0, 0, 0, 0, 0]);
        sent.map_err(|error| format!("the message queue: {error:?}").into())
    }

    fn receive(&mut self, length: usize) -> Result<u32, Failure> {
        poll(|| self.poll_receive(length))
    }

    #[inline]
    fn poll_receive(&mut self, _length: usize) -> Result<Option<u32>, Failure> {
        let Some(ClanEvent::Tripwire { tag }) = self.events.poll() else { return Ok(None) };
        let at = usize::try_from(tag)?;
        let connection = self.connections.get_mut(at).ok_or("an event of no connection")?;
        // An event may be late: its message was taken already.
        let Some(body) = connection.receiver.peek() else { return Ok(None) };
        connection.receiver.take();
        let returned = connection.receiver.give_back(&mut *self.to);
        returned.map_err(|error| format!("the message queue: {error:?}"))?;
        self.choice.received(at);
        Ok(Some(u32::try_from(body[0] & u64::from(u32::MAX))?))
    }
}
