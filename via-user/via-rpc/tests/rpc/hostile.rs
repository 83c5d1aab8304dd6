//! Clients that break the protocol, written on VIPL alone: each loses its own connection, with the reason
//! known to the server, and no other client notices.

use std::thread;

use via_rpc::credits::CreditViolation;
use via_rpc::header::{Header, Kind, MessageHeader, Sequence};
use via_rpc::negotiate::{Offer, REVISION};
use via_rpc::{Device, Disagreement, Error, Event, Server, Settings, Violation};
use vipl::{
    Descriptor, DmaMemory, MemAttributes, NetAddress, Region, Reliability, Vi, ViAttributes,
};

use crate::{SOON, connect, devices};

const SETTINGS: Settings = Settings {
    credits: 4,
    mtu: 256,
    max_message: 1000,
    clients: 64,
    cached_buffers: 8,
    cached_bytes: 1 << 20,
};
const OFFER: Offer = Offer { mtu: 256, max_message: 1000 };
/// Bytes of a packet of the hostile client, and of its descriptor.
const STRIDE: usize = 512;

/// A VI that speaks the protocol by hand.
struct Raw {
    vi: Vi,
    region: Region,
    sent: u16,
    taken: usize,
}

impl Raw {
    fn connect(device: &Device, host: &[u8], endpoint: &str) -> Self {
        let nic = device.nic();
        let tag = nic.create_ptag().unwrap();
        let region = nic
            .register_mem(&DmaMemory::new(64 * STRIDE).unwrap(), MemAttributes::new(tag))
            .unwrap();
        let attributes = ViAttributes::new(Reliability::Delivery, tag);
        let vi = nic.create_vi(attributes, None, None).unwrap();
        for slot in 0..16 {
            let descriptor = region.descriptor(slot * STRIDE, 1).unwrap();
            descriptor.prepare(&[region.segment(slot * STRIDE + 128, 256)], None).unwrap();
            vi.post_recv(&descriptor).unwrap();
        }
        let local = NetAddress::new(&device.host(), b"");
        let remote = NetAddress::new(host, format!("rpc:{endpoint}").as_bytes());
        while let Err(error) = vi.connect_request(&local, &remote, SOON) {
            assert_eq!(error.code, vipl::VipReturn::NoMatch, "{error}");
        }
        Self { vi, region, sent: 0, taken: 0 }
    }

    fn descriptor(&mut self) -> (usize, Descriptor) {
        let at = (16 + usize::from(self.sent) % 32) * STRIDE;
        self.sent += 1;
        (at + 128, self.region.descriptor(at, 1).unwrap())
    }

    fn post(&mut self, bits: Option<u32>, bytes: &[u8]) {
        let (at, descriptor) = self.descriptor();
        self.region.memory().copy_from(at, bytes);
        let segment = self.region.segment(at, u32::try_from(bytes.len()).unwrap());
        let segments = if bytes.is_empty() { &[][..] } else { &[segment][..] };
        descriptor.prepare(segments, bits).unwrap();
        self.vi.post_send(&descriptor).unwrap();
        // It may be flushed, if the server has seen enough.
        let _ = self.vi.send_wait(SOON);
    }

    fn send(&mut self, kind: Kind, sequence: u16, bytes: &[u8]) {
        self.post(Some(header(kind, sequence).to_bits()), bytes);
    }

    /// The next packet of the server: kind and bytes.
    fn take(&mut self) -> (Kind, Vec<u8>) {
        let done = self.vi.recv_wait(SOON).unwrap();
        let at = self.taken * STRIDE + 128;
        self.taken += 1;
        let bytes = self.region.memory().to_vec(at, done.length() as usize);
        (Header::from_bits(done.immediate()).unwrap().kind, bytes)
    }

    fn negotiate(&mut self) {
        self.send(Kind::Hello, 0, &OFFER.to_bytes());
        let (kind, bytes) = self.take();
        assert_eq!((kind, &bytes[..]), (Kind::Accept, &OFFER.to_bytes()[..]));
        self.send(Kind::Ready, 0, &[]);
    }
}

fn header(kind: Kind, sequence: u16) -> Header {
    Header { kind, sequence: Sequence::new(sequence), expected: Sequence::new(0), credits: 13 }
}

fn message(length: u32, bytes: usize) -> Vec<u8> {
    let header = MessageHeader { length, call: 1, is_unanswered: false };
    [&header.to_bytes()[..], &vec![7; bytes]].concat()
}

type Attack = fn(&mut Raw);

/// Runs the attacks one after the other while a good client calls; what the server says of each.
fn attack(attacks: &[Attack]) -> Vec<Error> {
    let [a, b] = devices("shm");
    let server = Server::bind(&b, "fort", &SETTINGS).unwrap();
    let mut reasons = Vec::new();
    thread::scope(|scope| {
        let (a, host) = (&a, b.host());
        let client = scope.spawn(move || {
            let mut good = connect(a, &host, "fort", &SETTINGS).unwrap();
            let mut reply = Vec::new();
            for attack in attacks {
                let mut raw = Raw::connect(a, &host, "fort");
                raw.negotiate();
                attack(&mut raw);
                // The server ends the connection, and only this one.
                while raw.vi.recv_wait(SOON).is_ok() {}
                good.call(b"still there?", &mut reply, SOON).unwrap();
                assert_eq!(reply, b"yes");
            }
            good.call(b"end", &mut reply, SOON).unwrap();
        });
        let (mut body, mut is_over) = (Vec::new(), false);
        // The NIC may end a connection, and the server learn of it later.
        while !is_over || reasons.len() < attacks.len() {
            match server.next(&mut body, SOON).unwrap() {
                Event::Connected(_) => {}
                Event::Ended(_, reason) => reasons.push(reason),
                Event::Request(request) if [&b"end"[..], b"still there?"].contains(&&body[..]) => {
                    is_over |= body == b"end";
                    request.reply(b"yes").unwrap();
                }
                // Of an attacker whose first packets are good.
                Event::Request(request) => drop(request),
            }
        }
        client.join().unwrap();
    });
    reasons
}

