//! The admin ring: every check of every command in the contract's order, and the ring itself.

use cosim::testbench::host::BUS_BASE;
use cosim::testbench::{high, low, va};
use nic_regs::admin::AdminStatus::{BadArgument, BadIndex, BadOpcode, BadState, Ok, PeerDown};
use nic_regs::admin::{AdminStatus, DONE, Opcode, PeerState};
use nic_regs::counter::{Counter, ErrorCode, ErrorRecord};
use nic_regs::csr::{ADMIN_BASE_HI, ADMIN_BASE_LO, ADMIN_HEAD, ADMIN_SIZE, ADMIN_TAIL};
use nic_regs::csr::{CONTROL, STATUS};
use nic_regs::tpt::Handle;
use nic_regs::vi::{Reliability, State};
use tests::bare::{ADMIN_LOG2, Bare, NOWHERE, command};
use tests::vi::{region_at, region_body, vi_body};
use tests::{DeviceKind, on_every_kind};

/// Commands of one kind on node 0, with the status of each.
#[track_caller]
fn check(bare: &mut Bare, opcode: Opcode, cases: &[(u32, &[u32], AdminStatus)]) {
    for (number, &(index, body, expected)) in cases.iter().enumerate() {
        let (status, result) = bare.admin(0, opcode, index, body);
        assert_eq!(status, expected, "{opcode:?} {index:#x} {body:x?} (case {number})");
        if status != Ok {
            assert_eq!(result, 0, "{opcode:?} (case {number})");
        }
    }
}

/// A body with one word changed.
fn with<const N: usize>(body: [u32; N], word: usize, value: u32) -> [u32; N] {
    let mut body = body;
    body[word] = value;
    body
}

const HANDLE: Handle = Handle::new(0, 5);

fn regions(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    let good = region_body(0, 4096, HANDLE);
    let bad = [
        with(good, 4, 0),
        // Rights: none, one too many, all but VALID.
        with(good, 6, 1),
        with(good, 6, 1 | 0x900),
        with(good, 6, 1 | 0x8100),
        with(good, 6, 1 | 0x600),
        with(good, 6, 64 | 0x100),
        with(good, 6, 255 | 0x100),
        with(good, 5, 7),
        with(good, 0, good[0] + 64),
        with(good, 2, good[2] + 2048),
        // One byte beyond the end of each address space.
        region_at(u64::MAX - 4095, BUS_BASE, 4097, HANDLE),
        region_at(va(0), u64::MAX - 4095, 4097, HANDLE),
        region_at(va(0), u64::MAX - 4095, 0xffff_ffff, HANDLE),
    ];
    for body in &bad {
        check(
            &mut bare,
            Opcode::RegionSet,
            &[(1024, body, BadIndex), (1023, body, BadArgument), (0x1_0000, body, BadIndex)],
        );
    }
    check(&mut bare, Opcode::RegionClear, &[(1024, &[], BadIndex), (1023, &[], BadState)]);
    let last = region_at(u64::MAX - 4095, u64::MAX - 4095, 4096, HANDLE);
    let all = with(good, 6, 63 | 0x700);
    check(
        &mut bare,
        Opcode::RegionSet,
        &[
            (1023, &good, Ok),
            (1023, &good, BadState),
            (1023, &bad[0], BadArgument),
            (1022, &last, Ok),
            (0, &all, Ok),
            (1024, &good, BadIndex),
            (u32::MAX, &good, BadIndex),
        ],
    );
    check(
        &mut bare,
        Opcode::RegionClear,
        &[(1023, &[], Ok), (1023, &[], BadState), (1022, &[], Ok), (0, &[], Ok)],
    );
    check(&mut bare, Opcode::RegionSet, &[(1023, &good, Ok)]);
}

