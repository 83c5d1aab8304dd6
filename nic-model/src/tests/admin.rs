//! Section 1.3 and 1.4: the admin ring and the checks of each command.

use nic_regs::admin::{AdminStatus, Opcode, PeerState};
use nic_regs::counter::Counter;
use nic_regs::csr::{ADMIN_BASE_HI, ADMIN_BASE_LO, ADMIN_SIZE, ADMIN_TAIL, CONTROL};
use nic_regs::vi::Reliability;

use super::support::*;
use crate::Model;
use crate::device::Device;
use crate::link::{Side, Wire};

fn with(mut words: [u32; 12], index: usize, value: u32) -> [u32; 12] {
    words[index - 4] = value;
    words
}

#[test]
fn the_ring_goes_round_and_echoes_cookies() {
    let mut w = Testbench::bare(&Default::default());
    for _ in 0..40 {
        assert_eq!(w.ok(A, Opcode::Nop, 99, [7; 12]), 0);
    }
    for opcode in [15, 16, 0x100, u32::MAX] {
        assert_eq!(w.admin(A, opcode, 0, [0; 12]), (AdminStatus::BadOpcode, 0));
    }
    assert_eq!(w.hosts[A].count(Counter::AdminCommands), 48);
    assert_eq!(w.hosts[A].count(Counter::AdminErrors), 4);
}

/// Addresses wrap modulo 2^64: software that places the ring across the end harms itself alone.
#[test]
fn a_ring_across_the_last_address_goes_on_at_the_first() {
    let (mut model, mut host, mut wire) = (Model::new(), Zeros::default(), Wire::new(1));
    let mut run = |model: &mut Model, cycles: core::ops::Range<u64>| {
        cycles.for_each(|now| model.step(now, &mut host, &mut wire.end(Side::A)));
        std::mem::take(&mut host.writes)
    };
    assert_eq!(run(&mut model, 0..2000), []);
    for (offset, value) in [
        (ADMIN_BASE_LO::OFFSET, 0xffff_ffc0),
        (ADMIN_BASE_HI::OFFSET, u32::MAX),
        (ADMIN_SIZE::OFFSET, 2),
        (CONTROL::OFFSET, 1),
        (ADMIN_TAIL::OFFSET, 3),
    ] {
        model.bar_write(0, offset.into(), &value.to_le_bytes());
    }
    assert_eq!(run(&mut model, 2000..2100), [u64::MAX - 63, 0, 64]);
    assert_eq!(model.counter(Counter::AdminCommands), 3);
}

#[test]
fn several_entries_run_in_order_from_one_tail() {
    let mut w = Testbench::bare(&Default::default());
    let at = |slot: u64| RING + 64 * slot;
    for slot in 4..8 {
        w.hosts[A].memory.put(at(slot), &[0; 64]);
        w.hosts[A].memory.put(at(slot), &(slot as u32 % 2 * 99).to_le_bytes());
    }
    w.hosts[A].memory.writes.clear();
    w.hosts[A].reg_write(ADMIN_TAIL::OFFSET, 8);
    w.run(20);
    let expected: Vec<_> = (4..8).map(|slot| (at(slot), 16)).collect();
    assert_eq!(w.hosts[A].memory.writes, expected);
    let status = |slot| w.hosts[A].memory.word(at(slot));
    assert_eq!([4, 5, 6, 7].map(status), [0, 1, 0, 1]);
}

