//! VIA on a network whose other end writes anything it likes: words of queues and cookies that no peer
//! that keeps the rules writes. The good end stays within its receives' buffers, and goes on with
//! others.

mod support;

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use port::clan::{
    AccessRights, ClanAttributes, ClanPeer, ClanPort, Cookie, DmaError, DmaQueue, EventQueue,
    Message, RegionNumber, Remote, Tripwire, TripwireNumber,
};
use port::{DmaMemory, Result, Wait, WaitOps};
use soft_nic::clan::ViaNode;
use soft_nic::shm::{ShmNode, ShmPort};
use vipl::{
    Completion, Descriptor, Extensions, MemAttributes, NetAddress, Nic, Region, Reliability, Vi,
    ViAttributes, ViState, VipReturn, Waiting,
};

/// Numbers that look like chance (SplitMix64).
#[derive(Debug)]
struct Chance(AtomicU64);

impl Chance {
    fn next(&self) -> u64 {
        let mut z = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Whether this is one of so many.
    fn one_of(&self, many: u64) -> bool {
        self.next().is_multiple_of(many)
    }

    /// A word, changed in a way that is more likely to be understood than any other word.
    fn change(&self, word: u64) -> u64 {
        match self.next() % 5 {
            0 => word ^ 1 << (self.next() % 64),
            1 => word ^ (self.next() & 0xffff) << (16 * (self.next() % 4)),
            2 => word.wrapping_add(self.next() % 3).wrapping_sub(1),
            3 => self.next() % 16,
            _ => self.next(),
        }
    }
}

/// A port whose stores and messages are not always what its user means.
#[derive(Debug)]
struct Hostile {
    port: ShmPort,
    chance: Arc<Chance>,
    /// One of so many stores is another one.
    rate: u64,
}

#[derive(Debug)]
struct HostileRemote {
    remote: Box<dyn Remote>,
    chance: Arc<Chance>,
    rate: u64,
}

impl Remote for HostileRemote {
    fn length(&self) -> u64 {
        self.remote.length()
    }

    fn is_mapped(&self) -> bool {
        self.remote.is_mapped()
    }

    fn duplicate(&self) -> Box<dyn Remote> {
        let (remote, chance) = (self.remote.duplicate(), Arc::clone(&self.chance));
        Box::new(Self { remote, chance, rate: self.rate })
    }

    fn store(&mut self, offset: u64, words: &[u64]) -> core::result::Result<(), DmaError> {
        let mut words = words.to_vec();
        let mut offset = offset;
        if self.chance.one_of(self.rate) {
            let at = usize::try_from(self.chance.next()).unwrap_or(0) % words.len();
            words[at] = self.chance.change(words[at]);
        }
        if self.chance.one_of(8 * self.rate) {
            offset = self.chance.next() % self.length() / 8 * 8;
        }
        if self.chance.one_of(5 * self.rate) {
            return Ok(());
        }
        let _ = self.remote.store(offset, &words);
        Ok(())
    }

    fn write_part(
        &mut self,
        offset: u64,
        source: &DmaMemory,
        start: usize,
        length: usize,
    ) -> core::result::Result<(), DmaError> {
        self.remote.write_part(offset, source, start, length)
    }

    fn write_bytes(&mut self, offset: u64, bytes: &[u8]) -> core::result::Result<(), DmaError> {
        self.remote.write_bytes(offset, bytes)
    }

    fn read(
        &mut self,
        offset: u64,
        target: &DmaMemory,
        bound_ns: u64,
    ) -> core::result::Result<(), DmaError> {
        self.remote.read(offset, target, bound_ns)
    }
}

impl WaitOps for Hostile {
    fn wake_count(&self) -> u64 {
        self.port.wake_count()
    }

    fn sleep(&self, seen: u64, bound_ns: u64, wait: Wait) {
        self.port.sleep(seen, bound_ns, wait);
    }

    fn wake(&self) {
        self.port.wake();
    }

    fn relax(&self, wait: Wait) {
        self.port.relax(wait);
    }
}

impl ClanPort for Hostile {
    fn attributes(&self) -> &ClanAttributes {
        self.port.attributes()
    }

    fn allocate(&self, length: usize) -> Result<DmaMemory> {
        self.port.allocate(length)
    }

