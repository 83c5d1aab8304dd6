//! Connection messages between nodes: who is known, and what the connection manager sends.

use std::collections::BTreeMap;

use port::connection::{Connections, Message};

use super::address::Address;
use super::auth::{Key, Taken};
use super::context::Net;
use super::format::{Envelope, code_of};
use crate::random::random_u64;

/// The peer is a process that may wait for a processor, and not a NIC that answers in microseconds.
const TIME_SCALE: u64 = 40;
/// Nodes that are remembered. One that is forgotten is asked for its instance again.
const PEERS_MAX: usize = 4_096;
/// Nodes that a search finds at most.
const SEARCH_MAX: usize = 256;
/// Messages that wait for the instance of a node.
const WAITING_MAX: usize = 8;

/// Another node.
#[derive(Debug)]
struct Peer {
    address: Address,
    /// Its instance, once it is known.
    instance: Option<u64>,
    /// Whose messages were taken, and which.
    taken_from: u64,
    taken: Taken,
    /// What is sent when its instance is known.
    waiting: Vec<Message>,
}

/// The connection manager, and the nodes that it exchanges messages with.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) connections: Connections,
    key: Key,
    instance: u64,
    counter: u64,
    peers: BTreeMap<u32, Peer>,
    numbers: BTreeMap<Address, u32>,
    last_number: u32,
    /// Nodes that have answered a search.
    found: Vec<Address>,
}

impl Control {
    pub(super) fn new(key: Key) -> Self {
        let seed = random_u64();
        let (exchange, connection) = ((seed >> 32) as u32, (seed & 0xffff) as u16);
        Self {
            connections: Connections::new(exchange, connection).with_time_scale(TIME_SCALE),
            key,
            instance: random_u64() | 1,
            counter: 0,
            peers: BTreeMap::new(),
            numbers: BTreeMap::new(),
            last_number: 0,
            found: Vec::new(),
        }
    }

    /// The number of a node, for the connection manager.
    pub(super) fn number(&mut self, address: Address) -> u32 {
        if let Some(number) = self.numbers.get(&address) {
            return *number;
        }
        if self.peers.len() >= PEERS_MAX
            && let Some((_, oldest)) = self.peers.pop_first()
        {
            self.numbers.remove(&oldest.address);
        }
        self.last_number += 1;
        let (taken, waiting) = (Taken::default(), Vec::new());
        let peer = Peer { address, instance: None, taken_from: 0, taken, waiting };
        self.peers.insert(self.last_number, peer);
        self.numbers.insert(address, self.last_number);
        self.last_number
    }

    pub(super) fn address(&self, number: u32) -> Option<Address> {
        self.peers.get(&number).map(|peer| peer.address)
    }

    /// A message of a node arrived. True if it restarted: what was connected with it is no more.
    pub(super) fn message(
        &mut self,
        net: &Net,
        now: u64,
        from: Address,
        (envelope, message): (Envelope, &Message),
        bytes: &[u8],
    ) -> bool {
        if !self.is_authentic(bytes) {
            net.counters.bad_code.count();
            return false;
        }
        if envelope.to != self.instance {
            // It does not know this node, or knows an earlier one. Whoever can receive the answer can
            // send the message again.
            let answer = Envelope { to: envelope.from, from: self.instance, counter: 0 };
            let mut packet = answer.challenge();
            self.sign(&mut packet);
            net.socket.send(from, &packet);
            return false;
        }
        let number = self.number(from);
        let Some(peer) = self.peers.get_mut(&number) else { return false };
        let has_restarted = peer.taken_from != envelope.from && peer.taken_from != 0;
        if peer.taken_from != envelope.from {
            (peer.taken_from, peer.taken) = (envelope.from, Taken::default());
            peer.instance = Some(envelope.from);
        }
        if !peer.taken.take(envelope.counter) {
            net.counters.replayed.count();
            return false;
        }
        if has_restarted {
            self.connections.peer_down(now, number);
        }
        self.connections.receive(now, number, message);
        has_restarted
    }

    /// A node says which instance it is.
    pub(super) fn challenge(&mut self, net: &Net, from: Address, envelope: Envelope, bytes: &[u8]) {
        if !self.is_authentic(bytes) || envelope.to != self.instance {
            return net.counters.bad_code.count();
        }
        if !self.found.contains(&from) && self.found.len() < SEARCH_MAX {
            self.found.push(from);
        }
        // One that this node has never sent a message to is none of its business.
        let Some(number) = self.numbers.get(&from).copied() else { return };
        let Some(peer) = self.peers.get_mut(&number) else { return };
        peer.instance = Some(envelope.from);
        for message in core::mem::take(&mut peer.waiting) {
            self.send(net, number, &message);
        }
    }

    /// Asks nodes whether they are there: each that is answers with a challenge.
    pub(super) fn search(&mut self, net: &Net, addresses: impl Iterator<Item = Address>) {
        self.found.clear();
        for address in addresses {
            self.counter += 1;
            let envelope = Envelope { to: 0, from: self.instance, counter: self.counter };
            let mut packet = envelope.message(&[0; size_of::<Message>()]);
            self.sign(&mut packet);
            net.counters.sent.count();
            net.socket.send(address, &packet);
        }
    }

    /// Nodes that have answered since the search began.
    pub(super) fn found(&mut self) -> Vec<Address> {
        core::mem::take(&mut self.found)
    }

    fn is_authentic(&self, bytes: &[u8]) -> bool {
        code_of(bytes).is_some_and(|(message, code)| self.key.is_code(message, code))
    }

    fn sign(&self, packet: &mut [u8]) {
        if let Some((message, code)) = packet.split_last_chunk_mut() {
            *code = self.key.code(message);
        }
    }

    fn send(&mut self, net: &Net, number: u32, message: &Message) -> bool {
        let Some(peer) = self.peers.get_mut(&number) else { return false };
        let (address, instance) = (peer.address, peer.instance);
        if instance.is_none() && peer.waiting.len() < WAITING_MAX {
            peer.waiting.push(*message);
        }
        self.counter += 1;
        let to = instance.unwrap_or(0);
        let envelope = Envelope { to, from: self.instance, counter: self.counter };
        let mut packet = envelope.message(message);
        self.sign(&mut packet);
        net.counters.sent.count();
        net.socket.send(address, &packet);
        true
    }

    /// Runs the connection manager's timer, and sends what it has to send. Returns when it has
    /// something to do again.
    pub(super) fn run(&mut self, net: &Net, now: u64) -> u64 {
        self.connections.on_timer(now);
        while let Some((number, message)) = self.connections.transmit() {
            let sent = self.send(net, number, &message);
            self.connections.transmitted(sent);
        }
        self.connections.next_deadline().unwrap_or(u64::MAX)
    }
}
