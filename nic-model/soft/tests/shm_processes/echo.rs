//! Traffic with data that is verified at both ends: a client writes a block and its number to a server,
//! a tripwire on the number wakes the server, which writes both back, and wakes the client likewise.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use port::clan::{
    AccessRights, ClanEvent, ClanPeer, ClanPort, Cookie, DmaQueue, DmaRequest, EventQueue, Message,
    RegionNumber, Remote,
};
use port::{DmaMemory, Wait, WaitOps};
use soft_nic::shm::{ShmNode, ShmPort};

use super::peer::{BOUND, Held, Setting, next_line, say};
use super::support::{on_write, own};

/// Bytes of a region: the number of its block, and behind it the block.
const BYTES: usize = BLOCK + 8 * WORDS_MAX;
const BLOCK: usize = 64;
const WORDS_MAX: usize = 2048;
/// Longest wait for an event if events may be lost.
const GLANCE: Duration = Duration::from_millis(20);

/// A cookie as a message, with what it is for.
pub(crate) fn with_cookie(what: u8, cookie: Cookie) -> Message {
    let mut message = [0; 48];
    message[0] = what;
    message[8..16].copy_from_slice(&cookie.to_bits().to_le_bytes());
    message
}

pub(crate) fn cookie_of(message: &Message) -> Cookie {
    let bits = u64::from_le_bytes(message[8..16].try_into().unwrap());
    Cookie::from_bits(bits).unwrap()
}

/// The next event, or None after `bound`.
pub(crate) fn next(port: &ShmPort, queue: &dyn EventQueue, bound: Duration) -> Option<ClanEvent> {
    let end = Instant::now() + bound;
    loop {
        let seen = port.wake_count();
        queue.arm();
        let event = queue.poll();
        let left = end.saturating_duration_since(Instant::now());
        if event.is_some() || left.is_zero() {
            return event;
        }
        port.sleep(seen, left.as_nanos().try_into().unwrap(), Wait::bounded("an event", 0));
    }
}

/// Memory that peers map, or that they do not.
pub(crate) fn memory(port: &ShmPort, is_mapped: bool, bytes: usize) -> DmaMemory {
    if is_mapped { port.allocate(bytes) } else { DmaMemory::new(bytes) }.unwrap()
}

/// One side of the traffic between two domains.
struct Side {
    memory: DmaMemory,
    region: RegionNumber,
    remote: Box<dyn Remote>,
    block: DmaMemory,
    dma: Box<dyn DmaQueue>,
    last: u64,
}

fn words(number: u64) -> impl Iterator<Item = u64> {
    let count = (number * 37 % WORDS_MAX as u64) + 1;
    (0..count).map(move |i| number.wrapping_mul(0x9e37_79b9) ^ i << 32)
}

impl Side {
    fn new(
        (memory, region): (DmaMemory, RegionNumber),
        remote: Box<dyn Remote>,
        dma: Box<dyn DmaQueue>,
    ) -> Self {
        let block = DmaMemory::new(8 * WORDS_MAX).unwrap();
        Self { memory, region, remote, block, dma, last: 0 }
    }

    /// Writes block and number, by DMA or by stores.
    fn write(&mut self, number: u64) -> Result<(), port::clan::DmaError> {
        let mut length = 0;
        for (i, word) in words(number).enumerate() {
            self.block.store_u64(8 * i, word);
            length = 8 * (i + 1);
        }
        let block = self.block.slice(0, length).unwrap();
        if number.is_multiple_of(2) {
            let notify = (number.is_multiple_of(4)).then_some(0);
            let request = DmaRequest { offset: BLOCK as u64, source: block, notify };
            self.dma.submit(&mut *self.remote, request).unwrap();
        } else {
            self.remote.write(BLOCK as u64, &block)?;
        }
        self.last = number;
        self.remote.store(0, &[number])
    }

    /// The number of the block that is here, whose data are right.
    fn read(&self) -> u64 {
        let number = self.memory.load_u64(0);
        for (i, word) in words(number).enumerate().filter(|_| number != 0) {
            assert_eq!(self.memory.load_u64(BLOCK + 8 * i), word, "block {number}, word {i}");
        }
        number
    }
}

