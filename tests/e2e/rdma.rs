//! RDMA through VIPL: writes, reads, notification, rights, order, bad links.

use nic_model::link::Faults;
use nic_regs::counter::Counter;
use nic_regs::desc::status::{
    DESC_FLUSHED_ERROR, FORMAT_ERROR, OP_RDMA_READ, OP_RDMA_WRITE, OP_REMOTE_RDMA_WRITE,
    RDMA_PROT_ERROR, TRANSPORT_ERROR,
};
use tests::{
    Buffer, DeviceKind, LEVELS, LONG, Pair, Setup, code, error_bits, on_every_kind, pattern,
    skipped,
};
use vipl::{
    ErrorCode, MemAttributes, Region, Reliability, RemoteBuffer, Vi, ViAttributes, ViState,
    VipReturn,
};

const RELIABLE: [Reliability; 2] = [Reliability::Delivery, Reliability::Reception];
/// Where data begins in the regions here; descriptors are in front of it.
const DATA: usize = 4096;

/// Whether the device has RDMA writes; says so if not.
fn has_writes(pair: &Pair, kind: DeviceKind) -> bool {
    let writes = pair.a.driver.capabilities().rdma_write;
    if !writes {
        skipped(kind, "RDMA writes");
    }
    writes
}

/// Whether the device has RDMA reads; says so if not.
fn has_reads(pair: &Pair, kind: DeviceKind) -> bool {
    let reads = pair.a.driver.capabilities().rdma_read;
    if !reads {
        skipped(kind, "RDMA reads");
    }
    reads
}

/// Whether the device has both; says so if not.
fn has_rdma(pair: &Pair, kind: DeviceKind) -> bool {
    has_writes(pair, kind) && has_reads(pair, kind)
}

/// Two connected VIs that allow RDMA, and a region of `bytes` on each side.
fn connected(pair: &Pair, level: Reliability, bytes: usize) -> ([Vi; 2], [Region; 2]) {
    let vis = [pair.a.open_vi(level), pair.b.open_vi(level)];
    pair.connect(&vis[0], &vis[1]);
    (vis, [pair.a.open_region(DATA + bytes), pair.b.open_region(DATA + bytes)])
}

fn segment(region: &Region, bytes: usize) -> vipl::Segment {
    region.segment(DATA, u32::try_from(bytes).unwrap())
}

/// Posts an RDMA write of `bytes` from the start of one region to the start of the other.
fn write(vi: &Vi, regions: &[Region; 2], bytes: usize, immediate: Option<u32>) {
    let descriptor = regions[0].descriptor(0, 2).unwrap();
    let local = [segment(&regions[0], bytes)];
    descriptor.prepare_rdma_write(regions[1].remote(DATA), &local, immediate).unwrap();
    vi.post_send(&descriptor).unwrap();
}

fn read(vi: &Vi, local: &Region, slot: usize, remote: RemoteBuffer, bytes: usize) {
    let descriptor = local.descriptor(slot, 2).unwrap();
    descriptor.prepare_rdma_read(remote, &[segment(local, bytes)]).unwrap();
    vi.post_send(&descriptor).unwrap();
}

fn writes_and_reads_of_every_length(kind: DeviceKind) {
    let pair = Pair::new(kind);
    if !has_writes(&pair, kind) {
        return;
    }
    let reads = has_reads(&pair, kind);
    for level in LEVELS {
        let ([a, b], regions) = connected(&pair, level, 262_144);
        for bytes in [0, 1, 8, 4095, 4096, 4097, 20_000, 262_144] {
            // What staging does not hold may be lost: a slow host takes frames slower than they come.
            if level == Reliability::Unreliable && bytes > kind.size(262_144, 12_000) {
                continue;
            }
            let data = pattern(bytes, bytes + 3);
            regions[0].memory().copy_from(DATA, &data);
            write(&a, &regions, bytes, None);
            let done = a.send_wait(LONG).unwrap();
            assert_eq!((done.length() as usize, done.status().operation()), (bytes, OP_RDMA_WRITE));
            pair.settle();
            assert!(regions[1].memory().to_vec(DATA, bytes) == data, "{level:?} {bytes}");
            if level == Reliability::Unreliable || !reads {
                continue;
            }
            regions[0].memory().fill(0);
            read(&a, &regions[0], 0, regions[1].remote(DATA), bytes);
            let done = a.send_wait(LONG).unwrap();
            assert_eq!((done.length() as usize, done.status().operation()), (bytes, OP_RDMA_READ));
            assert!(regions[0].memory().to_vec(DATA, bytes) == data, "{level:?} {bytes}");
        }
        assert!(b.query().recv_queue_empty);
        for vi in [&a, &b] {
            vi.disconnect().unwrap();
        }
        pair.settle();
        let _ = (pair.a.errors(), pair.b.errors());
    }
    pair.assert_no_stray_access();
}

