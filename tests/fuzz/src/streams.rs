//! What the other end of a connection sends to the libraries: headers and packets of remote calls, of
//! SOVIA's streams, of LANE, into their state machines without I/O.

use lane::{hello, packet, sequence};
use sovia::{Engine, Policy, packet as stream};
use via_rpc::credits::Credits;
use via_rpc::header::{Header, Kind, MessageHeader};
use via_rpc::negotiate::{Negotiation, Offer};

use crate::input::Input;

/// Steps of an input at most.
const STEPS: usize = 128;

/// See the module.
pub(crate) fn streams(data: &[u8]) {
    let mut input = Input::new(data);
    match input.u8() % 4 {
        0 => calls(&mut input),
        1 => engine(&mut input),
        2 => ip(&mut input),
        _ => negotiation(&mut input),
    }
}

/// Remote calls: flow control.
fn calls(input: &mut Input<'_>) {
    let (own, theirs) = (input.u8().max(1), input.u8().max(1));
    let mut credits = Credits::new(own, theirs);
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        match input.u8() % 4 {
            0 => {
                let _ = credits.send();
            }
            1 => {
                let _ = credits.control();
            }
            2 => credits.posted(),
            _ => {
                let mut header = credits.header(input.pick(&Kind::ALL));
                if input.flag() {
                    let Some(forged) = Header::from_bits(header.to_bits() ^ input.u32()) else {
                        continue;
                    };
                    header = forged;
                }
                if credits.receive(header).is_err() {
                    // The connection ends.
                    return;
                }
            }
        }
        let available = credits.available();
        assert!(available <= u16::from(theirs), "{available} credits of {theirs}");
    }
}

/// Remote calls: the trips that begin a connection.
fn negotiation(input: &mut Input<'_>) {
    let own = Offer { mtu: 64 + u32::from(input.u16()), max_message: input.u32() };
    let mut side =
        if input.flag() { Negotiation::AwaitHello(own) } else { Negotiation::AwaitAccept(own) };
    for _ in 0..4 {
        let Some(header) = Header::from_bits(input.u32()) else { return };
        assert_eq!(Header::from_bits(header.to_bits()), Some(header));
        let right = Offer { mtu: 64 + u32::from(input.u16()), max_message: input.u32() }.to_bytes();
        let length = input.below(20);
        let bytes = if input.flag() { &right[..] } else { input.bytes(length) };
        match side.receive(header, bytes) {
            Ok(step) => {
                if let Some(agreed) = step.agreed {
                    assert!(agreed.offer.mtu <= own.mtu && agreed.offer.mtu >= 64);
                    assert!(agreed.offer.max_message <= own.max_message);
                    return;
                }
            }
            Err(why) => {
                // It is reported.
                assert!(!why.to_string().is_empty());
                return;
            }
        }
    }
    let front: [u8; 8] = input.u64().to_le_bytes();
    if let Some(header) = MessageHeader::from_bytes(front) {
        assert_eq!(header.to_bytes(), front);
    }
}

/// A stream of SOVIA.
fn engine(input: &mut Input<'_>) {
    let policy = input.pick(&[Policy::SINGLE, Policy::DACKS, Policy::COMBINE]);
    let mut engine = Engine::new(policy);
    let (mut now, mut receive) = (0, 0);
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        match input.u8() % 8 {
            0..=2 => {
                let kind = u32::from(input.u8() % 9) << 28;
                let bits =
                    if input.flag() { input.u32() } else { kind | u32::from(input.u8() & 3) };
                if let Some(header) = stream::Header::from_bits(bits) {
                    assert_eq!(header.to_bits(), bits);
                }
                let length = if kind == 1 << 28 { u32::from(input.u16()) } else { 0 };
                let before = engine.available();
                if engine.receive(bits, length, receive).is_err() {
                    // The stream ends.
                    return;
                }
                receive += 1;
                let came = engine.available() - before;
                assert!(came == 0 || came == length as usize, "{came} of {length} bytes");
            }
            3 => {
                let bytes = u32::from(input.u16()).max(1);
                let _ = engine.offer(bytes, bytes, now);
            }
            4 => {
                let _ = engine.transmit(now);
            }
            5 => {
                if engine.consume(input.u16().into()).is_some() {
                    engine.posted();
                }
            }
            6 => now += u64::from(input.u32()),
            _ => engine.close(),
        }
        let [may, most] = engine.credits();
        assert!(may <= most, "{may} packets of {most}");
    }
}

/// LANE: hellos, IP packets, their numbers.
fn ip(input: &mut Input<'_>) {
    let mut numbers = sequence::Sequence::default();
    if let Some(missing) = numbers.arrived(input.u32()) {
        assert!(missing < hello::KIND);
    }
    let bytes = input.bytes(2_048);
    if let Some(addresses) = hello::parse(bytes) {
        assert_eq!(hello::parse(&hello::to_bytes(&addresses)), Some(addresses));
    }
    let _ = packet::Packet::parse(bytes);
}
