//! clanqueue: CLAN's model in one program: map, store, tripwire, event wait, DMA, message, revoke.
//!
//! ```text
//! clanqueue                  both sides in this process, as two nodes
//! clanqueue DEVICE           the server, such as shm:?node=server
//! clanqueue DEVICE NODE      a client of the server on node NODE, such as shm: server
//! ```
//!
//! The client sends numbers through a distributed message queue into the server's memory, and then a
//! block by DMA. The server adds up, answers in the client's memory, and revokes the right to write.
#![expect(clippy::print_stdout, reason = "what the program is for")]

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use port::DmaMemory;
use port::clan::message_queue::{Layout, Receiver, Sender};
use port::clan::{
    AccessRights, ClanEvent, ClanPeer, ClanPort, Cookie, DmaRequest, EventQueue, Message,
    RegionNumber, Tripwire, wait_event,
};
use vipl_examples::Outcome;

const NUMBERS: u64 = 1000;
const BLOCK_BYTES: usize = 65_536;
const WAIT_NS: u64 = 10_000_000_000;
/// How long the client waits for an answer before it asks again.
const ANSWER_NS: u64 = 200_000_000;
/// Where the client looks for the server.
const NAP: Duration = Duration::from_millis(10);
/// Write pointer of the queue, behind its slots.
const WRITTEN: usize = 512;
/// Slots and write pointer are in the server's region, the read pointer is in the client's.
const QUEUE: Layout = Layout { slots: 0, count: 8, written: Some(WRITTEN), read: 0 };
// Places: the block behind the queue in the server's region, the answer in the client's.
const BLOCK: usize = 4096;
const INBOX: usize = BLOCK + BLOCK_BYTES;
const ANSWER: usize = 64;
const OUTBOX: usize = 4096;
// Tags of events.
const TAG_QUEUE: u64 = 1;
const TAG_DMA: u64 = 2;
const TAG_ANSWER: u64 = 3;
// Messages beside the shared memory.
const HELLO: u64 = 1;
const WELCOME: u64 = 2;

/// A port with one event queue, which takes everything, and one region.
struct Side {
    port: Arc<dyn ClanPort>,
    events: Arc<dyn EventQueue>,
    memory: DmaMemory,
    region: RegionNumber,
}

impl Side {
    fn open(device: &str, bytes: usize) -> Outcome<Self> {
        let port = device::open_clan(device)?;
        let events = port.event_queue()?;
        port.set_message_queue(events.number())?;
        let memory = port.allocate(bytes)?;
        let region = port.register(&memory)?;
        Ok(Self { port, events, memory, region })
    }

    /// Sends a message: what it is, and the cookie of the sender's region.
    fn send(&self, to: &ClanPeer, kind: u64, cookie: u64) -> Outcome<()> {
        let mut message: Message = [0; 48];
        message[..8].copy_from_slice(&kind.to_le_bytes());
        message[8..16].copy_from_slice(&cookie.to_le_bytes());
        Ok(self.port.send_message(to, &message)?)
    }

    /// The next event; the loss of the other node is an error.
    fn expect(&self) -> Outcome<ClanEvent> {
        match wait_event(&*self.port, &*self.events, WAIT_NS).ok_or("nothing happens")? {
            ClanEvent::NodeLost { host } => {
                Err(format!("node {} is lost", String::from_utf8_lossy(&host)).into())
            }
            event => Ok(event),
        }
    }

    /// Who sent the next message, and the cookie in it.
    fn expect_message(&self) -> Outcome<(ClanPeer, u64)> {
        loop {
            if let ClanEvent::Message { from, message } = self.expect()? {
                return Ok((from, cookie_in(&message)));
            }
        }
    }

    /// Waits until somebody has written a word whose tripwire has the tag.
    fn expect_tripwire(&self, tag: u64) -> Outcome<()> {
        while self.expect()? != (ClanEvent::Tripwire { tag }) {}
        Ok(())
    }

    /// Has others' writes of the word at `offset` reported.
    fn watch(&self, offset: usize, tag: u64) -> Outcome<()> {
        let (on, queue) = (AccessRights::WRITE, self.events.number());
        let (region, offset) = (self.region, offset as u64);
        self.port.set_tripwire(&Tripwire { region, offset, on, once: false, queue, tag })?;
        Ok(())
    }
}

