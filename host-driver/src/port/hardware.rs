//! A port on a NIC: one domain (doorbell page) of it.

mod peer;
mod queue;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use nic_regs::admin::PeerState;
use nic_regs::doorbell::Token;
use nic_regs::limits::ABI;
use nic_regs::tpt::Handle;
use nic_regs::vi::{State, rdma};

use super::{
    CompletionQueue, Incoming, NetAddress, PortAttributes, PortEvent, PortVi, Progress,
    RemoteAttributes, ViPort, node_address,
};
use crate::admin::ViSetup;
use crate::bus::{ThreadSeat, Wait};
use crate::connection::ConnectState;
use crate::dma::DmaMemory;
use crate::doorbell::DoorbellPage;
use crate::error::{Error, Result};
use crate::nic::Nic;
use crate::sync::{lock, lock_relaxed};

/// Bound of 'busy' answers: control frames that are still owed leave within a retransmission or
/// two.
const BUSY_BOUND_NS: u64 = 20_000_000;

#[derive(Debug)]
struct Request {
    vi: u16,
    connection: u16,
    ends_at: u64,
}

/// One domain of a NIC.
#[derive(Debug)]
pub struct HardwarePort {
    domain: u8,
    doorbell: DoorbellPage,
    attributes: PortAttributes,
    /// Rings of the completion queues, at their bus addresses: the device writes them until it was
    /// told not to, whoever has let go of the queue.
    rings: Mutex<BTreeMap<u16, (u64, DmaMemory)>>,
    /// Held while a VI or a completion queue is created, changed or destroyed, so that a number is
    /// free again exactly when the device has no object under it. May be held across `relax`.
    changing: Mutex<()>,
    requests: Mutex<BTreeMap<u32, Request>>,
    peers: peer::Requests,
    /// Behind everything that has its bus: who has the NIC last gives the device back.
    nic: Arc<Nic>,
}

impl HardwarePort {
    /// Opens a port on a NIC; each is a domain of its own.
    ///
    /// # Errors
    /// No domain left.
    pub fn open(nic: Arc<Nic>) -> Result<Arc<Self>> {
        let number = nic.domains.take(0)?;
        let domain = u8::try_from(number)
            .map_err(|_| Error::BadArgument { what: "domain", value: number.into() })?;
        let doorbell = DoorbellPage::new(Arc::clone(&nic.bus), domain);
        let capabilities = nic.capabilities;
        let attributes = PortAttributes {
            name: format!("viaduct node {}", nic.node),
            hardware_version: ABI.into(),
            host_address: node_address(nic.node).to_vec(),
            vis: capabilities.vis.into(),
            regions: capabilities.regions.into(),
            queues: u32::from(capabilities.event_queues).saturating_sub(2),
            queue_entries: 1 << queue::LOG2_MAX,
            segments: capabilities.segments.into(),
            max_transfer: capabilities.max_transfer,
            native_mtu: capabilities.link_payload.into(),
            tags: (1 << 16) - 1,
            push: capabilities.push,
            rdma_write: capabilities.rdma_write,
            rdma_read: capabilities.rdma_read,
        };
        let (rings, requests) = (Mutex::default(), Mutex::default());
        let (peers, changing) = (peer::Requests::default(), Mutex::default());
        Ok(Arc::new(Self { nic, domain, doorbell, attributes, rings, changing, requests, peers }))
    }

    /// The NIC below.
    #[must_use]
    pub const fn nic(&self) -> &Arc<Nic> {
        &self.nic
    }

    /// The domain (doorbell page).
    #[must_use]
    pub const fn domain(&self) -> u8 {
        self.domain
    }

    /// Repeats a command while the device answers 'busy'.
    fn retry(&self, what: &'static str, vi: u16, command: impl Fn() -> Result<()>) -> Result<()> {
        let end = self.nic.bus.now_ns() + BUSY_BOUND_NS * self.nic.bus.slowdown();
        loop {
            match command() {
                Err(error) if error.is_busy() && self.nic.bus.now_ns() < end => {
                    self.nic.bus.relax(Wait::bounded(what, vi.into()));
                }
                result => return result,
            }
        }
    }

