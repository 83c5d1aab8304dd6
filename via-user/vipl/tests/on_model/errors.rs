//! Bad input, and what becomes of it: the descriptor's status, the VI's state, the event; other VIs go on.

use nic_regs::counter::Counter;
use nic_regs::desc::status::{
    DESC_FLUSHED_ERROR, FORMAT_ERROR, LENGTH_ERROR, PROTECTION_ERROR, REMOTE_DESC_ERROR,
    TRANSPORT_ERROR,
};
use nic_regs::desc::{ControlSegment, control};
use vipl::{
    Descriptor, ErrorCode, MemAttributes, Region, Reliability, Segment, Vi, ViAttributes, ViState,
    VipReturn,
};

use crate::support::{Buffer, LEVELS, LONG, Node, Pair, code, error_bits, pattern};

/// A pair, two VIs under test, and two that must go on whatever happens to the others.
struct Case {
    pair: Pair,
    a: Vi,
    b: Vi,
    bystanders: (Vi, Vi),
    level: Reliability,
}

impl Case {
    fn new(level: Reliability) -> Self {
        let pair = Pair::new();
        let bystanders = pair.connected(Reliability::Reception);
        let (a, b) = pair.connected(level);
        Self { pair, a, b, bystanders, level }
    }

    const fn reliable(&self) -> bool {
        !matches!(self.level, Reliability::Unreliable)
    }

    /// A message from `a` to `b` arrives.
    fn works(a: &Vi, b: &Vi, pair: &Pair) {
        let (send, recv) = (Buffer::new(&pair.a, 5000), Buffer::new(&pair.b, 5000));
        send.set(&pattern(5000, 1));
        b.post_recv(&recv.descriptor).unwrap();
        a.post_send(&send.descriptor).unwrap();
        b.recv_wait(LONG).unwrap();
        a.send_wait(LONG).unwrap();
        assert!(recv.data() == pattern(5000, 1));
    }

    /// The VIs are as they must be at the end, the bystanders work, and so do the VIs after a new connection.
    fn finish(self, a_errors: &[ErrorCode], b_errors: &[ErrorCode]) {
        let pair = &self.pair;
        pair.settle();
        let codes = |node: &Node, vi: &Vi| {
            let errors = node.errors();
            assert!(errors.iter().all(|(number, _)| *number == vi.number()));
            errors.into_iter().map(|(_, code)| code).collect::<Vec<_>>()
        };
        assert_eq!(codes(&pair.a, &self.a), a_errors, "{:?} a", self.level);
        assert_eq!(codes(&pair.b, &self.b), b_errors, "{:?} b", self.level);
        let (c, d) = &self.bystanders;
        Self::works(c, d, pair);
        let state = if self.reliable() { ViState::Error } else { ViState::Connected };
        assert_eq!(
            (self.a.query().state, self.b.query().state),
            (state, state),
            "{:?}",
            self.level
        );
        for vi in [&self.a, &self.b] {
            vi.disconnect().unwrap();
            while let Err(e) = vi.recv_done() {
                let Some(descriptor) = e.descriptor else { break };
                assert_eq!(descriptor.status().errors(), DESC_FLUSHED_ERROR);
            }
        }
        pair.settle();
        pair.connect(&self.a, &self.b);
        Self::works(&self.a, &self.b, pair);
        assert!(pair.world.faults(0).is_empty() && pair.world.faults(1).is_empty());
    }

    /// Posts a bad send before a good one, with two receives there.
    fn bad_send(self, bad: &Descriptor, bits: u32) {
        let good = Buffer::new(&self.pair.a, 16);
        let recvs = [0, 1].map(|_| Buffer::new(&self.pair.b, 16));
        recvs.iter().for_each(|buffer| self.b.post_recv(&buffer.descriptor).unwrap());
        self.a.post_send(bad).unwrap();
        self.a.post_send(&good.descriptor).unwrap();
        assert_eq!(error_bits(&self.a.send_wait(LONG)), bits, "{:?}", self.level);
        if self.reliable() {
            // The descriptor's own status tells; the peer learns that it was refused.
            assert_eq!(error_bits(&self.a.send_wait(LONG)), DESC_FLUSHED_ERROR);
            self.pair.settle();
            assert_eq!(error_bits(&self.b.recv_wait(LONG)), DESC_FLUSHED_ERROR);
            assert_eq!(error_bits(&self.b.recv_wait(LONG)), DESC_FLUSHED_ERROR);
            self.finish(&[], &[ErrorCode::ConnectionLost]);
        } else {
            self.a.send_wait(LONG).unwrap();
            self.b.recv_wait(LONG).unwrap();
            self.finish(&[], &[]);
        }
    }
}

