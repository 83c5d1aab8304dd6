//! What all NIC handles of a process share on a node: the socket, VIs, connections.
//!
//! Locks, in the order in which they are taken: the receive buffer; the connection manager or a VI or
//! the connections that linger, one at a time. Whoever polls takes what has arrived, for all VIs.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use port::connection::Connections;
use port::sync::{lock, try_lock};
use port::{Error, Result, StopReason};

use super::address::Address;
use super::context::Net;
use super::control::Control;
use super::format::{self, Header, Malformed, Packet, length_of, parse, reset};
use super::socket::BROADCAST;
use super::state::{Lingering, Link, Vi};
use super::wake::ServiceWake;
use super::{arrive, ending, engine};
use crate::via::table::Table;

/// Bytes that the system delivers at once at most.
const RECEIVE_BYTES: usize = 1 << 16;
/// Packets that are taken before the program looks again.
pub(super) const BURST: usize = 64;
/// How long a connection that its VI has left is kept until the peer has everything.
const LINGER_NS: u64 = 2_000_000_000;

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) net: Net,
    pub(super) vis: Table<Vi>,
    control: Mutex<Control>,
    /// When the connection manager has something to do.
    control_at: AtomicU64,
    buffer: Mutex<Box<[u8]>>,
    lingering: Mutex<Vec<Lingering>>,
    lingering_count: AtomicUsize,
    handles: Arc<()>,
    /// Counts the looks of the program's threads, so that the service thread knows whether there are
    /// any.
    pub(super) looks: AtomicU32,
    pub(super) service: ServiceWake,
    /// The service thread waits for sleepers to leave.
    pub(super) service_waits: AtomicBool,
    pub(super) ended: AtomicBool,
}

impl Node {
    pub(super) fn new(net: Net, control: Control) -> super::error::Result<Self> {
        Ok(Self {
            net,
            vis: Table::of_vis(),
            control: Mutex::new(control),
            control_at: AtomicU64::new(u64::MAX),
            buffer: Mutex::new(vec![0; RECEIVE_BYTES].into()),
            lingering: Mutex::default(),
            lingering_count: AtomicUsize::new(0),
            handles: Arc::default(),
            looks: AtomicU32::new(0),
            service: ServiceWake::new()?,
            service_waits: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        })
    }

    /// Counts a NIC handle, until it is dropped.
    pub(super) fn add_handle(&self, limit: usize) -> Result<Arc<()>> {
        if Arc::strong_count(&self.handles) > limit {
            return Err(Error::Exhausted { what: "NIC handle", limit });
        }
        Ok(Arc::clone(&self.handles))
    }

    // --- connection messages ---

    pub(super) fn with_connections<R>(&self, with: impl FnOnce(&mut Connections) -> R) -> R {
        with(&mut lock(&self.control).connections)
    }

    pub(super) fn number(&self, address: Address) -> u32 {
        lock(&self.control).number(address)
    }

    pub(super) fn address(&self, number: u32) -> Option<Address> {
        lock(&self.control).address(number)
    }

    /// The nodes that answer within a time, in order: of a UDP network, of the first hosts at the own
    /// port; of Ethernet, of all.
    pub(super) fn search(&self, time_ns: u64) -> Vec<Address> {
        let own = self.net.socket.own();
        let addresses: Vec<Address> = match own {
            Address::Udp(_) => (0..u8::MAX).map_while(|number| own.of_number(number)).collect(),
            Address::Eth(_) => vec![Address::Eth(BROADCAST)],
        };
        let others = addresses.into_iter().filter(|other| *other != own);
        lock(&self.control).search(&self.net, others);
        let end = self.net.now() + time_ns;
        while self.net.is_present() && self.net.now() < end {
            self.look_at_all();
            std::thread::yield_now();
        }
        let mut found = lock(&self.control).found();
        found.sort();
        found
    }

    fn run_control(&self, now: u64) {
        let at = lock(&self.control).run(&self.net, now);
        self.control_at.store(at, Ordering::Release);
    }

    // --- progress ---

    /// When anything has something to do, at the latest.
    pub(super) fn deadline(&self) -> u64 {
        self.net.deadline().min(self.control_at.load(Ordering::Acquire))
    }

    /// Takes a packet that has arrived, and does what is due, unless another thread does. A program that
    /// looks again and again needs no more, and learns of the packet without another system call.
    #[inline]
    pub(super) fn look(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.progress(1);
    }