fn immediate_data_reports_a_write(kind: DeviceKind) {
    let pair = Pair::new(kind);
    if !has_writes(&pair, kind) {
        return;
    }
    for level in LEVELS {
        let ([a, b], regions) = connected(&pair, level, 10_000);
        let recv = pair.b.region(64).descriptor(0, 0).unwrap();
        for (round, bytes) in [(0_u8, 0), (1, 100), (2, 9_000)] {
            let data = pattern(bytes, usize::from(round) + 50);
            regions[0].memory().copy_from(DATA, &data);
            recv.prepare(&[], None).unwrap();
            b.post_recv(&recv).unwrap();
            write(&a, &regions, bytes, Some(round.into()));
            let got = b.recv_wait(LONG).unwrap();
            assert_eq!(got.status().operation(), OP_REMOTE_RDMA_WRITE, "{level:?}");
            assert_eq!(got.immediate(), u32::from(round));
            assert_eq!(got.length() as usize, bytes);
            assert!(regions[1].memory().to_vec(DATA, bytes) == data, "before its completion");
            a.send_wait(LONG).unwrap();
        }
    }
}

fn a_program_may_poll_the_last_word(kind: DeviceKind) {
    let pair = Pair::new(kind);
    if !has_writes(&pair, kind) {
        return;
    }
    let bytes = 50_000;
    for level in LEVELS {
        let ([a, _b], regions) = connected(&pair, level, bytes);
        let data = vec![0xa5; bytes];
        regions[0].memory().copy_from(DATA, &data);
        write(&a, &regions, bytes, None);
        let last = || regions[1].memory().to_vec(DATA + bytes - 1, 1)[0];
        for _ in 0..200_000 {
            if last() != 0 {
                break;
            }
            pair.simulation.run(1);
        }
        assert!(regions[1].memory().to_vec(DATA, bytes) == data, "{level:?}");
        a.send_wait(LONG).unwrap();
    }
}

fn a_queue_waits_for_its_reads(kind: DeviceKind) {
    let pair = Pair::new(kind);
    if !has_rdma(&pair, kind) {
        return;
    }
    for level in RELIABLE {
        let ([a, b], regions) = connected(&pair, level, 40_000);
        let data = pattern(40_000, 5);
        regions[1].memory().copy_from(DATA, &data);
        // What is read is sent back at once: the send must not start before the read is done.
        let recv = Buffer::new(&pair.b, 40_000);
        b.post_recv(&recv.descriptor).unwrap();
        read(&a, &regions[0], 0, regions[1].remote(DATA), 40_000);
        let send = regions[0].descriptor(256, 1).unwrap();
        send.prepare(&[segment(&regions[0], 40_000)], None).unwrap();
        a.post_send(&send).unwrap();
        b.recv_wait(LONG).unwrap();
        assert!(recv.data() == data, "{level:?}");
        assert_eq!(a.send_wait(LONG).unwrap().status().operation(), OP_RDMA_READ);
        a.send_wait(LONG).unwrap();
    }
}

fn both_sides_read_each_other(kind: DeviceKind) {
    let pair = Pair::new(kind);
    if !has_rdma(&pair, kind) {
        return;
    }
    let ([a, b], _) = connected(&pair, Reliability::Reception, 0);
    let bytes = 100_000;
    let sources = [pair.a.open_region(DATA + bytes), pair.b.open_region(DATA + bytes)];
    let targets = [pair.a.region(DATA + bytes), pair.b.region(DATA + bytes)];
    for (i, source) in sources.iter().enumerate() {
        source.memory().copy_from(DATA, &pattern(bytes, i));
    }
    for slot in [0, 64, 128] {
        read(&a, &targets[0], slot, sources[1].remote(DATA), bytes);
        read(&b, &targets[1], slot, sources[0].remote(DATA), bytes);
    }
    for vi in [&a, &b] {
        for _ in 0..3 {
            vi.send_wait(LONG).unwrap();
        }
    }
    assert!(targets[0].memory().to_vec(DATA, bytes) == pattern(bytes, 1));
    assert!(targets[1].memory().to_vec(DATA, bytes) == pattern(bytes, 0));
}