fn raw(region: &Region, header: ControlSegment, segments: &[Segment]) -> Descriptor {
    let descriptor = region.descriptor(0, 16).unwrap();
    descriptor.prepare_raw(header, segments).unwrap();
    descriptor
}

#[test]
fn malformed_sends() {
    let good = ControlSegment::default();
    let bad = [
        ControlSegment { control: 0x10, ..good },
        ControlSegment { control: 0x8000, ..good },
        ControlSegment { reserved: 1, ..good },
        ControlSegment { control: control::OP_RDMA_WRITE, ..good },
        ControlSegment { control: control::OP_RDMA_READ, ..good },
        ControlSegment { control: 3, ..good },
        ControlSegment { seg_count: 17, ..good },
    ];
    for level in LEVELS {
        for header in bad {
            let case = Case::new(level);
            let region = case.pair.a.region(1024);
            let descriptor = raw(&region, header, &[]);
            case.bad_send(&descriptor, FORMAT_ERROR);
        }
    }
}

#[test]
fn segments_that_may_not_be_read() {
    for level in LEVELS {
        for kind in 0..6 {
            let case = Case::new(level);
            let node = &case.pair.a;
            let region = node.region(4096);
            let good = region.segment(1024, 16);
            let other_tag = node.nic.create_ptag().unwrap();
            let other = vipl::DmaMemory::new(64).unwrap();
            let other = node.nic.register_mem(&other, MemAttributes::new(other_tag)).unwrap();
            let gone = node.region(64);
            node.nic.deregister_mem(&gone).unwrap();
            let bad = match kind {
                0 => Segment { handle: 0, ..good },
                1 => Segment { handle: good.handle.wrapping_add(0x1_0000), ..good },
                2 => region.segment(4090, 7),
                3 => Segment { address: u64::MAX - 3, ..good },
                4 => other.segment(0, 8),
                _ => gone.segment(0, 8),
            };
            // A segment of length 0 is not looked at; the bad one comes last.
            let nothing = Segment { handle: 0, address: 1, length: 0 };
            let descriptor = region.descriptor(0, 16).unwrap();
            descriptor.prepare(&[good, nothing, bad], None).unwrap();
            case.bad_send(&descriptor, PROTECTION_ERROR);
        }
    }
}