    /// The same for all packets that have arrived, or a good part of them.
    #[inline]
    pub(super) fn look_at_all(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.progress(BURST);
    }

    /// The same, of the service thread: up to so many packets.
    #[inline]
    pub(super) fn progress(&self, burst: usize) {
        let Some(mut buffer) = try_lock(&self.buffer) else { return };
        if !self.net.is_present() {
            return;
        }
        let now = self.net.now();
        let mut packets = 0;
        while packets < burst
            && let Some((place, from)) = self.net.socket.receive(&mut buffer)
        {
            packets += 1;
            self.arrived(now, from, &buffer[place]);
        }
        let is_due = self.deadline() <= now;
        if is_due {
            self.run_due(now);
        }
        drop(buffer);
        if packets > 0 || is_due {
            self.net.wakes.wake();
        }
    }

    /// Does what is due now for connection messages, whatever other threads do.
    pub(super) fn run(&self) {
        self.look_at_all();
        if self.net.is_present() {
            self.run_control(self.net.now());
        }
    }

    fn run_due(&self, now: u64) {
        if self.control_at.load(Ordering::Acquire) <= now {
            self.run_control(now);
        }
        if self.net.deadline() > now {
            return;
        }
        self.net.clear_deadline();
        for vi in self.vis.all() {
            let at = vi.deadline.load(Ordering::SeqCst);
            if at <= now {
                vi.run(&self.net, now, |state| {
                    let Some(link) = &mut state.link else { return };
                    if !link.on_timer(&self.net, now) {
                        self.net.counters.timed_out.count();
                        ending::peer_stopped(&self.net, state, StopReason::ConnectionLost);
                    }
                });
            } else {
                self.net.set_deadline(at);
            }
        }
        self.run_lingering(now);
    }

    // --- packets ---

