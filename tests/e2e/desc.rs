//! Bad descriptors, and what becomes of them: status, state of the VI, event; other VIs go on.

use nic_regs::desc::ControlSegment;
use nic_regs::desc::status::{
    DESC_FLUSHED_ERROR, FORMAT_ERROR, LENGTH_ERROR, PROTECTION_ERROR, REMOTE_DESC_ERROR,
    TRANSPORT_ERROR,
};
use tests::{
    Buffer, DeviceKind, LEVELS, LONG, Node, Pair, code, error_bits, on_every_kind, pattern,
};
use vipl::{
    Descriptor, ErrorCode, MemAttributes, Region, Reliability, Segment, ViAttributes, ViState,
    VipReturn,
};

use crate::case::Case;

fn raw(region: &Region, header: ControlSegment, segments: &[Segment]) -> Descriptor {
    let descriptor = region.descriptor(0, 16).unwrap();
    descriptor.prepare_raw(header, segments).unwrap();
    descriptor
}

fn malformed_sends(kind: DeviceKind) {
    let good = ControlSegment::default();
    let bad = [
        ControlSegment { control: 0x10, ..good },
        ControlSegment { control: 0x8000, ..good },
        ControlSegment { reserved: 1, ..good },
        ControlSegment { control: 3, ..good },
        ControlSegment { control: 3, seg_count: 1, ..good },
        ControlSegment { seg_count: 17, ..good },
    ];
    for level in LEVELS {
        for header in bad {
            let case = Case::new(kind, level);
            let region = case.pair.a.region(1024);
            let descriptor = raw(&region, header, &[]);
            case.bad_send(&descriptor, FORMAT_ERROR);
        }
    }
}

fn messages_longer_than_the_maximum(kind: DeviceKind) {
    for level in LEVELS {
        let mut case = Case::new(kind, level);
        let small = |node: &Node| {
            let attributes = ViAttributes::new(level, node.tag);
            let attributes = ViAttributes { max_transfer_size: 1000, ..attributes };
            node.nic.create_vi(attributes, None, None).unwrap()
        };
        case.a.disconnect().unwrap();
        case.pair.settle();
        case.b.disconnect().unwrap();
        (case.a, case.b) = (small(&case.pair.a), small(&case.pair.b));
        case.pair.connect(&case.a, &case.b);
        let _ = case.pair.b.errors();
        // finish sends 5,000 bytes, so this one ends here.
        let recv = Buffer::new(&case.pair.b, 1001);
        case.b.post_recv(&recv.descriptor).unwrap();
        let (fits, long) = (Buffer::new(&case.pair.a, 1000), Buffer::new(&case.pair.a, 1001));
        case.a.post_send(&fits.descriptor).unwrap();
        case.a.send_wait(LONG).unwrap();
        assert_eq!(case.b.recv_wait(LONG).unwrap().length(), 1000);
        case.a.post_send(&long.descriptor).unwrap();
        assert_eq!(error_bits(&case.a.send_wait(LONG)), LENGTH_ERROR);
        case.pair.settle();
        let state = if case.reliable() { ViState::Error } else { ViState::Connected };
        assert_eq!((case.a.query().state, case.b.query().state), (state, state));
    }
}

