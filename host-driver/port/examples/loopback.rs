//! A whole port: its VIs are connected with each other, and a send is copied to the peer's receive
//! descriptor when it is posted. A message that finds no receive is dropped, as VIA's Unreliable
//! Delivery allows. `cargo run -p port --example loopback` sends a message through VIPL over it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use port::desc::{CONTROL_BYTES, DataSegment, LENGTH_OFFSET, SEGMENT_BYTES, STATUS_OFFSET, status};
use port::doorbell::{Post, Ring};
use port::sync::lock;
use port::*;

/// The port.
#[derive(Debug, Default)]
struct Loopback {
    attributes: PortAttributes,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Registered memory; a handle's index leads here.
    regions: Vec<DmaMemory>,
    vis: Vec<Vi>,
    listeners: Vec<NetAddress>,
    requests: Vec<Request>,
}

#[derive(Debug, Default)]
struct Vi {
    peer: Option<u16>,
    receives: VecDeque<Post>,
}

#[derive(Debug)]
struct Request {
    to: NetAddress,
    incoming: Incoming,
    offered: bool,
    progress: Progress,
}

/// The doorbell of a queue.
#[derive(Debug)]
struct Bell(Arc<Mutex<State>>, u16, Queue);

/// A place in a descriptor, from its `u64` in [`port::desc`].
fn offset(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a descriptor is short")
}

impl State {
    /// The memory that lies at an address of a region.
    fn memory(&self, handle: Handle, address: u64, bytes: usize) -> DmaMemory {
        let region = &self.regions[usize::from(handle.index())];
        region.slice(offset(address - region.address()), bytes).expect("inside its region")
    }

    /// The memory of a descriptor's data segments.
    fn segments(&self, post: &Post) -> Vec<DmaMemory> {
        let count = post.segments as usize;
        let (start, each) = (offset(CONTROL_BYTES), offset(SEGMENT_BYTES));
        let bytes = self
            .memory(post.region, post.address, start + each * count)
            .to_vec(start, each * count);
        let segments = bytes.as_chunks().0.iter().map(DataSegment::from_bytes);
        segments.map(|s| self.memory(Handle(s.handle), s.address, s.length as usize)).collect()
    }

    /// Completes a descriptor: its length, and then its status, which the program polls.
    fn complete(&self, post: &Post, length: usize, operation: u32) {
        let descriptor = self.memory(post.region, post.address, offset(CONTROL_BYTES));
        descriptor
            .store_u32(offset(LENGTH_OFFSET), u32::try_from(length).expect("a short message"));
        descriptor.store_u32(offset(STATUS_OFFSET), status::DONE | operation);
    }
}

impl Ring for Bell {
    fn ring(&self, post: &Post) {
        let Self(state, vi, queue) = self;
        let mut state = lock(state);
        if *queue == Queue::Recv {
            return state.vis[usize::from(*vi)].receives.push_back(*post);
        }
        let data: Vec<u8> = state
            .segments(post)
            .iter()
            .flat_map(|segment| segment.to_vec(0, segment.len()))
            .collect();
        let peer = state.vis[usize::from(*vi)].peer.map(usize::from);
        if let Some(receive) = peer.and_then(|peer| state.vis[peer].receives.pop_front()) {
            let mut rest = &data[..];
            for segment in state.segments(&receive) {
                let (front, behind) = rest.split_at(segment.len().min(rest.len()));
                segment.copy_from(0, front);
                rest = behind;
            }
            state.complete(&receive, data.len() - rest.len(), status::OP_RECEIVE);
        }
        state.complete(post, data.len(), status::OP_SEND);
    }
}

impl ViPort for Loopback {
    fn attributes(&self) -> &PortAttributes {
        &self.attributes
    }
    fn close(&self) {}
}

impl MemoryOps for Loopback {
    fn create_tag(&self) -> Result<u16> {
        Ok(1)
    }
    fn destroy_tag(&self, _: u16) {}
    fn register(&self, memory: &DmaMemory, _: u16, _: RdmaAccess) -> Result<Handle> {
        let mut state = lock(&self.state);
        state.regions.push(memory.clone());
        Ok(Handle::new(u16::try_from(state.regions.len() - 1).expect("few regions"), 1))
    }
    fn deregister(&self, _: Handle) -> Result<()> {
        Ok(())
    }
    fn set_region(&self, _: Handle, _: &DmaMemory, _: u16, _: RdmaAccess) -> Result<()> {
        Ok(())
    }
}