/// A client of a server, in a domain of its own.
pub(crate) struct Client {
    port: ShmPort,
    queue: Arc<dyn EventQueue>,
    server: ClanPeer,
    side: Side,
    /// Events may be lost: it looks at its memory as well.
    is_careless: bool,
}

impl Client {
    pub(crate) fn new(node: &ShmNode, server: &str, is_mapped: bool, is_careless: bool) -> Self {
        let port = node.port().unwrap();
        let queue = port.event_queue().unwrap();
        port.set_message_queue(queue.number()).unwrap();
        let server = ClanPeer { host: server.into(), domain: 0 };
        let memory = memory(&port, is_mapped, BYTES);
        let region = port.register(&memory).unwrap();
        let cookie = port.open(region, &server, AccessRights::ALL).unwrap();
        port.set_tripwire(&on_write(cookie, 0, &queue)).unwrap();
        port.send_message(&server, &with_cookie(is_mapped.into(), cookie)).unwrap();
        let theirs = loop {
            match next(&port, &*queue, BOUND) {
                Some(ClanEvent::Message { from, message }) if from == server => break message,
                Some(ClanEvent::NodeLost { host }) => assert_ne!(host, server.host),
                other => panic!("{other:?}"),
            }
        };
        let remote = port.attach(&server, cookie_of(&theirs)).unwrap();
        assert_eq!(remote.is_mapped(), is_mapped);
        let dma = port.dma_queue(queue.number()).unwrap();
        let side = Side::new((memory, region), remote, dma);
        Self { port, queue, server, side, is_careless }
    }

    /// A block to the server and back.
    pub(crate) fn round(&mut self) {
        let number = self.side.last + 1;
        self.side.write(number).unwrap();
        let end = Instant::now() + BOUND;
        let bound = if self.is_careless { GLANCE } else { BOUND };
        while self.side.memory.load_u64(0) != number {
            match next(&self.port, &*self.queue, bound) {
                Some(ClanEvent::NodeLost { host }) => assert_ne!(host, self.server.host),
                Some(ClanEvent::Dma { result, .. }) => assert_eq!(result, Ok(())),
                Some(ClanEvent::Tripwire { .. }) => {}
                None if self.is_careless && Instant::now() < end => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(self.side.read(), number);
    }
}

struct Server {
    port: ShmPort,
    queue: Arc<dyn EventQueue>,
    sides: BTreeMap<u64, (ClanPeer, Side)>,
    last: u64,
}

impl Server {
    fn handle(&mut self, event: ClanEvent) {
        match event {
            ClanEvent::Message { from, message } => self.accept(from, &message),
            ClanEvent::Tripwire { tag } => self.answer(tag),
            // The client was lost, which is reported too.
            ClanEvent::Dma { .. } => {}
            ClanEvent::NodeLost { host } => {
                say(&format!("lost {}", String::from_utf8_lossy(&host)));
                let lost = self.sides.extract_if(.., |_, (peer, _)| peer.host == host);
                let lost: Vec<_> = lost.collect();
                for (_, (_, side)) in lost {
                    self.port.deregister(side.region).unwrap();
                }
            }
        }
    }

    fn accept(&mut self, from: ClanPeer, message: &Message) {
        let memory = memory(&self.port, message[0] == 1, BYTES);
        let region = self.port.register(&memory).unwrap();
        let cookie = self.port.open(region, &from, AccessRights::ALL).unwrap();
        self.last += 1;
        let wire = port::clan::Tripwire { tag: self.last, ..on_write(cookie, 0, &self.queue) };
        self.port.set_tripwire(&wire).unwrap();
        // A client that was killed meanwhile is none.
        let attached = self.port.attach(&from, cookie_of(message));
        let sent = self.port.send_message(&from, &with_cookie(0, cookie));
        match attached {
            Ok(remote) if sent.is_ok() => {
                let dma = self.port.dma_queue(self.queue.number()).unwrap();
                self.sides.insert(self.last, (from, Side::new((memory, region), remote, dma)));
            }
            _ => self.port.deregister(region).unwrap(),
        }
    }

    fn answer(&mut self, tag: u64) {
        let Some((_, side)) = self.sides.get_mut(&tag) else { return };
        // It may look without an event, while a block is written.
        if side.memory.load_u64(0) != side.last {
            let number = side.read();
            // An error is the client's end.
            let _ = side.write(number);
        }
    }
}

/// A server. Arguments: its name; whether events may be lost.
pub(crate) fn serve(setting: &Setting) {
    let node = node(&setting.folder, &setting.arguments[0]);
    let port = node.port().unwrap();
    let queue = port.event_queue().unwrap();
    port.set_message_queue(queue.number()).unwrap();
    let is_careless: bool = setting.number(1);
    let mut server = Server { port, queue, sides: BTreeMap::new(), last: 0 };
    let is_over = Arc::new(AtomicBool::new(false));
    std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            while next_line().is_some_and(|line| line != "end") {
                say(&Held::now().to_string());
            }
            is_over.store(true, Ordering::Release);
        }
    });
    say("ready");
    while !is_over.load(Ordering::Acquire) {
        if let Some(event) = next(&server.port, &*server.queue, GLANCE) {
            server.handle(event);
        }
        let tags: Vec<u64> = server.sides.keys().copied().filter(|_| is_careless).collect();
        tags.into_iter().for_each(|tag| server.answer(tag));
    }
}