/// What a receiver that fails does to a sender; `bits` is the status of the receive descriptor,
/// None if there is none.
fn bad_receive(case: Case, bits: Option<u32>, data: usize, b_errors: &[ErrorCode]) {
    let sends = [0, 1].map(|_| Buffer::new(&case.pair.a, data));
    let spare = Buffer::new(&case.pair.b, data);
    if bits.is_some() {
        case.b.post_recv(&spare.descriptor).unwrap();
    }
    case.a.post_send(&sends[0].descriptor).unwrap();
    case.pair.settle();
    if case.reliable() {
        case.a.post_send(&sends[1].descriptor).unwrap();
        if let Some(bits) = bits {
            assert_eq!(error_bits(&case.b.recv_wait(LONG)), bits, "{:?}", case.level);
            assert_eq!(error_bits(&case.b.recv_wait(LONG)), DESC_FLUSHED_ERROR);
        }
        if case.level == Reliability::Reception {
            assert_eq!(error_bits(&case.a.send_wait(LONG)), REMOTE_DESC_ERROR);
        } else {
            match case.a.send_wait(LONG) {
                Ok(_) => {}
                // The refusal may come while later frames of the message are still to be sent.
                refused => {
                    assert!(data > 4096);
                    assert_eq!(error_bits(&refused), TRANSPORT_ERROR);
                }
            }
        }
        assert_eq!(error_bits(&case.a.send_wait(LONG)), DESC_FLUSHED_ERROR);
        case.finish(&[ErrorCode::ConnectionLost], b_errors);
    } else {
        case.a.send_wait(LONG).unwrap();
        if let Some(bits) = bits {
            assert_eq!(error_bits(&case.b.recv_wait(LONG)), bits, "{:?}", case.level);
            // The next message takes the next descriptor.
            case.a.post_send(&sends[1].descriptor).unwrap();
            case.b.recv_wait(LONG).unwrap();
            case.a.send_wait(LONG).unwrap();
        }
        case.finish(&[], &[]);
    }
}

fn nothing_posted_to_receive(kind: DeviceKind) {
    for level in LEVELS {
        for data in [8, 20_000] {
            bad_receive(Case::new(kind, level), None, data, &[ErrorCode::ReceiveQueueEmpty]);
        }
    }
}

fn receive_buffers_that_are_too_short(kind: DeviceKind) {
    for level in LEVELS {
        for data in [17, 8192] {
            let case = Case::new(kind, level);
            let recv = Buffer::new(&case.pair.b, 16);
            case.b.post_recv(&recv.descriptor).unwrap();
            bad_receive(case, Some(LENGTH_ERROR), data, &[]);
            assert!(recv.region.memory().to_vec(1024, 16) == [0; 16], "nothing was written");
        }
    }
}

fn receive_descriptors_that_are_bad(kind: DeviceKind) {
    for level in LEVELS {
        let case = Case::new(kind, level);
        let region = case.pair.b.region(2048);
        let header = ControlSegment { seg_count: 1, reserved: 5, ..ControlSegment::default() };
        case.b.post_recv(&raw(&region, header, &[region.segment(1024, 64)])).unwrap();
        bad_receive(case, Some(FORMAT_ERROR), 8, &[]);

        let case = Case::new(kind, level);
        let region = case.pair.b.region(2048);
        let descriptor = region.descriptor(0, 16).unwrap();
        descriptor.prepare(&[region.segment(2040, 9)], None).unwrap();
        case.b.post_recv(&descriptor).unwrap();
        bad_receive(case, Some(PROTECTION_ERROR), 9, &[]);
    }
}

/// Only the bytes that a message writes have to be allowed: programs post receives for the largest message on
/// smaller buffers.
fn receives_that_reach_beyond_their_region(kind: DeviceKind) {
    const LARGEST: u32 = 65_472;
    for level in LEVELS {
        let case = Case::new(kind, level);
        let region = case.pair.b.region(8192);
        let recvs: Vec<_> = (0..4).map(|i| region.descriptor(256 * i, 16).unwrap()).collect();
        let foreign = Segment { address: 4096, handle: !0, length: 100 };
        let part = |at, length| region.segment(at, length);
        let segments = [
            &[part(2048, LARGEST)][..],
            // Behind the first bytes: nowhere, another's, and what would be good.
            &[part(4096, 1000), part(7000, LARGEST), part(2048, 8)],
            &[part(6000, 700), foreign, part(2048, 8)],
            &[foreign],
        ];
        for (recv, segments) in recvs.iter().zip(segments) {
            recv.prepare(segments, None).unwrap();
            case.b.post_recv(recv).unwrap();
        }
        // To the last byte that is allowed, and none where none is.
        for (i, bytes) in [6144, 1000 + 1192, 700, 0].into_iter().enumerate() {
            let send = Buffer::new(&case.pair.a, bytes);
            let data = pattern(bytes, i);
            send.set(&data);
            case.a.post_send(&send.descriptor).unwrap();
            case.a.send_wait(LONG).unwrap();
            let done = case.b.recv_wait(LONG).unwrap();
            assert_eq!(done.length() as usize, bytes, "{level:?}");
            let memory = region.memory();
            match i {
                0 => assert!(memory.to_vec(2048, bytes) == data),
                1 => {
                    assert!(memory.to_vec(4096, 1000) == data[..1000]);
                    assert!(memory.to_vec(7000, 1192) == data[1000..]);
                }
                _ => assert!(memory.to_vec(6000, bytes.min(700)) == data[..bytes.min(700)]),
            }
        }
        // One byte more, and more than all segments have.
        for bytes in [6145, LARGEST as usize + 1] {
            let case = Case::new(kind, level);
            let region = case.pair.b.region(8192);
            let recv = region.descriptor(0, 16).unwrap();
            recv.prepare(&[region.segment(2048, LARGEST)], None).unwrap();
            case.b.post_recv(&recv).unwrap();
            bad_receive(case, Some(PROTECTION_ERROR), bytes, &[]);
            assert!(region.memory().to_vec(2048, 6144) == [0; 6144], "nothing was written");
        }
    }
}