impl ViOps for Loopback {
    fn create_vi(&self, _: ViSettings) -> Result<u16> {
        let mut state = lock(&self.state);
        state.vis.push(Vi::default());
        Ok(u16::try_from(state.vis.len() - 1).expect("few VIs"))
    }
    fn set_vi(&self, vi: u16, _: ViSettings) -> Result<()> {
        self.reset_vi(vi)
    }
    fn destroy_vi(&self, vi: u16) -> Result<()> {
        self.reset_vi(vi)
    }
    fn reset_vi(&self, vi: u16) -> Result<()> {
        lock(&self.state).vis[usize::from(vi)] = Vi::default();
        Ok(())
    }
    fn vi_stopped(&self, _: u16) -> Result<bool> {
        Ok(false)
    }
    fn doorbell(&self, vi: u16, queue: Queue) -> Doorbell {
        Doorbell::Call(Arc::new(Bell(Arc::clone(&self.state), vi, queue)))
    }
    fn next_event(&self) -> Option<PortEvent> {
        None
    }
}

impl ConnectionOps for Loopback {
    fn listen(&self, local: &NetAddress) -> Result<u32> {
        let mut state = lock(&self.state);
        state.listeners.push(local.clone());
        Ok(u32::try_from(state.listeners.len() - 1).expect("few listeners"))
    }
    fn listen_poll(&self, listener: u32) -> Result<Option<Incoming>> {
        let State { listeners, requests, .. } = &mut *lock(&self.state);
        let local = &listeners[listener as usize];
        let found = requests.iter_mut().find(|request| !request.offered && request.to == *local);
        Ok(found.map(|request| {
            request.offered = true;
            request.incoming.clone()
        }))
    }
    fn listen_stop(&self, _: u32) {}
    fn connect(
        &self,
        attributes: RemoteAttributes,
        from: &NetAddress,
        to: &NetAddress,
        _bound_ns: u64,
    ) -> Result<u32> {
        let requests = &mut lock(&self.state).requests;
        let (id, from, to) = (requests.len() as u64, from.clone(), to.clone());
        let (incoming, progress) = (Incoming { id, from, attributes }, Progress::Pending);
        requests.push(Request { to, incoming, offered: false, progress });
        Ok(u32::try_from(id).expect("few requests"))
    }
    fn connect_poll(&self, request: u32) -> Result<Progress> {
        Ok(lock(&self.state).requests[request as usize].progress)
    }
    fn connect_cancel(&self, request: u32) {
        lock(&self.state).requests[request as usize].offered = true;
    }
    fn accept(&self, incoming: &Incoming, local: RemoteAttributes) -> Result<()> {
        let mut state = lock(&self.state);
        let remote = incoming.attributes.vi;
        state.vis[usize::from(local.vi)].peer = Some(remote);
        state.vis[usize::from(remote)].peer = Some(local.vi);
        state.requests[offset(incoming.id)].progress = Progress::Established(local);
        Ok(())
    }
    fn accept_poll(&self, incoming: &Incoming) -> Progress {
        Progress::Established(incoming.attributes)
    }
    fn reject(&self, incoming: &Incoming) {
        lock(&self.state).requests[offset(incoming.id)].progress = Progress::Rejected;
    }
}

// No completion queues; time is the computer's, and nothing wakes sleepers.
impl CompletionOps for Loopback {}
impl HostOps for Loopback {}
impl WaitOps for Loopback {}

fn message_through_vipl() -> vipl::Result<Vec<u8>> {
    use vipl::{INFINITE, MemAttributes, Nic, ViAttributes};
    let attributes = PortAttributes { max_transfer: MAX_TRANSFER_BYTES, ..Default::default() };
    let nic = Nic::open(Arc::new(Loopback { attributes, ..Loopback::default() }));
    let tag = nic.create_ptag()?;
    let settings = ViAttributes::new(Reliability::Unreliable, tag);
    let (client, server) =
        (nic.create_vi(settings, None, None)?, nic.create_vi(settings, None, None)?);
    let region = nic.register_mem(&DmaMemory::new(4096)?, MemAttributes::new(tag))?;
    let service = NetAddress::new(b"here", b"echo");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| nic.connect_wait(&service, INFINITE)?.accept(&server));
        client.connect_request(&NetAddress::new(b"here", b""), &service, INFINITE)?;
        waiting.join().expect("the server")
    })?;
    let [receive, send] = [(0, 1024), (64, 2048)].map(|(at, data)| {
        let descriptor = region.descriptor(at, 1)?;
        descriptor.prepare(&[region.segment(data, 11)], None).map(|()| descriptor)
    });
    let (receive, send) = (receive?, send?);
    region.memory().copy_from(2048, b"hello, VIA!");
    server.post_recv(&receive)?;
    client.post_send(&send)?;
    let sent = client.send_wait(INFINITE).expect("sent");
    let received = server.recv_wait(INFINITE).expect("received");
    assert_eq!((sent.length(), received.length()), (11, 11));
    Ok(region.memory().to_vec(1024, 11))
}

#[expect(clippy::print_stdout, reason = "an example")]
fn main() {
    let message = message_through_vipl().expect("a message through VIPL");
    println!("{}", String::from_utf8_lossy(&message));
}

#[test]
fn a_message_crosses_the_loopback_port() {
    assert_eq!(message_through_vipl().unwrap(), b"hello, VIA!");
}