    /// Waits until no other thread creates, changes or destroys a VI or a queue of this port.
    fn change(&self) -> MutexGuard<'_, ()> {
        lock_relaxed(&self.changing, &*self.nic.bus, "a change of a VI or of a queue")
    }

    /// Fails once the card was found absent.
    fn check_presence(&self) -> Result<()> {
        self.nic.presence.check(&*self.nic.bus)
    }

    /// What the device is told of a VI.
    fn vi_setup(&self, vi: PortVi) -> Result<ViSetup> {
        for queue in [vi.send_queue, vi.recv_queue].into_iter().flatten() {
            self.nic.queues.check(queue, self.domain)?;
        }
        Ok(ViSetup {
            domain: self.domain,
            reliability: vi.reliability,
            tag: vi.tag,
            send_queue: vi.send_queue,
            recv_queue: vi.recv_queue,
            max_transfer: vi.max_transfer,
            allows: rdma_bits(vi.rdma_write, vi.rdma_read),
        })
    }

    /// Wants the channel to the node of `remote`, and gives the node.
    fn reach(&self, remote: &NetAddress) -> Result<u8> {
        self.check_presence()?;
        let not_reachable = Error::NotReachable { address: remote.host.clone() };
        let peers = self.nic.capabilities.peers;
        let node = remote.node().filter(|node| *node < peers).ok_or(not_reachable)?;
        let mut control = self.nic.control();
        if control.peers.state(node) == PeerState::Closed {
            control.peers.want(&self.nic.admin, node)?;
        }
        Ok(node)
    }

    /// Starts a request for a connection.
    fn request(
        &self,
        local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        bound_ns: u64,
        peer: bool,
    ) -> Result<u32> {
        self.nic.vis.check(local.vi, self.domain)?;
        let node = self.reach(remote)?;
        let now = self.nic.bus.now_ns();
        let mut control = self.nic.control();
        let started = control.connections.connect(now, node, local, from, remote, peer);
        let (exchange, connection) = started;
        let request = Request { vi: local.vi, connection, ends_at: now.saturating_add(bound_ns) };
        lock(&self.requests).insert(exchange, request);
        self.nic.run(&mut control);
        Ok(exchange)
    }

    /// Ends a request whose time is over or which failed.
    fn end_request(&self, exchange: u32) {
        if lock(&self.requests).remove(&exchange).is_some() {
            let mut control = self.nic.control();
            control.connections.connect_cancel(exchange);
            self.nic.run(&mut control);
        }
    }
}

/// As in [`nic_regs::vi::rdma`].
const fn rdma_bits(write: bool, read: bool) -> u32 {
    (if write { rdma::WRITE } else { 0 }) | (if read { rdma::READ } else { 0 })
}

impl ViPort for HardwarePort {
    fn attributes(&self) -> &PortAttributes {
        &self.attributes
    }

    fn create_tag(&self) -> Result<u16> {
        self.nic.tags.take(self.domain)
    }

    fn destroy_tag(&self, tag: u16) {
        if self.nic.tags.owner(tag) == Some(self.domain) {
            self.nic.tags.give(tag);
        }
    }

    fn register(&self, memory: &DmaMemory, tag: u16, rights: u8) -> Result<Handle> {
        let nic = &self.nic;
        nic.regions.register(&nic.admin, memory, self.domain, tag, rights)
    }

    fn deregister(&self, handle: Handle) -> Result<()> {
        let nic = &self.nic;
        nic.regions.deregister(&nic.admin, handle, self.domain)
    }

    fn set_region(&self, handle: Handle, memory: &DmaMemory, tag: u16, rights: u8) -> Result<()> {
        let nic = &self.nic;
        nic.regions.change(&nic.admin, handle, memory, self.domain, tag, rights)
    }

    fn create_queue(&self, entries: u32) -> Result<Arc<dyn CompletionQueue>> {
        queue::create(self, entries)
    }

    fn resize_queue(&self, queue: u16, entries: u32) -> Result<Arc<dyn CompletionQueue>> {
        queue::resize(self, queue, entries)
    }

    fn destroy_queue(&self, queue: u16) -> Result<()> {
        queue::destroy(self, queue)
    }

    fn create_vi(&self, vi: PortVi) -> Result<u16> {
        let _changing = self.change();
        let setup = self.vi_setup(vi)?;
        let number = self.nic.vis.take(self.domain)?;
        let created = self.nic.admin.vi_create(number, setup);
        created.inspect_err(|_| self.nic.vis.give(number)).map(|()| number)
    }