    fn register(&self, memory: &DmaMemory) -> Result<RegionNumber> {
        self.port.register(memory)
    }

    fn deregister(&self, region: RegionNumber) -> Result<()> {
        self.port.deregister(region)
    }

    fn open(&self, region: RegionNumber, to: &ClanPeer, rights: AccessRights) -> Result<Cookie> {
        self.port.open(region, to, rights)
    }

    fn revoke(&self, cookie: Cookie) -> Result<()> {
        self.port.revoke(cookie)
    }

    fn attach(&self, owner: &ClanPeer, cookie: Cookie) -> Result<Box<dyn Remote>> {
        let (remote, chance) = (self.port.attach(owner, cookie)?, Arc::clone(&self.chance));
        Ok(Box::new(HostileRemote { remote, chance, rate: self.rate }))
    }

    fn dma_queue(&self, queue: u16) -> Result<Box<dyn DmaQueue>> {
        self.port.dma_queue(queue)
    }

    fn event_queue(&self) -> Result<Arc<dyn EventQueue>> {
        self.port.event_queue()
    }

    fn destroy_event_queue(&self, queue: u16) -> Result<()> {
        self.port.destroy_event_queue(queue)
    }

    fn set_message_queue(&self, queue: u16) -> Result<()> {
        self.port.set_message_queue(queue)
    }

    fn set_tripwire(&self, tripwire: &Tripwire) -> Result<TripwireNumber> {
        self.port.set_tripwire(tripwire)
    }

    fn clear_tripwire(&self, tripwire: TripwireNumber) -> Result<()> {
        self.port.clear_tripwire(tripwire)
    }

    fn send_message(&self, to: &ClanPeer, message: &Message) -> Result<()> {
        let mut message = *message;
        if self.chance.one_of(10) {
            let at = usize::try_from(self.chance.next()).unwrap_or(0) % message.len();
            message[at] = self.chance.next().to_le_bytes()[0];
        }
        self.port.send_message(to, &message)
    }

    fn discover(&self) -> Result<Vec<Vec<u8>>> {
        self.port.discover()
    }

    fn host_of_name(&self, name: &str) -> Option<Vec<u8>> {
        self.port.host_of_name(name)
    }

    fn name_of_host(&self, host: &[u8]) -> Option<String> {
        self.port.name_of_host(host)
    }

    fn close(&self) {
        self.port.close();
    }
}

/// Bytes of a buffer, and of the gap behind each that nobody may write.
const BUFFER: usize = 30_000;
const GAP: usize = 2_768;
const PLACES: usize = 8;
const DATA: usize = 4096;
const MEMORY: usize = DATA + PLACES * (BUFFER + GAP);
const UNTOUCHED: u8 = 0xa5;

struct End {
    nic: Nic,
    memory: DmaMemory,
    region: Region,
    attributes: ViAttributes,
}

impl End {
    fn new(port: Arc<dyn ClanPort>) -> Self {
        let nic = Nic::open_with(ViaNode::new(port).unwrap().port().unwrap(), Waiting::Poll);
        let tag = nic.create_ptag().unwrap();
        let memory = DmaMemory::new(MEMORY).unwrap();
        memory.slice(DATA, MEMORY - DATA).unwrap().fill(UNTOUCHED);
        let attributes = MemAttributes {
            enable_rdma_write: false,
            enable_rdma_read: false,
            ..MemAttributes::new(tag)
        };
        let region = nic.register_mem(&memory, attributes).unwrap();
        let attributes = ViAttributes::new(Reliability::Delivery, tag);
        Self { nic, memory, region, attributes }
    }

    fn vi(&self, extensions: Extensions) -> Vi {
        let vi = self.nic.create_vi(self.attributes, None, None).unwrap();
        vi.set_extensions(extensions).unwrap();
        vi
    }

    fn descriptor(&self, place: usize, length: usize) -> Descriptor {
        let descriptor = self.region.descriptor(64 * place, 1).unwrap();
        let segment =
            self.region.segment(DATA + place * (BUFFER + GAP), u32::try_from(length).unwrap());
        descriptor.prepare(&[segment], None).unwrap();
        descriptor
    }

    fn host(&self) -> Vec<u8> {
        self.nic.query().local_address
    }