#[test]
fn messages_longer_than_the_maximum() {
    for level in LEVELS {
        let mut case = Case::new(level);
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
        case.pair.b.errors();
        // Case::works sends 5,000 bytes, so this one ends here.
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

/// What a receiver that fails does to a sender; `bits` is the status of the receive descriptor, None if there is none.
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

#[test]
fn nothing_posted_to_receive() {
    for level in LEVELS {
        for data in [8, 20_000] {
            bad_receive(Case::new(level), None, data, &[ErrorCode::ReceiveQueueEmpty]);
        }
    }
}

#[test]
fn receive_buffers_that_are_too_short() {
    for level in LEVELS {
        for data in [17, 8192] {
            let case = Case::new(level);
            let recv = Buffer::new(&case.pair.b, 16);
            case.b.post_recv(&recv.descriptor).unwrap();
            bad_receive(case, Some(LENGTH_ERROR), data, &[]);
            assert!(recv.region.memory().to_vec(1024, 16) == [0; 16], "nothing was written");
        }
    }
}

#[test]
fn receive_descriptors_that_are_bad() {
    for level in LEVELS {
        let case = Case::new(level);
        let region = case.pair.b.region(2048);
        let header = ControlSegment { seg_count: 1, reserved: 5, ..ControlSegment::default() };
        case.b.post_recv(&raw(&region, header, &[region.segment(1024, 64)])).unwrap();
        bad_receive(case, Some(FORMAT_ERROR), 8, &[]);

        let case = Case::new(level);
        let region = case.pair.b.region(2048);
        let descriptor = region.descriptor(0, 16).unwrap();
        descriptor.prepare(&[region.segment(2040, 9)], None).unwrap();
        case.b.post_recv(&descriptor).unwrap();
        bad_receive(case, Some(PROTECTION_ERROR), 8, &[]);
    }
}

/// A send descriptor that the NIC cannot reach stops the VI at every level.
fn unreachable_descriptor(level: Reliability, make: impl Fn(&Node) -> Descriptor) {
    let case = Case::new(level);
    let descriptor = make(&case.pair.a);
    let good = Buffer::new(&case.pair.a, 8);
    case.a.post_send(&descriptor).unwrap();
    case.a.post_send(&good.descriptor).unwrap();
    assert_eq!(error_bits(&case.a.send_wait(LONG)), PROTECTION_ERROR, "{level:?}");
    assert_eq!(error_bits(&case.a.send_wait(LONG)), DESC_FLUSHED_ERROR);
    assert_eq!(case.pair.a.errors(), [(case.a.number(), ErrorCode::PostDescriptor)]);
    assert_eq!(case.a.query().state, ViState::Error);
    case.pair.settle();
    let lost = [(case.b.number(), ErrorCode::ConnectionLost)];
    if case.reliable() {
        assert_eq!(case.pair.b.errors(), lost);
    } else {
        // The peer learns of it only by the disconnect.
        assert_eq!(case.b.query().state, ViState::Connected);
    }
    let (c, d) = &case.bystanders;
    Case::works(c, d, &case.pair);
}

#[test]
fn descriptors_out_of_reach() {
    for level in LEVELS {
        unreachable_descriptor(level, |node| {
            let region = node.region(64);
            let descriptor = region.descriptor(0, 0).unwrap();
            descriptor.prepare(&[], None).unwrap();
            node.nic.deregister_mem(&region).unwrap();
            descriptor
        });
        unreachable_descriptor(level, |node| {
            // Its segments reach beyond its region.
            let region = node.region(64);
            let header = ControlSegment { seg_count: 3, ..ControlSegment::default() };
            let descriptor = region.descriptor(0, 0).unwrap();
            descriptor.prepare_raw(header, &[]).unwrap();
            descriptor
        });
        unreachable_descriptor(level, |node| {
            let memory = vipl::DmaMemory::new(64).unwrap();
            let tag = node.nic.create_ptag().unwrap();
            let region = node.nic.register_mem(&memory, MemAttributes::new(tag)).unwrap();
            let descriptor = region.descriptor(0, 0).unwrap();
            descriptor.prepare(&[], None).unwrap();
            descriptor
        });
    }
}

#[test]
fn misaligned_descriptors_are_refused_before_the_nic() {
    let pair = Pair::new();
    let region = pair.a.region(1024);
    assert_eq!(code(region.descriptor(8, 1)), VipReturn::InvalidParameter);
    assert_eq!(code(region.descriptor(1024, 1)), VipReturn::InvalidParameter);
    assert_eq!(code(region.descriptor(960, 3)), VipReturn::InvalidParameter);
    let descriptor = region.descriptor(0, 2).unwrap();
    let segment = region.segment(0, 1);
    assert_eq!(code(descriptor.prepare(&[segment; 3], None)), VipReturn::InvalidParameter);
}

#[test]
fn arguments_of_vis_memory_and_tags() {
    let pair = Pair::new();
    let (nic, tag) = (&pair.a.nic, pair.a.tag);
    let good = ViAttributes::new(Reliability::Delivery, tag);
    let create = |attributes| code(nic.create_vi(attributes, None, None));
    assert_eq!(create(ViAttributes { max_transfer_size: 0, ..good }), VipReturn::InvalidMtu);
    let too_long = ViAttributes { max_transfer_size: 262_145, ..good };
    assert_eq!(create(too_long), VipReturn::InvalidMtu);
    assert_eq!(create(ViAttributes { enable_rdma_read: true, ..good }), VipReturn::InvalidRdmaRead);
    let unknown = pair.b.nic.create_ptag().unwrap();
    assert_eq!(create(ViAttributes { ptag: unknown, ..good }), VipReturn::InvalidPtag);
    let memory = vipl::DmaMemory::new(100).unwrap();
    assert_eq!(
        code(nic.register_mem(&memory, MemAttributes::new(unknown))),
        VipReturn::InvalidPtag
    );
    let region = nic.register_mem(&memory, MemAttributes::new(tag)).unwrap();
    let twice = nic.register_mem(&memory, MemAttributes::new(tag)).unwrap();
    assert!(region.handle() != 0 && region.handle() != twice.handle());
    assert_eq!(nic.query_mem(&twice).unwrap().ptag, tag);
    assert_eq!(code(nic.destroy_ptag(tag)), VipReturn::ErrorResource);
    nic.deregister_mem(&region).unwrap();
    assert_eq!(code(nic.deregister_mem(&region)), VipReturn::InvalidParameter);
    nic.deregister_mem(&twice).unwrap();
    nic.destroy_ptag(tag).unwrap();
    assert_eq!(code(nic.destroy_ptag(tag)), VipReturn::InvalidParameter);
}

#[test]
fn registrations_run_out_and_come_back() {
    let pair = Pair::new();
    let memory = vipl::DmaMemory::new(64).unwrap();
    let attributes = MemAttributes::new(pair.a.tag);
    let limit = pair.a.nic.query().max_register_regions;
    let all: Vec<_> =
        (0..limit).map(|_| pair.a.nic.register_mem(&memory, attributes).unwrap()).collect();
    assert_eq!(code(pair.a.nic.register_mem(&memory, attributes)), VipReturn::ErrorResource);
    pair.a.nic.deregister_mem(&all[5]).unwrap();
    let again = pair.a.nic.register_mem(&memory, attributes).unwrap();
    assert_ne!(again.handle(), all[5].handle());
    assert_eq!(again.handle() & 0xffff, all[5].handle() & 0xffff);
}

#[test]
fn accesses_that_no_driver_makes() {
    let pair = Pair::new();
    let (a, b) = pair.connected(Reliability::Delivery);
    let bus = &pair.buses[0];
    let counter = |c| pair.a.driver.counter(c).unwrap();
    let (bad_register, bad_doorbell) =
        (counter(Counter::BadRegister), counter(Counter::DoorbellBad));
    assert_eq!(bus.read_raw(0, 0x1c, 2).unwrap(), 0);
    assert_eq!(bus.read_raw(0, 0xffc, 4).unwrap(), 0);
    bus.write_raw(0, 0x18, &[0; 8]);
    bus.write_raw(0, 0x19, &[0]);
    assert_eq!(counter(Counter::BadRegister), bad_register + 4);
    // The VI belongs to the page of domain 1.
    let token = u64::from(a.number());
    bus.write_raw(2, 2 * 4096, &token.to_le_bytes());
    bus.write_raw(2, 4096, &1000_u64.to_le_bytes());
    bus.write_raw(2, 4096, &token.to_le_bytes()[..4]);
    bus.write_raw(2, 4096 + 0x10, &token.to_le_bytes());
    assert_eq!(counter(Counter::DoorbellBad), bad_doorbell + 4);
    Case::works(&a, &b, &pair);
}

#[test]
fn closing_gives_everything_back() {
    let pair = Pair::new();
    let port = host_driver::port::HardwarePort::open(pair.a.driver.clone()).unwrap();
    for _ in 0..3 {
        let nic = vipl::Nic::open(port.clone());
        let tag = nic.create_ptag().unwrap();
        let memory = vipl::DmaMemory::new(64).unwrap();
        let vis: Vec<_> = (0..700)
            .map(|_| {
                nic.create_vi(ViAttributes::new(Reliability::Delivery, tag), None, None).unwrap()
            })
            .collect();
        let regions: Vec<_> =
            (0..700).map(|_| nic.register_mem(&memory, MemAttributes::new(tag)).unwrap()).collect();
        let _cq = nic.create_cq(100).unwrap();
        nic.close();
        drop((vis, regions));
    }
}