fn vis_created_and_asked(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    let good = vi_body(Reliability::Delivery);
    let level = |bits: u32| with(good, 0, good[0] & !0xff00 | bits << 8);
    let bad = [
        with(good, 0, good[0] & !0xff | 64),
        level(0),
        level(3),
        level(8),
        level(0x12),
        with(good, 1, 256),
        with(good, 1, 256 << 16),
        with(good, 1, 0xfffe),
        with(good, 2, 0),
        with(good, 2, 262_145),
        with(good, 2, 0x8000_0001),
    ];
    for body in &bad {
        let cases: &[(u32, &[u32], AdminStatus)] =
            &[(1024, body, BadIndex), (1023, body, BadArgument)];
        check(&mut bare, Opcode::ViCreate, cases);
    }
    let none = with(good, 1, 0xffff_ffff);
    let small = with(good, 2, 1);
    check(
        &mut bare,
        Opcode::ViCreate,
        &[
            (1023, &none, Ok),
            (1023, &good, BadState),
            (1023, &bad[0], BadArgument),
            (0, &small, Ok),
            (u32::MAX, &good, BadIndex),
        ],
    );
    check(
        &mut bare,
        Opcode::ViQuery,
        &[(1024, &[], BadIndex), (5, &[], Ok), (0, &[], Ok), (1023, &[], Ok)],
    );
    assert_eq!(bare.ok(0, Opcode::ViQuery, 5, &[]), State::Free as u32);
    assert_eq!(bare.ok(0, Opcode::ViQuery, 1023, &[]), State::Idle as u32);
}

fn vis_connected_and_destroyed(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    let good = vi_body(Reliability::Delivery);
    check(&mut bare, Opcode::ViCreate, &[(1023, &good, Ok), (0, &good, Ok)]);
    let peer = [2 | 7 << 16, 1];
    check(
        &mut bare,
        Opcode::ViConnect,
        &[
            (1024, &[64, 0], BadIndex),
            (5, &[64, 0], BadArgument),
            (5, &peer, BadState),
            (1023, &[64, 0], BadArgument),
            // To a node whose channel is closed: it waits.
            (0, &[9, 1], Ok),
            (1023, &peer, Ok),
            (1023, &peer, BadState),
            (1023, &[64, 0], BadArgument),
        ],
    );
    check(
        &mut bare,
        Opcode::ViDestroy,
        &[(1024, &[], BadIndex), (5, &[], BadState), (1023, &[], BadState), (0, &[], BadState)],
    );
    check(
        &mut bare,
        Opcode::ViDisconnect,
        &[
            (1024, &[], BadIndex),
            (5, &[], BadState),
            (1023, &[], Ok),
            (1023, &[], Ok),
            (0, &[], Ok),
        ],
    );
    bare.settle();
    let twice: &[(u32, &[u32], AdminStatus)] = &[(1023, &[], Ok), (1023, &[], BadState)];
    check(&mut bare, Opcode::ViDestroy, twice);
    check(&mut bare, Opcode::ViDestroy, &[(0, &[], Ok)]);
    check(&mut bare, Opcode::ViCreate, &[(1023, &good, Ok), (0, &good, Ok)]);
}

fn event_queues(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    let ring = BUS_BASE + 0x8_0000;
    let good = [low(ring), high(ring), 4 | 1 << 8 | 2 << 16];
    let bad = [
        with(good, 2, 0),
        with(good, 2, 1),
        with(good, 2, 4 | 64 << 8),
        with(good, 2, 4 | 32 << 16),
        with(good, 2, 4 | 255 << 16),
        with(good, 0, good[0] + 16),
        with(good, 0, good[0] + 1),
    ];
    for body in &bad {
        let cases: &[(u32, &[u32], AdminStatus)] =
            &[(256, body, BadIndex), (255, body, BadArgument), (0, body, BadArgument)];
        check(&mut bare, Opcode::EventCreate, cases);
    }
    let largest = with(good, 2, 15 | 1 << 4 | 63 << 8 | 31 << 16);
    check(
        &mut bare,
        Opcode::EventCreate,
        &[
            (255, &largest, Ok),
            (255, &good, BadState),
            (0, &good, BadState),
            (256, &good, BadIndex),
        ],
    );
    check(
        &mut bare,
        Opcode::EventDestroy,
        &[(256, &[], BadIndex), (254, &[], BadState), (255, &[], Ok), (255, &[], BadState)],
    );
    check(
        &mut bare,
        Opcode::MessageQueue,
        &[
            (64, &[256], BadIndex),
            (63, &[256], BadArgument),
            (63, &[0xfffe], BadArgument),
            (63, &[255], Ok),
            (63, &[0xffff], Ok),
        ],
    );
}