    /// Whether nobody wrote beside the buffers.
    fn is_intact(&self) -> bool {
        let gaps = (0..PLACES).map(|place| DATA + place * (BUFFER + GAP) + BUFFER);
        gaps.map(|gap| self.memory.to_vec(gap, GAP))
            .all(|gap| gap.iter().all(|byte| *byte == UNTOUCHED))
    }
}

/// Sends and receives on a connected VI until it ends, or for a while.
fn traffic(end: &End, vi: &Vi, chance: &Chance) {
    let until = Instant::now() + Duration::from_millis(30);
    let (mut receives, mut is_sending) = (0, false);
    while Instant::now() < until && vi.state() == ViState::Connected {
        if !is_sending {
            let length = [4, 100, 20_000, BUFFER][usize::try_from(chance.next() % 4).unwrap()];
            is_sending = vi.post_send(&end.descriptor(PLACES - 1, length)).is_ok();
        }
        is_sending &= matches!(vi.send_done(), Err(error) if error.code == VipReturn::NotDone);
        if !matches!(vi.recv_done(), Err(error) if error.code == VipReturn::NotDone) {
            let _ = vi.post_recv(&end.descriptor(receives % 4, BUFFER));
            receives += 1;
        }
    }
}

/// Whether a descriptor was done, well or not.
fn took(completion: &Completion) -> bool {
    completion.as_ref().map_or_else(|error| error.descriptor.is_some(), |_| true)
}

/// Connects a VI of each and has both send. False if they did not come together.
fn round(good: &End, bad: &End, chance: &Chance, extensions: Extensions) -> bool {
    let (server, client) = (good.vi(extensions), bad.vi(extensions));
    for (end, vi) in [(good, &server), (bad, &client)] {
        (0..4).for_each(|place| vi.post_recv(&end.descriptor(place, BUFFER)).unwrap());
    }
    let bound = Duration::from_millis(500);
    let connected = std::thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let local = NetAddress::new(&good.host(), b"round");
            good.nic.connect_wait(&local, bound).and_then(|request| request.accept(&server))
        });
        let from = NetAddress::new(&bad.host(), b"");
        let asked = client.connect_request(&from, &NetAddress::new(&good.host(), b"round"), bound);
        accepting.join().unwrap().is_ok() && asked.is_ok()
    });
    if connected {
        std::thread::scope(|scope| {
            scope.spawn(|| traffic(bad, &client, chance));
            traffic(good, &server, chance);
        });
    }
    for vi in [&server, &client] {
        let _ = vi.disconnect();
        while took(&vi.recv_done()) || took(&vi.send_done()) {}
        vi.destroy().unwrap();
    }
    connected
}

/// Rounds, unless `HOSTILE_ROUNDS` says how many.
const ROUNDS: u64 = 40;

#[test]
fn a_peer_that_writes_anything_harms_its_own_connection_alone() {
    let folder = support::folder("hostile-via");
    let port = |name: &str| ShmNode::open_in(&folder, Some(name)).unwrap().port().unwrap();
    let rounds = std::env::var("HOSTILE_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap());
    let (good, other) = (End::new(Arc::new(port("good"))), End::new(Arc::new(port("other"))));
    let mut connected = 0;
    for seed in 0..rounds {
        let chance = Arc::new(Chance(AtomicU64::new(seed)));
        let (chance_of_port, rate) = (Arc::clone(&chance), [6, 30, 200][(seed % 3) as usize]);
        let hostile = Hostile { port: port(&format!("bad{seed}")), chance: chance_of_port, rate };
        let bad = End::new(Arc::new(hostile));
        let extensions = Extensions {
            defer_send: seed & 1 != 0,
            split_receive: seed & 2 != 0,
            ..Extensions::default()
        };
        connected += u64::from(round(&good, &bad, &chance, extensions));
        bad.nic.close();
        assert!(good.is_intact(), "seed {seed}: something beside the buffers was written");
        assert!(round(&good, &other, &chance, Extensions::default()), "seed {seed}");
    }
    // If not, the stores were not tested.
    assert!(connected > rounds / 2, "{connected} of {rounds}");
    std::fs::remove_dir_all(&folder).unwrap();
}