/// A send descriptor that the NIC cannot reach stops the VI at every level.
fn unreachable_descriptor(
    kind: DeviceKind,
    level: Reliability,
    make: impl Fn(&Node) -> Descriptor,
) {
    let case = Case::new(kind, level);
    let descriptor = make(&case.pair.a);
    let good = Buffer::new(&case.pair.a, 8);
    case.a.post_send(&descriptor).unwrap();
    case.a.post_send(&good.descriptor).unwrap();
    assert_eq!(error_bits(&case.a.send_wait(LONG)), PROTECTION_ERROR, "{level:?}");
    assert_eq!(error_bits(&case.a.send_wait(LONG)), DESC_FLUSHED_ERROR);
    assert_eq!(case.pair.a.errors(), [(case.a.number(), ErrorCode::PostDescriptor)]);
    assert_eq!(case.a.query().state, ViState::Error);
    case.pair.settle();
    assert_eq!(case.pair.b.errors(), [(case.b.number(), ErrorCode::ConnectionLost)]);
    let (c, d) = &case.bystanders;
    case.pair.assert_works(c, d);
}

fn descriptors_out_of_reach(kind: DeviceKind) {
    for level in LEVELS {
        unreachable_descriptor(kind, level, |node| {
            let region = node.region(64);
            let descriptor = region.descriptor(0, 0).unwrap();
            descriptor.prepare(&[], None).unwrap();
            node.nic.deregister_mem(&region).unwrap();
            descriptor
        });
        unreachable_descriptor(kind, level, |node| {
            // Its segments reach beyond its region.
            let region = node.region(64);
            let header = ControlSegment { seg_count: 3, ..ControlSegment::default() };
            let descriptor = region.descriptor(0, 0).unwrap();
            descriptor.prepare_raw(header, &[]).unwrap();
            descriptor
        });
        unreachable_descriptor(kind, level, |node| {
            let memory = vipl::DmaMemory::new(64).unwrap();
            let tag = node.nic.create_ptag().unwrap();
            let region = node.nic.register_mem(&memory, MemAttributes::new(tag)).unwrap();
            let descriptor = region.descriptor(0, 0).unwrap();
            descriptor.prepare(&[], None).unwrap();
            descriptor
        });
    }
}

fn misaligned_descriptors_are_refused_before_the_nic(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let region = pair.a.region(1024);
    assert_eq!(code(region.descriptor(8, 1)), VipReturn::InvalidParameter);
    assert_eq!(code(region.descriptor(1024, 1)), VipReturn::InvalidParameter);
    assert_eq!(code(region.descriptor(960, 3)), VipReturn::InvalidParameter);
    let descriptor = region.descriptor(0, 2).unwrap();
    let segment = region.segment(0, 1);
    assert_eq!(code(descriptor.prepare(&[segment; 3], None)), VipReturn::InvalidParameter);
}

on_every_kind! {
    malformed_sends,
    messages_longer_than_the_maximum,
    nothing_posted_to_receive,
    receive_buffers_that_are_too_short,
    receive_descriptors_that_are_bad,
    receives_that_reach_beyond_their_region,
    descriptors_out_of_reach,
    misaligned_descriptors_are_refused_before_the_nic,
}