#[test]
fn indices_outside_their_tables() {
    let mut w = Testbench::bare(&Default::default());
    let cases = [
        (Opcode::RegionSet, 1024, region_words()),
        (Opcode::RegionClear, 1024, [0; 12]),
        (Opcode::ViCreate, 1024, vi_words(Reliability::Delivery)),
        (Opcode::ViDestroy, 1024, [0; 12]),
        (Opcode::ViConnect, 1024, connect_words(A)),
        (Opcode::ViDisconnect, 1024, [0; 12]),
        (Opcode::ViQuery, 0x1_0000, [0; 12]),
        (Opcode::EventCreate, 256, event_words(3, 4, false, 0)),
        (Opcode::EventDestroy, 256, [0; 12]),
        (Opcode::PeerOpen, 64, [1; 12]),
        (Opcode::PeerClose, 64, [0; 12]),
        (Opcode::PeerQuery, 64, [0; 12]),
        (Opcode::MessageSend, 64, [0; 12]),
        (Opcode::MessageSend, 1 | 64 << 8, [0; 12]),
        (Opcode::MessageQueue, 64, [0; 12]),
    ];
    for (opcode, index, body) in cases {
        assert_eq!(w.command(A, opcode, index, body), AdminStatus::BadIndex, "{opcode:?}");
    }
}

#[test]
fn regions() {
    let mut w = Testbench::bare(&Default::default());
    let good = region_words();
    let bad = [
        with(good, 8, 0),
        with(good, 9, u32::from(TAG)),
        with(good, 10, 64 | 1 << 8),
        with(good, 10, 3),
        with(good, 10, 3 | 6 << 8),
        with(good, 10, 3 | 9 << 8),
        with(good, 4, VA as u32 + 64),
        with(with(good, 5, u32::MAX), 4, 0xffff_f040),
        with(with(good, 7, u32::MAX), 6, 0xffff_f040),
    ];
    for body in bad {
        assert_eq!(w.command(A, Opcode::RegionSet, 7, body), AdminStatus::BadArgument, "{body:x?}");
        assert_eq!(w.command(A, Opcode::RegionClear, 7, body), AdminStatus::BadState);
    }
    // Up to the very end of the address space is no wrap.
    let end =
        with(with(with(with(good, 5, u32::MAX), 4, 0xffff_f040), 7, u32::MAX), 6, 0xffff_f040);
    w.ok(A, Opcode::RegionSet, 7, with(end, 8, 0xfc0));
    assert_eq!(w.command(A, Opcode::RegionSet, 7, with(end, 8, 0xfc1)), AdminStatus::BadArgument);
    assert_eq!(w.command(A, Opcode::RegionSet, 7, good), AdminStatus::BadState);
    w.ok(A, Opcode::RegionClear, 7, [0; 12]);
    assert_eq!(w.command(A, Opcode::RegionClear, 7, [0; 12]), AdminStatus::BadState);
    w.ok(A, Opcode::RegionSet, 7, good);
    w.ok(A, Opcode::RegionSet, 1023, with(good, 10, 63 | 7 << 8));
}

#[test]
fn vis() {
    let mut w = Testbench::bare(&Default::default());
    let good = vi_words(Reliability::Reception);
    let bad = [
        with(good, 4, 64 | 4 << 8),
        with(good, 4, 3),
        with(good, 4, 3 | 3 << 8),
        with(good, 4, 3 | 8 << 8),
        with(good, 5, 256),
        with(good, 5, 0xfffe << 16 | 1),
        with(good, 6, 0),
        with(good, 6, 256 * 1024 + 1),
    ];
    for body in bad {
        assert_eq!(w.command(A, Opcode::ViCreate, 4, body), AdminStatus::BadArgument, "{body:x?}");
    }
    for opcode in [Opcode::ViConnect, Opcode::ViDisconnect, Opcode::ViDestroy] {
        assert_eq!(w.command(A, opcode, 4, connect_words(A)), AdminStatus::BadState);
    }
    assert_eq!(w.ok(A, Opcode::ViQuery, 4, [0; 12]), 0);
    w.ok(A, Opcode::ViCreate, 4, with(good, 5, 255 | 0xffff << 16));
    assert_eq!(w.command(A, Opcode::ViCreate, 4, good), AdminStatus::BadState);
    // Body before state, index before body.
    assert_eq!(w.command(A, Opcode::ViCreate, 4, with(good, 6, 0)), AdminStatus::BadArgument);
    assert_eq!(w.command(A, Opcode::ViCreate, 1024, with(good, 6, 0)), AdminStatus::BadIndex);
    let far = with(connect_words(A), 4, 64);
    assert_eq!(w.command(A, Opcode::ViConnect, 4, far), AdminStatus::BadArgument);
    assert_eq!(w.ok(A, Opcode::ViQuery, 4, [0; 12]), 1);
    w.ok(A, Opcode::ViConnect, 4, connect_words(A));
    assert_eq!(w.ok(A, Opcode::ViQuery, 4, [0; 12]), 2);
    assert_eq!(w.command(A, Opcode::ViConnect, 4, connect_words(A)), AdminStatus::BadState);
    assert_eq!(w.command(A, Opcode::ViDestroy, 4, [0; 12]), AdminStatus::BadState);
    w.ok(A, Opcode::ViDisconnect, 4, [0; 12]);
    w.run(10); // The peer is not open: the pending Fin is forgotten.
    w.ok(A, Opcode::ViDisconnect, 4, [0; 12]);
    w.ok(A, Opcode::ViDestroy, 4, [0; 12]);
    assert_eq!(w.ok(A, Opcode::ViQuery, 4, [0; 12]), 0);
    w.ok(A, Opcode::ViCreate, 4, good);
}