/// What the target does not allow.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Vi,
    Region,
    Tag,
    End,
    Gone,
}

fn rights_come_from_the_target(kind: DeviceKind) {
    let pair = Pair::new(kind);
    if !has_writes(&pair, kind) {
        return;
    }
    let has_reads = has_reads(&pair, kind);
    let bystanders = pair.connected(Reliability::Reception);
    for level in LEVELS {
        for wrong in [Wrong::Vi, Wrong::Region, Wrong::Tag, Wrong::End, Wrong::Gone] {
            for reads in [false, true] {
                if reads && (level == Reliability::Unreliable || !has_reads) {
                    continue;
                }
                refused(&pair, level, wrong, reads);
                pair.assert_works(&bystanders.0, &bystanders.1);
            }
        }
    }
    pair.assert_no_stray_access();
}

/// A region of 64 bytes at the target, and what the other side takes for it.
fn bad_place(pair: &Pair, wrong: Wrong) -> (Region, RemoteBuffer) {
    let node = &pair.b;
    let bytes = DATA + 64;
    let closed = wrong == Wrong::Region;
    let region = if closed { node.region(bytes) } else { node.open_region(bytes) };
    let attributes = MemAttributes {
        enable_rdma_write: true,
        enable_rdma_read: node.driver.capabilities().rdma_read,
        ..MemAttributes::new(node.nic.create_ptag().unwrap())
    };
    let memory = vipl::DmaMemory::new(bytes).unwrap();
    let other = node.nic.register_mem(&memory, attributes).unwrap();
    let remote = match wrong {
        Wrong::Tag => other.remote(DATA),
        Wrong::End => region.remote(DATA + 1),
        Wrong::Vi | Wrong::Region | Wrong::Gone => region.remote(DATA),
    };
    if wrong == Wrong::Gone {
        node.nic.deregister_mem(&region).unwrap();
    }
    (region, remote)
}

fn refused(pair: &Pair, level: Reliability, wrong: Wrong, reads: bool) {
    let what = format!("{level:?} {wrong:?} {}", if reads { "read" } else { "write" });
    let a = pair.a.open_vi(level);
    let b = if wrong == Wrong::Vi { pair.b.vi(level) } else { pair.b.open_vi(level) };
    pair.connect(&a, &b);
    let (region, remote) = bad_place(pair, wrong);
    let local = pair.a.region(DATA + 64);
    local.memory().fill(0x77);
    let descriptor = local.descriptor(0, 2).unwrap();
    let segments = [segment(&local, 64)];
    if reads {
        descriptor.prepare_rdma_read(remote, &segments).unwrap();
    } else {
        descriptor.prepare_rdma_write(remote, &segments, None).unwrap();
    }
    a.post_send(&descriptor).unwrap();
    let done = a.send_wait(LONG);
    pair.settle();
    assert!(region.memory().to_vec(DATA, 64) == [0; 64], "{what}");
    assert!(local.memory().to_vec(DATA, 64) == [0x77; 64], "{what}");
    let (a_errors, b_errors) = (pair.a.errors(), pair.b.errors());
    // What the peer's VI allows is known here; so it is not asked.
    let known = wrong == Wrong::Vi;
    if level == Reliability::Unreliable {
        assert_eq!(done.is_ok(), !known, "{what}");
        assert_eq!([a.query().state, b.query().state], [ViState::Connected; 2], "{what}");
        assert!(a_errors.is_empty() && b_errors.is_empty(), "{what}");
        pair.assert_works(&a, &b);
    } else if known {
        assert_eq!(error_bits(&done), RDMA_PROT_ERROR, "{what}");
        assert!(a_errors.is_empty(), "{what}");
        assert_eq!(b_errors, [(b.number(), ErrorCode::ConnectionLost)], "{what}");
    } else {
        if level == Reliability::Delivery && !reads {
            done.unwrap();
        } else {
            assert_eq!(error_bits(&done), RDMA_PROT_ERROR, "{what}");
        }
        let code =
            if reads { ErrorCode::RdmaReadProtection } else { ErrorCode::RdmaWriteProtection };
        assert_eq!(b_errors, [(b.number(), code)], "{what}");
        assert_eq!(a_errors, [(a.number(), ErrorCode::ConnectionLost)], "{what}");
        assert_eq!([a.query().state, b.query().state], [ViState::Error; 2], "{what}");
    }
    for vi in [&a, &b] {
        vi.disconnect().unwrap();
    }
    pair.settle();
    let _ = (pair.a.errors(), pair.b.errors());
    for vi in [&a, &b] {
        vi.destroy().unwrap();
    }
}