fn peers_and_messages(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    check(
        &mut bare,
        Opcode::PeerOpen,
        &[
            (64, &[1, 0], BadIndex),
            (9, &[1, 0], BadArgument),
            (9, &[1, 65], BadArgument),
            (2, &[1, 0], BadArgument),
            (2, &[1, 64], BadState),
            (9, &[1, 1], Ok),
            (9, &[1, 1], BadState),
        ],
    );
    assert_eq!(bare.ok(0, Opcode::PeerQuery, 9, &[]), PeerState::Opening as u32);
    check(
        &mut bare,
        Opcode::MessageSend,
        &[
            (64, &[1; 12], BadIndex),
            (64 << 8 | 2, &[1; 12], BadIndex),
            (255 << 8 | 63, &[1; 12], BadIndex),
            (9, &[1; 12], PeerDown),
            (10, &[1; 12], PeerDown),
            (2, &[1; 12], Ok),
            (0xffff_0002, &[1; 12], Ok),
        ],
    );
    check(
        &mut bare,
        Opcode::PeerClose,
        &[(64, &[], BadIndex), (10, &[], BadState), (9, &[], Ok), (9, &[], BadState)],
    );
    check(&mut bare, Opcode::PeerQuery, &[(64, &[], BadIndex), (63, &[], Ok)]);
    let states = [2, 9, 63].map(|peer| bare.ok(0, Opcode::PeerQuery, peer, &[]));
    assert_eq!(states, [PeerState::Open as u32, 0, 0]);
}

fn unknown_opcodes(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    let before = [Counter::AdminCommands, Counter::AdminErrors].map(|c| bare.counter(0, c));
    for opcode in [15, 16, 0x100, 0x1_0000, 0x8000_0000, u32::MAX] {
        let entry = command(opcode, u32::MAX, &[u32::MAX; 12]);
        let answer = bare.try_admin(0, entry).expect("the ring goes on");
        assert_eq!(answer, [BadOpcode as u32, 0, entry[2], DONE], "{opcode:#x}");
    }
    check(&mut bare, Opcode::Nop, &[(u32::MAX, &[7; 12], Ok), (0, &[], Ok)]);
    let after = [Counter::AdminCommands, Counter::AdminErrors].map(|c| bare.counter(0, c));
    assert_eq!(after, [before[0] + 8, before[1] + 6]);
}

fn a_batch_runs_in_order_and_the_ring_wraps(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    let create = command(Opcode::ViCreate as u32, 9, &vi_body(Reliability::Reception));
    let connect = command(Opcode::ViConnect as u32, 9, &[2, 1]);
    let disconnect = command(Opcode::ViDisconnect as u32, 9, &[]);
    let query = command(Opcode::ViQuery as u32, 9, &[]);
    let region = command(Opcode::RegionSet as u32, 1, &region_body(0, 64, HANDLE));
    let clear = command(Opcode::RegionClear as u32, 1, &[]);
    let batch = [
        query, create, query, create, connect, query, connect, disconnect, query, region, region,
        clear, clear, region, clear, query,
    ];
    assert_eq!(batch.len(), 1 << ADMIN_LOG2);
    let expected =
        [0, 0, 0, 3, 0, 0, 3, 0, 0, 0, 3, 0, 3, 0, 0, 0].map(|status| (status, DONE)).to_vec();
    for round in 0..3 {
        let tail = bare.admin_fill(0, &batch);
        bare.write(0, ADMIN_TAIL::OFFSET, tail);
        bare.settle();
        assert_eq!(bare.read(0, ADMIN_HEAD::OFFSET), tail);
        // The ring's first entry moves on as other commands come between.
        let first = usize::try_from(tail).unwrap();
        let word =
            |i: usize, word: usize| bare.host(0).word(64 * ((first + i) % batch.len()) + 4 * word);
        let answers: Vec<_> = (0..batch.len()).map(|i| (word(i, 0), word(i, 3))).collect();
        assert_eq!(answers, expected, "round {round}");
        let states = [0, 2, 5, 8].map(|i| word(i, 1) & 0xf);
        assert_eq!(states, [0, 1, 2, 1]);
        for (i, entry) in batch.iter().enumerate() {
            assert_eq!(word(i, 2), entry[2], "cookie");
            let body: Vec<u32> = (4..16).map(|n| word(i, n)).collect();
            assert_eq!(body, entry[4..], "the completion has 16 bytes");
        }
        bare.ok(0, Opcode::ViDestroy, 9, &[]);
        for _ in 0..round {
            bare.ok(0, Opcode::Nop, 0, &[]);
        }
    }
}