    /// The first of packets that lie in a row, with its bytes and those of the others.
    fn split<'a>(&self, bytes: &'a [u8]) -> Option<(Packet<'a>, &'a [u8], &'a [u8])> {
        let counters = &self.net.counters;
        let version = bytes.first()?;
        let parsed = length_of(bytes).ok_or(Malformed::Other).and_then(|length| {
            let (packet, rest) = bytes.split_at(length);
            parse(packet).map(|parsed| (parsed, packet, rest))
        });
        match parsed {
            Ok(parts) => Some(parts),
            Err(why) => {
                let other = why == Malformed::Version || *version != format::VERSION;
                let counter = if other { &counters.bad_version } else { &counters.malformed };
                counter.count();
                None
            }
        }
    }

    fn arrived(&self, now: u64, from: Address, mut bytes: &[u8]) {
        while let Some((parsed, packet, rest)) = self.split(bytes) {
            self.net.counters.received.count();
            bytes = rest;
            match parsed {
                Packet::Data { header, .. } | Packet::Ack { header, .. } => {
                    bytes = self.connected(now, from, &header, (parsed, packet), rest);
                }
                Packet::Reset { token } => self.reset_by(from, token),
                Packet::Message { envelope, message } => {
                    let mut control = lock(&self.control);
                    let restarted =
                        control.message(&self.net, now, from, (envelope, message), packet);
                    let at = control.run(&self.net, now);
                    self.control_at.store(at, Ordering::Release);
                    drop(control);
                    if restarted {
                        self.lost(from);
                    }
                }
                Packet::Challenge { envelope } => {
                    lock(&self.control).challenge(&self.net, from, envelope, packet);
                }
            }
        }
    }

    /// A packet of a connection, and those behind it that are of the same one. Returns the others.
    #[inline]
    fn connected<'a>(
        &self,
        now: u64,
        from: Address,
        header: &Header,
        (mut parsed, mut packet): (Packet<'a>, &'a [u8]),
        mut rest: &'a [u8],
    ) -> &'a [u8] {
        let is_its = |link: &Link| link.own_token == header.token;
        let mut is_known = false;
        if let Ok(vi) = self.vis.get(header.vi) {
            vi.run(&self.net, now, |state| {
                while let Some(link) = state.link.as_ref().filter(|link| is_its(link)) {
                    is_known = true;
                    if link.peer == from {
                        arrive::packet(&self.net, now, state, &parsed, packet);
                    } else {
                        self.net.counters.foreign.count();
                    }
                    let Some((next, bytes, others)) = length_of(rest)
                        .map(|length| rest.split_at(length))
                        .and_then(|(bytes, others)| Some((parse(bytes).ok()?, bytes, others)))
                    else {
                        return;
                    };
                    match next {
                        Packet::Data { header: of, .. } | Packet::Ack { header: of, .. }
                            if (of.vi, of.token) == (header.vi, header.token) => {}
                        _ => return,
                    }
                    self.net.counters.received.count();
                    (parsed, packet, rest) = (next, bytes, others);
                }
            });
        }
        if !is_known && !self.lingers(now, from, header, &parsed) {
            self.net.counters.unknown.count();
            self.net.socket.send(from, &reset(header.token));
        }
        rest
    }

    /// The peer does not know a connection that this node has named so to it.
    fn reset_by(&self, from: Address, token: u64) {
        let is_its = |link: &Link| link.remote_token == token && link.peer == from;
        let mut lingering = lock(&self.lingering);
        lingering.retain(|lingering| !is_its(&lingering.link));
        self.lingering_count.store(lingering.len(), Ordering::Release);
        drop(lingering);
        for vi in self.vis.all() {
            let its = lock(&vi.state).link.as_ref().is_some_and(is_its);
            if its {
                self.net.counters.reset.count();
                vi.run(&self.net, self.net.now(), |state| {
                    ending::peer_stopped(&self.net, state, StopReason::ConnectionLost);
                });
            }
        }
    }

    /// A node no longer exists.
    fn lost(&self, address: Address) {
        for vi in self.vis.all() {
            vi.run(&self.net, self.net.now(), |state| {
                if state.link.as_ref().is_some_and(|link| link.peer == address) {
                    ending::peer_stopped(&self.net, state, StopReason::ConnectionLost);
                }
            });
        }
    }

    // --- connections that VIs have left ---

    /// Keeps a connection until the peer has everything.
    pub(super) fn linger(&self, vi: u16, mut link: Link) {
        let now = self.net.now();
        link.flush(&self.net, now, true);
        if link.flow.sender.is_empty() || link.is_over {
            return;
        }
        self.net.set_deadline(link.deadline());
        let mut lingering = lock(&self.lingering);
        lingering.push(Lingering { link, vi, until: now + LINGER_NS });
        self.lingering_count.store(lingering.len(), Ordering::Release);
    }

    /// Whether any connection is kept.
    pub(super) fn has_lingering(&self) -> bool {
        self.lingering_count.load(Ordering::Acquire) > 0
    }

    fn lingers(&self, now: u64, from: Address, header: &Header, packet: &Packet<'_>) -> bool {
        if !self.has_lingering() {
            return false;
        }
        let mut lingering = lock(&self.lingering);
        let its = |kept: &Lingering| {
            kept.vi == header.vi && kept.link.own_token == header.token && kept.link.peer == from
        };
        let Some(place) = lingering.iter().position(its) else { return false };
        let link = &mut lingering[place].link;
        link.seen_at = now;
        let bits = if let Packet::Ack { bits, .. } = packet { bits } else { &[][..] };
        link.flow.sender.acknowledged(now, header.ack, bits);
        if header.has(format::flag::STOPPED) {
            link.is_void();
        }
        if matches!(packet, Packet::Data { .. }) || header.has(format::flag::WANTS_ACK) {
            link.flow.receiver.ask_for_ack();
        }
        link.flush(&self.net, now, true);
        if link.flow.sender.is_empty() {
            lingering.swap_remove(place);
            self.lingering_count.store(lingering.len(), Ordering::Release);
        }
        true
    }

    fn run_lingering(&self, now: u64) {
        if !self.has_lingering() {
            return;
        }
        let mut lingering = lock(&self.lingering);
        lingering.retain_mut(|Lingering { link, until, .. }| {
            if now >= *until || !link.on_timer(&self.net, now) {
                return false;
            }
            link.flush(&self.net, now, true);
            self.net.set_deadline(link.deadline().min(*until));
            true
        });
        self.lingering_count.store(lingering.len(), Ordering::Release);
    }
}

impl Vi {
    /// Does something with the VI's state, and then sends what can be sent.
    #[inline]
    pub(super) fn run<R>(
        &self,
        net: &Net,
        now: u64,
        with: impl FnOnce(&mut super::state::State) -> R,
    ) -> R {
        let mut state = lock(&self.state);
        let result = with(&mut state);
        engine::pump(net, now, &mut state);
        let at = state.link.as_ref().map_or(u64::MAX, Link::deadline);
        self.deadline.store(at, Ordering::SeqCst);
        drop(state);
        net.set_deadline(at);
        result
    }
}