fn descriptors_that_vipl_prepares_wrongly(kind: DeviceKind) {
    let pair = Pair::new(kind);
    if !has_writes(&pair, kind) {
        return;
    }
    let ([a, b], regions) = connected(&pair, Reliability::Unreliable, 100);
    // A read on an Unreliable VI; the library keeps it from a device that has none.
    if has_reads(&pair, kind) {
        read(&a, &regions[0], 0, regions[1].remote(DATA), 100);
        assert_eq!(error_bits(&a.send_wait(LONG)), FORMAT_ERROR);
    }
    // No room for the address segment.
    let descriptor = regions[0].descriptor(0, 2).unwrap();
    let local = [segment(&regions[0], 1); 2];
    let remote = regions[1].remote(DATA);
    assert_eq!(
        code(descriptor.prepare_rdma_write(remote, &local, None)),
        VipReturn::InvalidParameter
    );
    pair.assert_works(&a, &b);
}

fn flushed_rdma_keeps_its_operation(kind: DeviceKind) {
    let pair = Pair::new(kind);
    if !has_rdma(&pair, kind) {
        return;
    }
    let ([a, b], regions) = connected(&pair, Reliability::Delivery, 200_000);
    read(&a, &regions[0], 0, regions[1].remote(DATA), 200_000);
    let descriptor = regions[0].descriptor(128, 2).unwrap();
    let remote = regions[1].remote(DATA);
    descriptor.prepare_rdma_write(remote, &[segment(&regions[0], 8)], None).unwrap();
    a.post_send(&descriptor).unwrap();
    pair.simulation.run(3000);
    b.disconnect().unwrap();
    let expected = [OP_RDMA_READ, OP_RDMA_WRITE];
    for operation in expected {
        let flushed = a.send_wait(LONG);
        assert_eq!(error_bits(&flushed) & DESC_FLUSHED_ERROR, DESC_FLUSHED_ERROR);
        let descriptor = flushed.unwrap_err().descriptor.unwrap();
        assert_eq!(descriptor.status().operation(), operation);
    }
    assert_eq!(pair.a.errors(), [(a.number(), ErrorCode::ConnectionLost)]);
}

fn rdma_survives_a_bad_link(kind: DeviceKind) {
    for seed in 1..=3_u8 {
        let faults = Faults { loss: 0.03, corrupt: 0.02, duplicate: 0.02, ..Faults::default() };
        let pair = Pair::with(&Setup::with_faults(kind, seed.into(), faults));
        if !has_writes(&pair, kind) {
            return;
        }
        let reads = has_reads(&pair, kind);
        let bytes = 60_000;
        for level in RELIABLE {
            let ([a, _b], regions) = connected(&pair, level, bytes);
            for round in 0..4 {
                let data = pattern(bytes, round + 10 * usize::from(seed));
                regions[0].memory().copy_from(DATA, &data);
                write(&a, &regions, bytes, None);
                a.send_wait(LONG).unwrap();
                let arrived = || regions[1].memory().to_vec(DATA, bytes) == data;
                for _ in 0..1_000 {
                    if arrived() {
                        break;
                    }
                    pair.simulation.run(1_000);
                }
                assert!(arrived(), "{seed} {level:?}");
                if !reads {
                    continue;
                }
                regions[0].memory().fill(0);
                read(&a, &regions[0], 256, regions[1].remote(DATA), bytes);
                a.send_wait(LONG).unwrap();
                assert!(regions[0].memory().to_vec(DATA, bytes) == data, "{seed} {level:?}");
            }
        }
        // Unreliable: what was written begins at the start and is right; the last word says that
        // all of it is.
        let ([a, b], regions) = connected(&pair, Reliability::Unreliable, bytes);
        let recv = pair.b.region(64).descriptor(0, 0).unwrap();
        recv.prepare(&[], None).unwrap();
        b.post_recv(&recv).unwrap();
        let (mut whole, mut reported) = (0, 0);
        for round in 0..40_u8 {
            regions[1].memory().fill(0);
            regions[0].memory().fill(round + 1);
            write(&a, &regions, bytes, Some(round.into()));
            a.send_wait(LONG).unwrap();
            pair.settle();
            let got = regions[1].memory().to_vec(DATA, bytes);
            let end = got.iter().position(|&byte| byte == 0).unwrap_or(bytes);
            assert!(got[..end].iter().all(|&byte| byte == round + 1), "{seed}");
            assert!(got[end..].iter().all(|&byte| byte == 0), "{seed}");
            whole += u32::from(end == bytes);
            if let Ok(done) = b.recv_done() {
                assert_eq!((done.immediate(), end), (round.into(), bytes));
                reported += 1;
                recv.prepare(&[], None).unwrap();
                b.post_recv(&recv).unwrap();
            }
        }
        assert_eq!(whole, reported, "{seed}");
        assert!((1..40).contains(&whole), "{whole} of 40 survive");
        pair.assert_no_stray_access();
    }
}

