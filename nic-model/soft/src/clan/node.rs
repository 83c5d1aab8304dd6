//! What all NIC handles of a process share on a node: VIs, connections, memory for inboxes.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use port::clan::{ClanEvent, ClanPeer, ClanPort, EventQueue, Message};
use port::connection::Connections;
use port::sync::{lock, try_lock};
use port::{Error, Result, StopReason};

use super::ending;
use super::engine;
use super::inbox::Inboxes;
use super::link::Link;
use super::net::{Net, STOP};
use super::rdma;
use super::state::Vi;
use crate::random::random_u64;
use crate::via::table::Table;

/// The peer is a process that may wait for a processor, and not a NIC that answers in microseconds.
const TIME_SCALE: u64 = 40;

/// A node of a CLAN network, with VIs on it.
#[derive(Debug)]
pub(super) struct ClanNode {
    pub(super) net: Arc<Net>,
    vis: Table<Vi>,
    control: Mutex<Control>,
    messages: Arc<dyn EventQueue>,
    handles: Arc<()>,
    /// When the connection manager has something to do.
    deadline: AtomicU64,
}

#[derive(Debug)]
struct Control {
    connections: Connections,
    /// Peers by their number here.
    peers: Vec<ClanPeer>,
    numbers: BTreeMap<ClanPeer, u32>,
}

impl Control {
    fn number(&mut self, peer: &ClanPeer) -> u32 {
        if let Some(number) = self.numbers.get(peer) {
            return *number;
        }
        let number = u32::try_from(self.peers.len()).unwrap_or(u32::MAX);
        self.peers.push(peer.clone());
        self.numbers.insert(peer.clone(), number);
        number
    }
}

impl ClanNode {
    pub(super) fn new(port: Arc<dyn ClanPort>) -> Result<Arc<Self>> {
        let messages = port.event_queue()?;
        port.set_message_queue(messages.number())?;
        // An earlier process of this name did not begin with the same.
        let seed = random_u64();
        let (exchange, connection) = ((seed >> 32) as u32, (seed & 0xffff) as u16);
        let connections = Connections::new(exchange, connection).with_time_scale(TIME_SCALE);
        let control = Control { connections, peers: Vec::new(), numbers: BTreeMap::new() };
        Ok(Arc::new(Self {
            net: Arc::new(Net { port, inboxes: Inboxes::default() }),
            vis: Table::of_vis(),
            control: Mutex::new(control),
            messages,
            handles: Arc::default(),
            deadline: AtomicU64::new(0),
        }))
    }

    /// Counts a NIC handle, until it is dropped.
    pub(super) fn add_handle(&self, limit: usize) -> Result<Arc<()>> {
        if Arc::strong_count(&self.handles) > limit {
            return Err(Error::Exhausted { what: "NIC handle", limit });
        }
        Ok(Arc::clone(&self.handles))
    }

    // --- VIs ---

    /// Adds a VI; `make` is given its number.
    pub(super) fn add_vi(&self, make: impl FnOnce(u16) -> Vi) -> Result<Arc<Vi>> {
        self.vis.add(make)
    }

    pub(super) fn vi(&self, number: u16) -> Result<Arc<Vi>> {
        self.vis.get(number)
    }

    pub(super) fn remove_vi(&self, number: u16) {
        self.vis.remove(number);
    }

    // --- messages beside the data path ---

    pub(super) fn with_connections<R>(&self, with: impl FnOnce(&mut Connections) -> R) -> R {
        with(&mut lock(&self.control).connections)
    }

    /// The number of a peer, for the connection manager.
    pub(super) fn number(&self, peer: &ClanPeer) -> u32 {
        lock(&self.control).number(peer)
    }

    pub(super) fn peer(&self, number: u32) -> Option<ClanPeer> {
        lock(&self.control).peers.get(number as usize).cloned()
    }

    /// Runs what is due, unless another thread does.
    pub(super) fn progress(&self) {
        let deadline = self.deadline.load(Ordering::Acquire);
        // Most of the time there is none, and then nobody looks at the clock.
        let is_due = deadline != u64::MAX && deadline <= self.net.port.now_ns();
        if (is_due || self.messages.has_event())
            && let Some(mut control) = try_lock(&self.control)
        {
            let events = self.run_control(&mut control);
            drop(control);
            self.handle(events);
        }
    }