/// A client. Arguments: its name, the server's, rounds, whether events may be lost.
pub(crate) fn call(setting: &Setting) {
    let node = node(&setting.folder, &setting.arguments[0]);
    let mut clients: Vec<Client> = [true, false]
        .map(|is_mapped| Client::new(&node, &setting.arguments[1], is_mapped, setting.number(3)))
        .into();
    say("ready");
    for _ in 0..setting.number(2) {
        clients.iter_mut().for_each(Client::round);
    }
    say("done");
    next_line();
}

/// Clients of this process that have traffic with a server until they are stopped.
pub(crate) struct Background {
    is_over: Arc<AtomicBool>,
    rounds: Arc<core::sync::atomic::AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Background {
    pub(crate) fn start(node: &ShmNode, server: &str) -> Self {
        let mut clients =
            [true, false].map(|is_mapped| Client::new(node, server, is_mapped, false));
        let (is_over, rounds) = (Arc::<AtomicBool>::default(), Arc::default());
        let thread = std::thread::spawn({
            let (is_over, rounds) = (Arc::clone(&is_over), Arc::clone(&rounds));
            move || {
                while !is_over.load(Ordering::Acquire) {
                    clients.iter_mut().for_each(Client::round);
                    core::sync::atomic::AtomicU64::fetch_add(&rounds, 1, Ordering::Release);
                }
            }
        });
        Self { is_over, rounds, thread }
    }

    /// Waits until it has made progress.
    pub(crate) fn goes_on(&self) {
        let (seen, end) = (self.rounds.load(Ordering::Acquire), Instant::now() + BOUND);
        while self.rounds.load(Ordering::Acquire) < seen + 2 {
            assert!(!self.thread.is_finished() && Instant::now() < end, "no traffic");
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    pub(crate) fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Acquire)
    }

    pub(crate) fn end(self) {
        self.is_over.store(true, Ordering::Release);
        self.thread.join().unwrap();
    }
}

/// A node of this process, whose service runs.
pub(crate) fn node(folder: &Path, name: &str) -> ShmNode {
    let node = ShmNode::open_in(folder, Some(name)).unwrap();
    // A thread names itself.
    while !super::peer::threads().contains(&format!("shm {name}")) {
        std::thread::yield_now();
    }
    node
}

/// A port of a node, whose messages go to a queue.
pub(crate) fn with_queue(node: &ShmNode) -> (ShmPort, Arc<dyn EventQueue>, ClanPeer) {
    let port = node.port().unwrap();
    let queue = port.event_queue().unwrap();
    port.set_message_queue(queue.number()).unwrap();
    let peer = own(&port).clone();
    (port, queue, peer)
}
