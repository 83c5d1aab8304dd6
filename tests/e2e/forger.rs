//! A forger on the link: other versions, forged nodes, tags, types, numbers and connections,
//! resets, floods. Nobody is disturbed, and every forged frame is counted for what is wrong with it.

use std::sync::{Arc, Mutex};

use nic_regs::counter::Counter;
use tests::forger::{Forger, Forgery};
use tests::{DeviceKind, Pair, Setup, on_every_kind};

use crate::stress;

fn forged(kind: DeviceKind, seed: u64, share: u32) {
    let pair = Pair::with(&Setup::with_faults(kind, seed, Default::default()));
    let forger = Forger::new(seed);
    pair.simulation.wrap_network(|network| Arc::new(Mutex::new(forger.tap(network))));
    let count = |counter| pair.a.driver.counter(counter).unwrap();
    let checked = [
        (Counter::DropVersion, vec![Forgery::Version, Forgery::SynOfVersion]),
        (Counter::DropNode, vec![Forgery::Destination, Forgery::Source]),
        (Counter::DropTag, vec![Forgery::Tag]),
        (Counter::DropLength, vec![Forgery::Kind, Forgery::Length, Forgery::Unsequenced]),
        (Counter::DropCrc, vec![Forgery::Crc]),
    ];
    forger.forge(share);
    stress::exchange(&pair, seed);
    forger.forge(0);
    pair.simulation.run_until_idle(2_000_000).unwrap();
    for (counter, forgeries) in checked {
        let sent: u32 = forgeries.iter().map(|forgery| forger.sent(*forgery)).sum();
        assert!(sent > 0, "{forgeries:?}");
        assert_eq!(count(counter), sent, "{counter:?} of {forgeries:?}, seed {seed}");
    }
    assert!(count(Counter::DropDuplicate) >= forger.sent(Forgery::Again));
    assert!(count(Counter::DropOrder) >= forger.sent(Forgery::Ahead));
}

fn frames_that_no_honest_peer_sends_disturb_nobody(kind: DeviceKind) {
    for seed in 1..=kind.size(4, 2) {
        forged(kind, seed, 1);
    }
}

/// Many forged frames for each honest one; most of them ask for an answer.
fn a_flood_of_forged_frames_stops_nobody(kind: DeviceKind) {
    forged(kind, 5, 12);
}

on_every_kind! {
    frames_that_no_honest_peer_sends_disturb_nobody,
    a_flood_of_forged_frames_stops_nobody,
}