fn a_dead_peer_ends_a_read(kind: DeviceKind) {
    let pair = Pair::new(kind);
    if !has_rdma(&pair, kind) {
        return;
    }
    let ([a, _b], regions) = connected(&pair, Reliability::Delivery, 100_000);
    read(&a, &regions[0], 0, regions[1].remote(DATA), 100_000);
    pair.simulation.run(2000);
    pair.b.driver.close_peer(0).unwrap();
    assert_ne!(error_bits(&a.send_wait(LONG)) & TRANSPORT_ERROR, 0);
    assert_eq!(a.query().state, ViState::Error);
}

/// The target of a write, or the source of a read, is taken back while it is used: when that is
/// done, the memory is its owner's alone, the requester is notified, and others go on.
fn a_region_taken_back_under_rdma(kind: DeviceKind) {
    const BYTES: usize = 131_072;
    for (reading, delay) in
        [200, 700, 1500, 3000, 9000].into_iter().flat_map(|delay| [(false, delay), (true, delay)])
    {
        let pair = Pair::new(kind);
        if !has_rdma(&pair, kind) {
            return;
        }
        let bystanders = pair.connected(Reliability::Reception);
        let ([a, b], regions) = connected(&pair, Reliability::Delivery, BYTES);
        if reading {
            read(&a, &regions[0], 0, regions[1].remote(DATA), BYTES);
        } else {
            write(&a, &regions, BYTES, None);
        }
        pair.simulation.run(delay);
        pair.b.nic.deregister_mem(&regions[1]).unwrap();
        let memory = regions[1].memory();
        memory.copy_from(DATA, &vec![0xee; BYTES]);
        let completion = a.send_wait(LONG);
        pair.settle();
        assert!(memory.to_vec(DATA, BYTES).iter().all(|byte| *byte == 0xee), "after {delay}");
        if reading {
            let got = regions[0].memory().to_vec(DATA, BYTES);
            assert!(got.iter().all(|byte| *byte != 0xee), "read after {delay}");
            assert_eq!(error_bits(&completion) & RDMA_PROT_ERROR, RDMA_PROT_ERROR, "{delay}");
        }
        assert_eq!((a.query().state, b.query().state), (ViState::Error, ViState::Error));
        pair.assert_works(&bystanders.0, &bystanders.1);
        pair.assert_no_stray_access();
    }
}