#[test]
fn a_client_that_breaks_the_protocol_loses_its_connection_alone() {
    let attacks: [(Attack, Violation); 12] = [
        (|raw| raw.post(None, &message(4, 4)), Violation::NoHeader),
        (|raw| raw.post(Some(0xf000_0000), &[]), Violation::NoHeader),
        (|raw| raw.send(Kind::Hello, 0, &OFFER.to_bytes()), Violation::Late(Kind::Hello)),
        (|raw| raw.send(Kind::Rts, 0, &[1]), Violation::Control(Kind::Rts)),
        (|raw| raw.send(Kind::Cts, 0, &[]), Violation::Credits(CreditViolation::Cts)),
        (
            |raw| raw.send(Kind::Data, 5, &message(4, 4)),
            Violation::Credits(CreditViolation::Sequence { found: 5, due: 0 }),
        ),
        (|raw| raw.send(Kind::Data, 0, &[]), Violation::NoMessage),
        (|raw| raw.send(Kind::Data, 0, &[0xff; 64]), Violation::NoMessage),
        (
            |raw| raw.send(Kind::Data, 0, &message(1001, 248)),
            Violation::Length { length: 1001, most: 1000 },
        ),
        (|raw| raw.send(Kind::Data, 0, &message(4, 5)), Violation::Fragment { found: 13, due: 12 }),
        (
            |raw| {
                raw.send(Kind::Data, 0, &message(1000, 248));
                raw.send(Kind::Data, 1, &[7; 100]);
            },
            Violation::Fragment { found: 100, due: 256 },
        ),
        (
            |raw| {
                let greedy = Header { credits: 14, ..header(Kind::Data, 0) };
                raw.post(Some(greedy.to_bits()), &message(0, 0));
            },
            Violation::Credits(CreditViolation::Grant { found: 14, least: 13, most: 13 }),
        ),
    ];
    let reasons = attack(&attacks.map(|(attack, _)| attack));
    assert_eq!(reasons.len(), attacks.len(), "{reasons:?}");
    for ((_, wanted), reason) in attacks.iter().zip(&reasons) {
        assert!(matches!(reason, Error::Violation(found) if found == wanted), "{reason:?}");
    }
}

/// Messages without credits: the NIC, or the server, ends the connection.
#[test]
fn a_client_that_ignores_credits_loses_its_connection_alone() {
    let flood: Attack = |raw| {
        for number in 0..40 {
            raw.send(Kind::Data, number, &message(4, 4));
        }
    };
    let reasons = attack(&[flood]);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
}

/// Before the negotiation is over, the program sees nothing of a client.
#[test]
fn another_revision_or_protocol_is_refused() {
    let [a, b] = devices("shm");
    let server = crate::Reverser::start(Server::bind(&b, "fort", &SETTINGS).unwrap());
    let mut other = Raw::connect(&a, &b.host(), "fort");
    let mut offer = OFFER.to_bytes();
    offer[4..6].copy_from_slice(&9_u16.to_le_bytes());
    other.send(Kind::Hello, 0, &offer);
    let (kind, bytes) = other.take();
    assert_eq!((kind, &bytes[4..6]), (Kind::Refuse, &REVISION.to_le_bytes()[..]));
    let mut foreign = Raw::connect(&a, &b.host(), "fort");
    foreign.send(Kind::Hello, 0, b"GET / HTTP/1.0\r\n");
    assert!(foreign.vi.recv_wait(SOON).is_err());
    let mut client = connect(&a, &b.host(), "fort", &SETTINGS).unwrap();
    client.call(b"ab", &mut Vec::new(), SOON).unwrap();
    drop((other, client));
    server.stop();
}

/// The same, seen from the client: a server that was built later.
#[test]
fn a_client_names_the_revision_of_the_server() {
    let [a, b] = devices("shm");
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let tag = b.nic().create_ptag().unwrap();
            let memory = DmaMemory::new(4096).unwrap();
            let region = b.nic().register_mem(&memory, MemAttributes::new(tag)).unwrap();
            let attributes = ViAttributes::new(Reliability::Delivery, tag);
            let vi = b.nic().create_vi(attributes, None, None).unwrap();
            let descriptor = |at| region.descriptor(at, 1).unwrap();
            descriptor(0).prepare(&[region.segment(1024, 256)], None).unwrap();
            vi.post_recv(&descriptor(0)).unwrap();
            let local = NetAddress::new(&b.host(), b"rpc:future");
            b.nic().connect_wait(&local, SOON).unwrap().accept(&vi).unwrap();
            vi.recv_wait(SOON).unwrap();
            let mut offer = OFFER.to_bytes();
            offer[4] = 9;
            region.memory().copy_from(2048, &offer);
            let refuse = Some(header(Kind::Refuse, 0).to_bits());
            descriptor(64).prepare(&[region.segment(2048, 16)], refuse).unwrap();
            vi.post_send(&descriptor(64)).unwrap();
            vi.send_wait(SOON).unwrap();
            vi
        });
        let error = connect(&a, &b.host(), "future", &SETTINGS).unwrap_err();
        let wanted = Disagreement::Revision { theirs: 9 };
        assert!(matches!(error, Error::Disagreement(found) if found == wanted), "{error}");
        let text = error.to_string();
        assert!(text.contains("revision 9") && text.contains("this one 1"), "{text}");
        drop(server.join().unwrap());
    });
}