    fn set_vi(&self, vi: u16, attributes: PortVi) -> Result<()> {
        let _changing = self.change();
        let setup = self.vi_setup(attributes)?;
        self.reset_vi(vi)?;
        self.retry("ViDestroy", vi, || self.nic.admin.vi_destroy(vi))?;
        self.nic.admin.vi_create(vi, setup)
    }

    fn destroy_vi(&self, vi: u16) -> Result<()> {
        let _changing = self.change();
        self.nic.vis.check(vi, self.domain)?;
        self.retry("ViDestroy", vi, || self.nic.admin.vi_destroy(vi))?;
        self.nic.vis.give(vi);
        Ok(())
    }

    fn reset_vi(&self, vi: u16) -> Result<()> {
        self.nic.vis.check(vi, self.domain)?;
        self.nic.admin.vi_disconnect(vi)?;
        // What the device reported before the fence is of the old connection.
        let mut control = self.nic.control();
        self.nic.run(&mut control);
        drop(control);
        self.nic.events[usize::from(self.domain)].forget(vi);
        Ok(())
    }

    fn vi_stopped(&self, vi: u16) -> Result<bool> {
        self.nic.vis.check(vi, self.domain)?;
        Ok(self.nic.admin.vi_query(vi)? & 0xf == State::Error as u32)
    }

    fn post(&self, token: Token) {
        self.doorbell.ring(token);
    }

    fn post_with(&self, token: Token, data: &[u8], immediate: Option<u32>) {
        if self.attributes.push {
            self.doorbell.push(token, data, immediate);
        } else {
            self.doorbell.ring(token);
        }
    }

    fn doorbells(&self) -> Option<DoorbellPage> {
        Some(self.doorbell.clone())
    }

    fn next_event(&self) -> Option<PortEvent> {
        self.nic.progress();
        self.nic.events[usize::from(self.domain)].pop()
    }

    fn listen(&self, local: &NetAddress) -> Result<u32> {
        let mut control = self.nic.control();
        let listener = control.connections.listen(self.nic.bus.now_ns(), local);
        self.nic.run(&mut control);
        Ok(listener)
    }

    fn listen_poll(&self, listener: u32) -> Result<Option<Incoming>> {
        self.nic.progress();
        self.check_presence()?;
        Ok(self.nic.control().connections.listen_poll(self.nic.bus.now_ns(), listener))
    }

    fn listen_stop(&self, listener: u32) {
        let mut control = self.nic.control();
        control.connections.listen_stop(self.nic.bus.now_ns(), listener);
        self.nic.run(&mut control);
    }

    fn connect(
        &self,
        local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        bound_ns: u64,
    ) -> Result<u32> {
        self.request(local, from, remote, bound_ns, false)
    }

    fn connect_poll(&self, exchange: u32) -> Result<Progress> {
        self.nic.progress();
        let request = lock(&self.requests)
            .get(&exchange)
            .map(|request| (request.vi, request.connection, request.ends_at));
        let Some((vi, connection, ends_at)) = request else { return Ok(Progress::Cancelled) };
        if let Err(absent) = self.check_presence() {
            lock(&self.requests).remove(&exchange);
            return Err(absent);
        }
        let state = self.nic.control().connections.connect_state(exchange);
        let (node, remote) = match state {
            ConnectState::Pending if self.nic.bus.now_ns() >= ends_at => {
                self.end_request(exchange);
                return Ok(Progress::Cancelled);
            }
            ConnectState::Pending => return Ok(Progress::Pending),
            ConnectState::Ended(progress) => {
                lock(&self.requests).remove(&exchange);
                return Ok(progress);
            }
            ConnectState::Unreachable(node) => {
                lock(&self.requests).remove(&exchange);
                return Err(Error::NoEcho { node });
            }
            ConnectState::Accepted(node, remote) => (node, remote),
        };
        if remote.connection != connection {
            self.end_request(exchange);
            return Ok(Progress::Cancelled);
        }
        let allows = rdma_bits(remote.rdma_write, remote.rdma_read);
        let connect = || self.nic.admin.vi_connect(vi, node, remote.vi, connection, allows);
        if let Err(error) = self.retry("ViConnect", vi, connect) {
            self.end_request(exchange);
            return if error.is_peer_down() { Ok(Progress::Cancelled) } else { Err(error) };
        }
        let mut control = self.nic.control();
        // The device also connects a VI to a closed peer, where it would wait for ever. If the
        // channel went down before, the event of that is here by now and has voided the answer; if
        // it goes down later, the VI stops.
        self.nic.run(&mut control);
        let confirmed = control.connections.confirm(self.nic.bus.now_ns(), exchange);
        self.nic.run(&mut control);
        drop(control);
        if !confirmed {
            lock(&self.requests).remove(&exchange);
            self.reset_vi(vi)?;
            return Ok(Progress::Cancelled);
        }
        // Until the acceptor says that it knows.
        Ok(Progress::Pending)
    }

