//! Packets that are forged, truncated, replayed, or from elsewhere; keys.

use std::net::UdpSocket;
use std::time::Duration;

use port::Reliability::{Delivery, Reception};
use soft_nic::net::{Key, Options};
use vipl::{ViState, VipReturn};

use crate::ends::{End, LONG, connect, options, pair};
use crate::relay::{Faults, Relay};

/// Sends `count` messages there and back.
fn ping_pong(a: &End, b: &End, count: u32) {
    for number in 0..count {
        for (from, to) in [(a, b), (b, a)] {
            to.vi.post_recv(&to.descriptor(0, 4_096, 4)).unwrap();
            from.region.memory().copy_from(8_192, &number.to_le_bytes());
            from.vi.post_send(&from.descriptor(1, 8_192, 4)).unwrap();
            to.vi.recv_wait(LONG).unwrap();
            from.vi.send_wait(LONG).unwrap();
            assert_eq!(to.region.memory().to_vec(4_096, 4), number.to_le_bytes());
        }
    }
}

#[test]
fn forged_truncated_and_replayed_packets_change_nothing() {
    let faults = Faults { truncated: 30, replayed: 30, forged: 50, ..Faults::default() };
    for level in [Delivery, Reception] {
        let relay = Relay::new(faults);
        let (a, b) = pair(&relay, level, &options(20_000));
        ping_pong(&a, &b, 500);
        let seen = |name| a.counter(name) + b.counter(name);
        for name in ["malformed", "bad version", "duplicates"] {
            assert!(seen(name) > 0, "{name}");
        }
        assert_eq!((a.vi.state(), b.vi.state()), (ViState::Connected, ViState::Connected));
    }
}

#[test]
fn packets_from_elsewhere_are_counted_and_answered_with_a_reset_at_most() {
    let (a, b) = (End::new(Delivery, &options(5_000)), End::new(Delivery, &options(5_000)));
    connect(&a, &b, b.address).unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    other.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // An acknowledgement with a token that nobody has: version, kind, flags, VI, length.
    let mut packet = [0; 32];
    packet[..8].copy_from_slice(&[1, 2, 0, 0, 0, 0, 32, 0]);
    packet[8..16].copy_from_slice(&0x1234_u64.to_le_bytes());
    other.send_to(&packet, b.address).unwrap();
    let mut answer = [0; 100];
    assert_eq!(other.recv(&mut answer).unwrap(), 16);
    assert_eq!(answer[8..16], packet[8..16]);
    // A reset that does not know how the connection is named resets nothing.
    other.send_to(&answer[..16], b.address).unwrap();
    other.send_to(&[], b.address).unwrap();
    ping_pong(&a, &b, 10);
    assert_eq!(b.counter("unknown connection"), 1);
    assert_eq!(b.vi.state(), ViState::Connected);
}

#[test]
fn nodes_with_one_key_connect_and_others_do_not() {
    let with = |key: &str| Options { key: Key::new(key.as_bytes()), ..options(5_000) };
    let (a, b) = (End::new(Delivery, &with("secret")), End::new(Delivery, &with("secret")));
    connect(&a, &b, b.address).unwrap();
    ping_pong(&a, &b, 10);
    for (one, other) in [("secret", "other"), ("secret", ""), ("", "secret")] {
        let (a, b) = (End::new(Delivery, &with(one)), End::new(Delivery, &with(other)));
        let remote = port::NetAddress::new(&crate::ends::host(b.address), b"service");
        let local = port::NetAddress::new(&crate::ends::host(a.address), b"");
        let failed = a.vi.connect_request(&local, &remote, Duration::from_millis(300));
        assert_eq!(failed.unwrap_err().code, VipReturn::Timeout);
        assert!(b.counter("bad authentication") > 0);
    }
}