#[test]
fn event_queues() {
    let mut w = Testbench::bare(&Default::default());
    let good = event_words(3, 2, false, 31);
    let size = |log2: u32| log2 | 31 << 16;
    let bad = [
        with(good, 6, size(1)),
        with(good, 6, size(0)),
        with(good, 6, 4 | 64 << 8),
        with(good, 6, 4 | 32 << 16),
        with(good, 4, 0x8020),
    ];
    for body in bad {
        let status = w.command(A, Opcode::EventCreate, 255, body);
        assert_eq!(status, AdminStatus::BadArgument, "{body:x?}");
    }
    assert_eq!(w.command(A, Opcode::EventDestroy, 255, good), AdminStatus::BadState);
    w.ok(A, Opcode::EventCreate, 255, with(good, 6, size(15)));
    assert_eq!(w.command(A, Opcode::EventCreate, 255, good), AdminStatus::BadState);
    w.ok(A, Opcode::EventDestroy, 255, [0; 12]);
    w.ok(A, Opcode::EventCreate, 255, good);
    assert_eq!(w.command(A, Opcode::MessageQueue, 3, with(good, 4, 256)), AdminStatus::BadArgument);
    w.ok(A, Opcode::MessageQueue, 3, with(good, 4, 0xffff));
    w.ok(A, Opcode::MessageQueue, 63, with(good, 4, 255));
}

#[test]
fn peers() {
    let mut w = Testbench::bare(&Default::default());
    let node = u32::from(NODES[B]);
    for credits in [0, 65, 255] {
        let body = with([0; 12], 5, credits);
        assert_eq!(w.command(A, Opcode::PeerOpen, node, body), AdminStatus::BadArgument);
    }
    assert_eq!(w.command(A, Opcode::PeerClose, node, [0; 12]), AdminStatus::BadState);
    assert_eq!(w.command(A, Opcode::MessageSend, node, [0; 12]), AdminStatus::PeerDown);
    assert_eq!(w.ok(A, Opcode::PeerQuery, node, [0; 12]), PeerState::Closed as u32);
    w.open(A, 64);
    assert_eq!(w.ok(A, Opcode::PeerQuery, node, [0; 12]), PeerState::Opening as u32);
    let again = with([0; 12], 5, 1);
    assert_eq!(w.command(A, Opcode::PeerOpen, node, again), AdminStatus::BadState);
    w.open(B, 64);
    w.settle();
    assert_eq!(w.ok(A, Opcode::PeerQuery, node, [0; 12]), PeerState::Open as u32);
    w.ok(A, Opcode::PeerClose, node, [0; 12]);
    assert_eq!(w.ok(A, Opcode::PeerQuery, node, [0; 12]), PeerState::Closed as u32);
}