    /// Whether the connection manager has something to do at some time.
    pub(super) fn has_deadline(&self) -> bool {
        self.deadline.load(Ordering::Acquire) != u64::MAX
    }

    /// How long a thread may sleep before the connection manager has something to do.
    pub(super) fn bound(&self, bound_ns: u64) -> u64 {
        let deadline = self.deadline.load(Ordering::Acquire);
        bound_ns.min(deadline.saturating_sub(self.net.port.now_ns()).max(1))
    }

    /// The same, whatever other threads do.
    pub(super) fn run(&self) {
        let mut control = lock(&self.control);
        let events = self.run_control(&mut control);
        drop(control);
        self.handle(events);
    }

    /// Gives what arrived to the connection manager; what is for VIs is returned.
    fn run_control(&self, control: &mut Control) -> Vec<ClanEvent> {
        let mut others = Vec::new();
        let now = self.net.port.now_ns();
        self.take_messages(control, now, &mut others);
        control.connections.on_timer(now);
        let mut unreachable = Vec::new();
        while let Some((number, message)) = control.connections.transmit() {
            let peer = control.peers.get(number as usize);
            let sent = peer.map(|peer| self.net.port.send_message(peer, &message));
            control.connections.transmitted(matches!(sent, Some(Ok(()))));
            if let Some(Err(error @ Error::NotReachable(_))) = sent {
                unreachable.push((number, error));
            }
        }
        if !unreachable.is_empty() {
            // What a node said before it ended.
            self.take_messages(control, now, &mut others);
            for (number, error) in &unreachable {
                control.connections.unreachable(*number, error);
            }
        }
        self.messages.arm();
        let next = control.connections.next_deadline().unwrap_or(u64::MAX);
        self.deadline.store(next, Ordering::Release);
        others
    }

    /// Hands on what has come for the connection manager, and keeps the other events.
    fn take_messages(&self, control: &mut Control, now: u64, others: &mut Vec<ClanEvent>) {
        while let Some(event) = self.messages.poll() {
            match &event {
                ClanEvent::Message { from, message } if message[0] < STOP => {
                    let number = control.number(from);
                    control.connections.receive(now, number, message);
                }
                ClanEvent::NodeLost { host } => {
                    let of_host = |(peer, _): &(&ClanPeer, &u32)| peer.host == *host;
                    let lost = control.numbers.iter().filter(of_host).map(|(_, number)| *number);
                    for number in lost.collect::<Vec<_>>() {
                        control.connections.peer_down(now, number);
                    }
                    others.push(event);
                }
                _ => others.push(event),
            }
        }
    }

    /// What happened to connections.
    fn handle(&self, events: Vec<ClanEvent>) {
        for event in events {
            match event {
                ClanEvent::Message { from, message } => self.message(&from, &message),
                ClanEvent::NodeLost { host } => self.lost(&host),
                ClanEvent::Tripwire { .. } | ClanEvent::Dma { .. } => {}
            }
        }
    }

    /// A message of the VI at the other end of a connection.
    fn message(&self, from: &ClanPeer, message: &Message) {
        let half = |at: usize| u16::from_le_bytes([message[at], message[at + 1]]);
        let Ok(vi) = self.vi(half(2)) else { return };
        let mut state = lock(&vi.state);
        // What was sent before comes first.
        engine::progress(&self.net, &mut state);
        let is_its = |link: &Link| link.peer == *from && link.remote.connection == half(4);
        if !state.link.as_ref().is_some_and(is_its) || state.vi.is_stopped {
            return;
        }
        if message[0] == rdma::QUERY {
            rdma::asked(&self.net, &mut state, message);
        } else if message[0] == rdma::ANSWER {
            rdma::answered(&self.net, &mut state, message);
            engine::progress(&self.net, &mut state);
        } else {
            let reason = match message[1] {
                1 => StopReason::Disconnected,
                _ => StopReason::DescriptorError,
            };
            ending::peer_stopped(&self.net, &mut state, reason);
        }
    }

    fn lost(&self, host: &[u8]) {
        for vi in self.vis.all() {
            let mut state = lock(&vi.state);
            if state.link.as_ref().is_some_and(|link| link.peer.host == host) {
                engine::progress(&self.net, &mut state);
                ending::peer_stopped(&self.net, &mut state, StopReason::ConnectionLost);
            }
        }
    }
}