fn rings_of_one_and_of_256_entries(kind: DeviceKind) {
    for log2 in [0, 8] {
        let mut bare = Bare::new(kind);
        bare.configure(0);
        bare.write(0, ADMIN_SIZE::OFFSET, log2);
        let entries = 1 << log2;
        for n in 0..entries + 3 {
            let entry = command(Opcode::Nop as u32, u32::try_from(n).unwrap(), &[]);
            let bytes: Vec<u8> = entry.iter().flat_map(|word| word.to_le_bytes()).collect();
            let slot = 64 * (n % entries);
            bare.host_mut(0).put(slot, &bytes);
            bare.write(0, ADMIN_TAIL::OFFSET, u32::try_from(n + 1).unwrap());
            bare.wait("a command", |bare| bare.host(0).word(slot + 12) == DONE);
            assert_eq!(bare.host(0).word(slot + 8), entry[2]);
        }
        assert_eq!(bare.counter(0, Counter::AdminCommands), u32::try_from(entries + 3).unwrap());
    }
}

fn the_ring_rests_while_the_device_is_disabled(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    bare.write(0, CONTROL::OFFSET, 0);
    let tail = bare.admin_fill(0, &[command(Opcode::Nop as u32, 0, &[])]);
    bare.write(0, ADMIN_TAIL::OFFSET, tail);
    bare.bench.run(2000);
    let slot = 64 * usize::try_from((tail - 1) % (1 << ADMIN_LOG2)).unwrap();
    assert_eq!(bare.host(0).word(slot + 12), 0);
    let busy = STATUS::READY.mask() | STATUS::ADMIN_BUSY.mask();
    assert_eq!(bare.read(0, STATUS::OFFSET), busy);
    bare.write(0, CONTROL::OFFSET, CONTROL::ENABLE.mask());
    bare.wait("the command", |bare| bare.host(0).word(slot + 12) == DONE);
    bare.settle();
    assert_eq!(bare.read(0, STATUS::OFFSET), STATUS::READY.mask());
}

fn an_entry_that_cannot_be_read_stops_the_ring(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    bare.register();
    let mut vis = bare.connected(Reliability::Delivery, 9, 0);
    let head = bare.read(0, ADMIN_HEAD::OFFSET);
    let commands = bare.counter(0, Counter::AdminCommands);
    bare.write(0, ADMIN_BASE_LO::OFFSET, low(NOWHERE));
    bare.write(0, ADMIN_BASE_HI::OFFSET, high(NOWHERE));
    bare.write(0, ADMIN_TAIL::OFFSET, head + 2);
    bare.settle();
    let failed = STATUS::READY.mask() | STATUS::ADMIN_BUSY.mask() | STATUS::ADMIN_FAILED.mask();
    assert_eq!(bare.read(0, STATUS::OFFSET), failed);
    assert_eq!(bare.read(0, ADMIN_HEAD::OFFSET), head);
    assert_eq!(bare.counter(0, Counter::AdminCommands), commands);
    assert!(bare.counter(0, Counter::ReadErrors) >= 1);
    let code = u8::try_from(ErrorCode::AdminFetch as u32).unwrap();
    let log = bare.take_log(0);
    assert!(log.contains(&ErrorRecord { code, index: 0, detail: head }), "{log:?}");
    // Until a reset it stays so, though the entries could be read; the data path goes on.
    bare.write(0, ADMIN_BASE_HI::OFFSET, high(BUS_BASE));
    bare.write(0, ADMIN_TAIL::OFFSET, head + 3);
    bare.settle();
    assert_eq!(bare.read(0, STATUS::OFFSET), failed);
    bare.assert_delivers(&mut vis, 5000);
    bare.soft_reset(0);
    bare.soft_reset(1);
    bare.bring_up().expect("the ring runs again");
    bare.assert_no_stray_writes();
}

on_every_kind! {
    regions,
    vis_created_and_asked,
    vis_connected_and_destroyed,
    event_queues,
    peers_and_messages,
    unknown_opcodes,
    a_batch_runs_in_order_and_the_ring_wraps,
    rings_of_one_and_of_256_entries,
    the_ring_rests_while_the_device_is_disabled,
    an_entry_that_cannot_be_read_stops_the_ring,
}
