//! Messages through frames, and frames that are not of this format.

use nic_regs::vi::Reliability;

use super::super::endpoint::{Endpoint, PROVIDER_DATA_MAX, ProviderData};
use super::super::tests::Random;
use super::*;
use crate::address::{DISCRIMINATOR_MAX, HOST_ADDRESS_MAX, NetAddress};
use crate::attributes::RemoteAttributes;

fn vi() -> Endpoint {
    let attributes = RemoteAttributes {
        vi: 1023,
        connection: 0xbeef,
        reliability: Reliability::Reception,
        rdma_write: true,
        rdma_read: false,
        max_transfer: 262_144,
        qos: 0x0102_0304_0506_0708,
    };
    attributes.into()
}

/// The same with provider data of this length.
fn vi_with_data(length: u8) -> Endpoint {
    let bytes: Vec<u8> = (100..100 + length).collect();
    Endpoint { data: ProviderData::new(&bytes).unwrap(), ..vi() }
}

fn request() -> Body {
    request_of(false, vi())
}

fn request_of(peer: bool, vi: Endpoint) -> Body {
    let remote = NetAddress::new(&[1, 2, 3, 4, 5, 6], &(0..64).collect::<Vec<u8>>());
    let local = NetAddress::new(&[6, 5, 4, 3, 2, 1], b"me");
    Body::Request { vi, remote, local, peer }
}

#[test]
fn messages_survive_cutting_repeats_and_mixing() {
    let first = encode(7, &request());
    let second = encode(8, &request());
    assert_eq!(first.len(), 3);
    let mut reassembly = Reassembly::default();
    assert_eq!(reassembly.receive(0, 3, &first[0]), Ok(None));
    assert_eq!(reassembly.receive(0, 3, &second[2]), Ok(None));
    assert_eq!(reassembly.receive(0, 3, &first[0]), Ok(None));
    assert_eq!(reassembly.receive(0, 3, &first[2]), Ok(None));
    assert_eq!(reassembly.receive(0, 4, &first[1]), Ok(None), "another node");
    assert_eq!(reassembly.receive(0, 3, &first[1]), Ok(Some((7, request()))));
    assert_eq!(reassembly.receive(0, 3, &second[1]), Ok(None));
    assert_eq!(reassembly.receive(0, 3, &second[0]), Ok(Some((8, request()))));
    let attributes = vi().attributes;
    let short = [Body::Reject, Body::NoMatch, Body::Confirm, Body::Cancel];
    let bodies = [Body::Accept { vi: vi() }, Body::Mismatch { attributes }];
    for body in short.into_iter().chain(bodies) {
        let frames = encode(9, &body);
        assert_eq!(reassembly.receive(0, 3, &frames[0]), Ok(Some((9, body))));
    }
    let peer = request_of(true, vi());
    let frames = encode(7, &peer);
    assert_eq!(reassembly.receive(0, 3, &frames[2]), Ok(None));
    assert_eq!(reassembly.receive(0, 3, &frames[0]), Ok(None));
    assert_eq!(reassembly.receive(0, 3, &frames[1]), Ok(Some((7, peer))));
}

/// Without data a message is as long as one that has no place for them.
#[test]
fn provider_data_are_carried_behind_the_rest() {
    let mut reassembly = Reassembly::default();
    for length in 0..=u8::try_from(PROVIDER_DATA_MAX).unwrap() {
        let vi = vi_with_data(length);
        for (body, rest) in [
            (Body::Accept { vi }, 20),
            (request_of(false, vi), 20 + 4 + 6 + 64 + 6 + 2),
            (request_of(true, vi), 20 + 4 + 6 + 64 + 6 + 2),
        ] {
            assert_eq!(body.to_bytes().len(), rest + usize::from(length));
            let frames = encode(1, &body);
            let whole = frames.iter().map(|frame| reassembly.receive(0, 3, frame)).last();
            assert_eq!(whole, Some(Ok(Some((1, body)))));
        }
    }
    // All that may be long is.
    let address = NetAddress::new(&[1; HOST_ADDRESS_MAX], &[2; DISCRIMINATOR_MAX]);
    let (remote, local) = (address.clone(), address);
    let body = Body::Request { vi: vi_with_data(32), remote, local, peer: false };
    assert_eq!(body.to_bytes().len(), BODY_MAX);
    let frames = encode(1, &body);
    let whole = frames.iter().map(|frame| reassembly.receive(0, 3, frame)).last();
    assert_eq!(whole, Some(Ok(Some((1, body)))));
}

#[test]
fn provider_data_of_another_length_than_stated_are_refused() {
    let bytes = Body::Accept { vi: vi_with_data(8) }.to_bytes();
    assert!(Body::from_bytes(2, &bytes).is_some());
    assert_eq!(Body::from_bytes(8, &bytes), None, "Mismatch has none");
    assert_eq!(Body::from_bytes(2, &bytes[..27]), None);
    let mut long = Body::Accept { vi: vi_with_data(32) }.to_bytes();
    assert_eq!(Body::from_bytes(2, &[&long[..], &[0]].concat()), None);
    long[6] = 33;
    assert_eq!(Body::from_bytes(2, &[&long[..], &[0]].concat()), None);
}

#[test]
fn malformed_frames_are_refused_and_bounded() {
    let good = encode(7, &request());
    let mut reassembly = Reassembly::default();
    let mut check = |i: usize, value: u8| {
        let mut frame = good[0];
        frame[i] = value;
        reassembly.receive(0, 3, &frame)
    };
    assert_eq!(check(0, VERSION + 1), Err(Malformed::Version));
    assert_eq!(check(0, VERSION - 1), Err(Malformed::Version));
    assert_eq!(check(3, 4), Err(Malformed::Frame));
    assert_eq!(check(2, 5), Err(Malformed::Frame));
    assert_eq!(check(9, 0xff), Err(Malformed::Frame));
    let mut frame = encode(7, &Body::Reject)[0];
    frame[1] = 99;
    assert_eq!(reassembly.receive(0, 3, &frame), Err(Malformed::Body));
    for exchange in 0..1000 {
        let frames = encode(exchange, &request());
        assert_eq!(reassembly.receive(0, 3, &frames[0]), Ok(None));
    }
    assert_eq!(reassembly.partial.len(), PARTIAL_LIMIT);
    assert_eq!(reassembly.receive(PARTIAL_NS, 3, &good[0]), Ok(None));
    assert_eq!(reassembly.partial.len(), 1);
}

#[test]
fn random_frames_never_panic() {
    let mut random = Random::new(5);
    let mut reassembly = Reassembly::default();
    let bodies =
        [request(), request_of(true, vi_with_data(32)), Body::Accept { vi: vi_with_data(9) }];
    for _ in 0..100_000 {
        let body = &bodies[random.below(3)];
        let exchange = u32::try_from(random.below(4)).unwrap();
        let frames = encode(exchange, body);
        let mut frame = frames[random.below(frames.len())];
        for _ in 0..random.below(4) {
            frame[random.below(MESSAGE_BYTES)] = random.next().to_le_bytes()[0];
        }
        let _ = reassembly.receive(0, 1, &frame);
    }
}