/// A VI is disconnected and destroyed under the RDMA of its peer.
fn a_vi_destroyed_under_rdma(kind: DeviceKind) {
    const BYTES: usize = 131_072;
    for (reading, delay) in
        [150, 600, 2500, 7000].into_iter().flat_map(|delay| [(false, delay), (true, delay)])
    {
        let pair = Pair::new(kind);
        if !has_rdma(&pair, kind) {
            return;
        }
        let bystanders = pair.connected(Reliability::Delivery);
        let ([a, b], regions) = connected(&pair, Reliability::Reception, BYTES);
        if reading {
            read(&a, &regions[0], 0, regions[1].remote(DATA), BYTES);
        } else {
            write(&a, &regions, BYTES, None);
        }
        pair.simulation.run(delay);
        b.disconnect().unwrap();
        b.destroy().unwrap();
        let memory = regions[1].memory();
        memory.copy_from(DATA, &vec![0xee; BYTES]);
        assert_ne!(error_bits(&a.send_wait(LONG)), 0, "{delay}");
        pair.settle();
        assert!(memory.to_vec(DATA, BYTES).iter().all(|byte| *byte == 0xee), "after {delay}");
        assert_eq!(a.query().state, ViState::Error);
        pair.assert_works(&bystanders.0, &bystanders.1);
        pair.assert_no_stray_access();
    }
}

on_every_kind! {
    a_region_taken_back_under_rdma,
    a_vi_destroyed_under_rdma,
    writes_and_reads_of_every_length,
    immediate_data_reports_a_write,
    a_program_may_poll_the_last_word,
    a_queue_waits_for_its_reads,
    both_sides_read_each_other,
    rights_come_from_the_target,
    descriptors_that_vipl_prepares_wrongly,
    flushed_rdma_keeps_its_operation,
    rdma_survives_a_bad_link,
    a_dead_peer_ends_a_read,
}

/// A device without RDMA: the program is notified, and so is its peer by the connection.
fn not_supported(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let caps = pair.a.driver.capabilities();
    if caps.rdma_write || caps.rdma_read {
        return;
    }
    let nic = &pair.a.nic;
    assert_eq!(nic.query().rdma_read_support, 0);
    let plain = ViAttributes::new(Reliability::Delivery, pair.a.tag);
    let writes = ViAttributes { enable_rdma_write: true, ..plain };
    assert_eq!(code(nic.create_vi(writes, None, None)), VipReturn::ErrorNotSupported);
    let reads = ViAttributes { enable_rdma_read: true, ..plain };
    assert_eq!(code(nic.create_vi(reads, None, None)), VipReturn::InvalidRdmaRead);
    let memory = vipl::DmaMemory::new(64).unwrap();
    let plain = MemAttributes::new(pair.a.tag);
    let writes = MemAttributes { enable_rdma_write: true, ..plain };
    assert_eq!(code(nic.register_mem(&memory, writes)), VipReturn::ErrorNotSupported);
    let reads = MemAttributes { enable_rdma_read: true, ..plain };
    assert_eq!(code(nic.register_mem(&memory, reads)), VipReturn::InvalidRdmaRead);
    let ([a, b], regions) = connected(&pair, Reliability::Delivery, 64);
    let descriptor = regions[0].descriptor(0, 2).unwrap();
    let local = [segment(&regions[0], 8)];
    descriptor.prepare_rdma_write(regions[1].remote(DATA), &local, None).unwrap();
    assert_eq!(code(a.post_send(&descriptor)), VipReturn::ErrorNotSupported);
    descriptor.prepare_rdma_read(regions[1].remote(DATA), &local).unwrap();
    assert_eq!(code(a.post_send(&descriptor)), VipReturn::ErrorNotSupported);
    pair.assert_works(&a, &b);
    assert_eq!(pair.a.driver.counter(Counter::DropLength).unwrap(), 0);
}

#[test]
fn rdma_that_a_device_does_not_have() {
    not_supported(DeviceKind::Plain);
    #[cfg(feature = "rtl")]
    not_supported(DeviceKind::Rtl);
}

/// A device with RDMA and one without: the connection reports it, and nothing unknown goes there.
#[test]
fn a_peer_that_has_no_rdma() {
    let setup = Setup { other: Some(DeviceKind::Plain), ..Setup::new(DeviceKind::Model) };
    for level in LEVELS {
        let pair = Pair::with(&setup);
        let ([a, b], regions) = connected(&pair, level, 64);
        write(&a, &regions, 64, None);
        assert_eq!(error_bits(&a.send_wait(LONG)), RDMA_PROT_ERROR, "{level:?}");
        pair.settle();
        assert_eq!(pair.b.driver.counter(Counter::DropLength).unwrap(), 0);
        let on = level == Reliability::Unreliable;
        assert_eq!(b.query().state == ViState::Connected, on);
        if on {
            // Each posts with what it has.
            pair.assert_works(&a, &b);
            pair.assert_works(&a, &b);
        }
    }
}