    fn connect_cancel(&self, exchange: u32) {
        self.end_request(exchange);
    }

    fn accept(&self, incoming: &Incoming, local: RemoteAttributes) -> Result<()> {
        self.nic.vis.check(local.vi, self.domain)?;
        let (node, remote) = (incoming.exchange.0, incoming.attributes);
        let allows = rdma_bits(remote.rdma_write, remote.rdma_read);
        let (vi, connection) = (local.vi, remote.connection);
        let connect = || self.nic.admin.vi_connect(vi, node, remote.vi, connection, allows);
        self.retry("ViConnect", local.vi, connect)?;
        let mut control = self.nic.control();
        // A channel that went down before the VI was connected voids the request; see
        // `connect_poll`.
        self.nic.run(&mut control);
        let now = self.nic.bus.now_ns();
        let accepted = control.connections.accept(now, incoming.exchange, local);
        self.nic.run(&mut control);
        drop(control);
        if accepted.is_err() {
            self.reset_vi(local.vi)?;
        }
        accepted
    }

    fn accept_poll(&self, incoming: &Incoming) -> Progress {
        self.nic.progress();
        self.nic.control().connections.accept_state(incoming.exchange)
    }

    fn reject(&self, incoming: &Incoming) {
        let mut control = self.nic.control();
        control.connections.reject(self.nic.bus.now_ns(), incoming.exchange);
        self.nic.run(&mut control);
    }

    fn peer_connect(
        &self,
        local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        bound_ns: u64,
    ) -> Result<u32> {
        peer::connect(self, local, from, remote, bound_ns)
    }

    fn peer_poll(&self, request: u32) -> Result<Progress> {
        peer::poll(self, request)
    }

    fn peer_cancel(&self, request: u32) {
        peer::cancel(self, request);
    }

    fn discover(&self) -> Result<Vec<NetAddress>> {
        let nodes = self.nic.discover()?;
        Ok(nodes.into_iter().map(|node| NetAddress::of_node(node, &[])).collect())
    }

    fn wake_count(&self) -> u64 {
        self.nic.wake_count()
    }

    fn sleep(&self, seen: u64, bound_ns: u64, wait: Wait) {
        self.nic.sleep(seen, bound_ns, wait);
    }

    fn wake(&self) {
        self.nic.wake();
    }

    fn thread_seat(&self, name: &str) -> Box<dyn ThreadSeat> {
        self.nic.bus.thread_seat(name)
    }

    fn relax(&self, wait: Wait) {
        self.nic.bus.relax(wait);
    }

    fn now_ns(&self) -> u64 {
        self.nic.bus.now_ns()
    }

    fn close(&self) {
        self.peers.all().into_iter().for_each(|request| peer::cancel(self, request));
        let requests: Vec<u32> = lock(&self.requests).keys().copied().collect();
        requests.into_iter().for_each(|exchange| self.end_request(exchange));
        // A device that refuses here keeps the object until its reset; the numbers then stay taken.
        for vi in self.nic.vis.of_domain(self.domain) {
            let _ = self.reset_vi(vi).and_then(|()| self.destroy_vi(vi));
        }
        for queue in self.nic.queues.of_domain(self.domain) {
            let _ = self.destroy_queue(queue);
        }
        for handle in self.nic.regions.of_domain(self.domain) {
            let _ = self.deregister(handle);
        }
        for tag in self.nic.tags.of_domain(self.domain) {
            self.nic.tags.give(tag);
        }
    }
}

impl Drop for HardwarePort {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.close();
        }
        self.nic.domains.give(self.domain.into());
    }
}
