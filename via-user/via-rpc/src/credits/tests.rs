//! Two sides of flow control, in every order of events.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// A side, what it has received and not posted again, and the packets on their way to it.
struct Side {
    credits: Credits,
    spent: u32,
    sent: u32,
    got: u32,
    inbox: VecDeque<Header>,
}

fn sides(windows: [u8; 2]) -> [Side; 2] {
    [[0, 1], [1, 0]].map(|[own, theirs]| Side {
        credits: Credits::new(windows[own], windows[theirs]),
        spent: 0,
        sent: 0,
        got: 0,
        inbox: VecDeque::new(),
    })
}

impl Side {
    fn control(&mut self, other: &mut Self) {
        while let Some(header) = self.credits.control() {
            // As packets go over the wire.
            other.inbox.push_back(Header::from_bits(header.to_bits()).unwrap());
        }
    }

    fn send(&mut self, other: &mut Self) -> bool {
        let Some(header) = self.credits.send() else { return false };
        self.sent += 1;
        other.inbox.push_back(header);
        self.control(other);
        true
    }

    fn receive(&mut self, other: &mut Self) {
        let Some(header) = self.inbox.pop_front() else { return };
        self.credits.receive(header).unwrap();
        if header.kind == Kind::Data {
            self.spent += 1;
            self.got += 1;
        }
        self.control(other);
    }

    fn post(&mut self, other: &mut Self) {
        if self.spent > 0 {
            self.spent -= 1;
            self.credits.posted();
            self.control(other);
        }
    }
}

/// Both sides of the pair, the one that acts first.
fn turned(pair: &mut [Side; 2], side: bool) -> (&mut Side, &mut Side) {
    let [a, b] = pair;
    if side { (b, a) } else { (a, b) }
}

proptest! {
    /// No packet of data finds no receive, whatever the order of events, and whoever waits for credits
    /// gets them once everything is received and posted.
    #[test]
    fn data_always_finds_a_receive_and_nobody_waits_for_ever(
        windows in [1_u8.., 1_u8..],
        steps in proptest::collection::vec((any::<bool>(), 0..4_u8), 0..2000),
    ) {
        let mut pair = sides(windows);
        for (side, step) in steps {
            let (a, b) = turned(&mut pair, side);
            match step {
                0 | 1 => _ = a.send(b),
                2 => a.receive(b),
                _ => a.post(b),
            }
            let waiting = a.inbox.iter().filter(|header| header.kind == Kind::Data).count();
            prop_assert!(waiting + a.spent as usize <= usize::from(a.credits.own));
            // A receive for one RTS and one CTS is enough beside those for data.
            let others = a.inbox.iter().filter(|header| header.kind != Kind::Data);
            prop_assert!(others.count() <= 2);
        }
        for side in [false, true, false, true, false, true] {
            let (a, b) = turned(&mut pair, side);
            while !a.inbox.is_empty() || a.spent > 0 {
                a.receive(b);
                a.post(b);
            }
        }
        for side in [false, true] {
            let (a, b) = turned(&mut pair, side);
            prop_assert!(a.send(b));
            let data = b.inbox.iter().filter(|header| header.kind == Kind::Data);
            prop_assert_eq!(b.got + u32::try_from(data.count()).unwrap(), a.sent);
        }
    }
}

/// A call with an answer never needs RTS and CTS, also when numbers wrap around.
#[test]
fn answers_return_the_credits_of_requests() {
    let mut pair = sides([4, 4]);
    for call in 0..3000 {
        for side in [false, true] {
            let (a, b) = turned(&mut pair, side);
            assert!(a.send(b), "call {call}");
            assert_eq!(b.inbox.len(), 1, "call {call}");
            b.receive(a);
            b.post(a);
        }
    }
}

/// Credits below the watermark are requested once, before there are none.
#[test]
fn an_rts_is_sent_below_the_low_watermark() {
    let [mut a, mut b] = sides([8, 8]);
    let kinds = |side: &Side| side.inbox.iter().map(|header| header.kind).collect::<Vec<_>>();
    for _ in 0..6 {
        a.send(&mut b);
    }
    assert!(!kinds(&b).contains(&Kind::Rts));
    a.send(&mut b);
    assert_eq!(a.credits.available(), 1);
    assert_eq!(kinds(&b).pop(), Some(Kind::Rts));
    a.send(&mut b);
    assert_eq!(kinds(&b).iter().filter(|kind| **kind == Kind::Rts).count(), 1);
    // The response is deferred until as many receives are free.
    while !b.inbox.is_empty() {
        b.receive(&mut a);
    }
    b.post(&mut a);
    assert!(kinds(&a).is_empty());
    b.post(&mut a);
    assert_eq!(kinds(&a), [Kind::Cts]);
    a.receive(&mut b);
    assert_eq!(a.credits.available(), 2);
}

#[test]
fn a_side_that_breaks_the_rules_is_named() {
    let start = || Credits::new(2, 2);
    let fine = start().header(Kind::Data);
    let refused = |credits: &mut Credits, header| credits.receive(header).unwrap_err();
    let wrong = Header { sequence: Sequence::new(1), ..fine };
    let expected = CreditViolation::Sequence { found: 1, due: 0 };
    assert_eq!(refused(&mut start(), wrong), expected);
    let mut credits = start();
    for number in 0..2 {
        credits.receive(Header { sequence: Sequence::new(number), ..fine }).unwrap();
    }
    let third = Header { sequence: Sequence::new(2), ..fine };
    assert_eq!(refused(&mut credits, third), CreditViolation::NoCredit);
    let future = Header { expected: Sequence::new(1), ..fine };
    assert_eq!(refused(&mut start(), future), CreditViolation::Expected(1023));
    for (found, least) in [(3, 2), (1, 2)] {
        let grant = CreditViolation::Grant { found, least, most: 2 };
        assert_eq!(refused(&mut start(), Header { credits: found, ..fine }), grant);
    }
    let rts = Header { kind: Kind::Rts, ..fine };
    let mut credits = start();
    credits.receive(rts).unwrap();
    assert_eq!(refused(&mut credits, rts), CreditViolation::Rts);
    let cts = Header { kind: Kind::Cts, ..fine };
    assert_eq!(refused(&mut start(), cts), CreditViolation::Cts);
}