fn cookie_in(message: &Message) -> u64 {
    message[8..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn cookie_of(bits: u64) -> Outcome<Cookie> {
    Cookie::from_bits(bits).ok_or_else(|| format!("{bits:#x} is no cookie").into())
}

fn server(device: &str) -> Outcome<()> {
    let side = Side::open(device, INBOX)?;
    // The client asks, with the right to answer in its memory.
    let (client, cookie) = side.expect_message()?;
    let mut theirs = side.port.attach(&client, cookie_of(cookie)?)?;
    // Set before the client may write: every write fires it.
    side.watch(WRITTEN, TAG_QUEUE)?;
    let cookie = side.port.open(side.region, &client, AccessRights::ALL)?;
    side.send(&client, WELCOME, cookie.to_bits())?;
    let mut receiver = Receiver::new(QUEUE, side.memory.clone(), 0);
    let mut sum = 0;
    while receiver.number() <= NUMBERS {
        let Some(body) = receiver.peek() else {
            // An event may be older than the message; so look, wait, and look again.
            side.expect_tripwire(TAG_QUEUE)?;
            continue;
        };
        if receiver.number() < NUMBERS {
            sum += body[0];
        }
        receiver.take();
        receiver.give_back(&mut *theirs)?;
    }
    // The last message came behind the block.
    let block: u64 = (0..BLOCK_BYTES / 8).map(|i| side.memory.load_u64(BLOCK + 8 * i)).sum();
    println!("the server received {NUMBERS} numbers, sum {sum}, and a block, sum {block}");
    side.port.revoke(cookie)?;
    theirs.store(ANSWER as u64, &[sum])?;
    let lost = wait_event(&*side.port, &*side.events, WAIT_NS);
    if lost != Some(ClanEvent::NodeLost { host: client.host }) {
        return Err(format!("the client should end, and not {lost:?}").into());
    }
    Ok(())
}

fn client(device: &str, node: &str) -> Outcome<()> {
    let side = Side::open(device, OUTBOX)?;
    let host = loop {
        match side.port.host_of_name(node) {
            Some(host) => break host,
            None => std::thread::sleep(NAP),
        }
    };
    let peer = ClanPeer { host, domain: 0 };
    // As the server does: first the tripwires, then the right to write.
    side.watch(QUEUE.read, TAG_QUEUE)?;
    side.watch(ANSWER, TAG_ANSWER)?;
    let cookie = side.port.open(side.region, &peer, AccessRights::WRITE)?;
    // Asks again until it is answered: a message to who takes none yet is lost.
    let welcome = loop {
        side.send(&peer, HELLO, cookie.to_bits())?;
        if let Some(ClanEvent::Message { message, .. }) =
            wait_event(&*side.port, &*side.events, ANSWER_NS)
        {
            break cookie_in(&message);
        }
    };
    let mut theirs = side.port.attach(&peer, cookie_of(welcome)?)?;
    let mut sender = Sender::new(QUEUE, side.memory.clone(), 0);
    for number in 1..=NUMBERS {
        while sender.room() == 0 {
            side.expect_tripwire(TAG_QUEUE)?;
        }
        let body = [number, 0, 0, 0, 0, 0, 0];
        sender.send(&mut *theirs, &body)?;
    }
    // A block by DMA; the message about it is sent when it has arrived.
    let block = DmaMemory::new(BLOCK_BYTES)?;
    (0..BLOCK_BYTES / 8).for_each(|i| block.store_u64(8 * i, i as u64));
    let mut dma = side.port.dma_queue(side.events.number())?;
    let request = DmaRequest { offset: BLOCK as u64, source: block, notify: Some(TAG_DMA) };
    dma.submit(&mut *theirs, request)?;
    while side.expect()? != (ClanEvent::Dma { tag: TAG_DMA, result: Ok(()) }) {}
    while sender.room() == 0 {
        side.expect_tripwire(TAG_QUEUE)?;
    }
    sender.send(&mut *theirs, &[0; 7])?;
    side.expect_tripwire(TAG_ANSWER)?;
    println!("the client reads the answer {}", side.memory.load_u64(ANSWER));
    match theirs.store(0, &[0]) {
        Err(error) => println!("then it is refused: {error}"),
        Ok(()) => return Err("the cookie is still good".into()),
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_] => {
            let own = std::process::id() % 1_000_000;
            let (sender, results) = channel();
            let other = sender.clone();
            std::thread::spawn(move || _ = other.send(server(&format!("shm:?node=server-{own}"))));
            let device = format!("shm:?node=client-{own}");
            std::thread::spawn(move || sender.send(client(&device, &format!("server-{own}"))));
            results.iter().collect()
        }
        [_, device] => server(device),
        [_, device, node] => client(device, node),
        _ => Err(format!("usage: {} [DEVICE [NODE-OF-SERVER]]", words[0]).into()),
    }
}
