//! Sections 11 and 12: RDMA that fails in mid-message: regions that go, memory that is not there,
//! descriptors that change, disconnects, a device without RDMA.

use nic_regs::admin::Opcode;
use nic_regs::counter::Counter;
use nic_regs::desc::status;
use nic_regs::vi::{Reliability, State, StopReason, rdma};

use super::rdma::*;
use super::support::*;
use crate::Model;
use crate::device::{Device, Features};

#[test]
fn a_region_that_goes_in_mid_answer_ends_the_read() {
    for level in RELIABLE {
        let mut w = open(level);
        w.hosts[B].put(REMOTE, &pattern(4, 200_000));
        post_rdma(&mut w, A, 0, rdma_of(READ, &[(LOCAL, 200_000)]));
        w.run(4000);
        w.ok(B, Opcode::RegionClear, OPEN.into(), [0; 12]);
        w.settle();
        assert_eq!(w.hosts[A].status(0), 0);
        let reason = StopReason::RdmaRead;
        assert_eq!(stops(&mut w, B), [(reason as u32, 1, status::DESC_FLUSHED_ERROR)]);
        let bits = status::RDMA_PROT_ERROR | status::PARTIAL_ERROR;
        assert_eq!(stops(&mut w, A), [(refusal(reason), 0, bits)]);
        assert_eq!(w.hosts[A].data(LOCAL, 4096), &pattern(4, 200_000)[..4096]);
        assert!(w.hosts[A].data(LOCAL + 196_608, 100).iter().all(|&b| b == 0));
    }
}

#[test]
fn memory_that_cannot_be_read_ends_the_read() {
    for level in RELIABLE {
        let mut w = open(level);
        w.hosts[B].memory.holes.push(BUS + REMOTE + 100..BUS + REMOTE + 101);
        post_rdma(&mut w, A, 0, rdma_of(READ, &[(LOCAL, 5000)]));
        w.settle();
        let reason = StopReason::HostRead;
        assert_eq!(stops(&mut w, B), [(reason as u32, 1, status::DESC_FLUSHED_ERROR)]);
        let bits = if level == Reliability::Reception {
            status::REMOTE_DESC_ERROR
        } else {
            status::TRANSPORT_ERROR
        };
        assert_eq!(stops(&mut w, A), [(refusal(reason), 0, bits)]);
    }
    // The data of a write: local.
    for level in LEVELS {
        let mut w = open(level);
        w.hosts[A].memory.holes.push(BUS + LOCAL + 4100..BUS + LOCAL + 4101);
        post_rdma(&mut w, A, 0, rdma_of(WRITE, &[(LOCAL, 5000)]));
        w.settle();
        let bits = status::TRANSPORT_ERROR | status::PARTIAL_ERROR;
        assert_eq!(w.hosts[A].status(0), WRITTEN | bits, "{level:?}");
    }
}

#[test]
fn a_descriptor_that_changes_while_it_reads() {
    let spoil: [(Spoil, u32); 4] = [
        (|h| h.put(48 + 12, &77_u32.to_le_bytes()), status::LENGTH_ERROR),
        (|h| h.put(14, &[WRITE as u8]), status::LENGTH_ERROR),
        (|h| h.put(48 + 8, &[0; 4]), status::PROTECTION_ERROR),
        (|h| h.put(16, &[1]), status::FORMAT_ERROR),
    ];
    for ((change, bits), answered) in spoil.into_iter().flat_map(|s| [(s, false), (s, true)]) {
        let mut w = open(Reliability::Delivery);
        w.frozen[B] = !answered;
        post_rdma(&mut w, A, 0, rdma_of(READ, &[(LOCAL, 200_000)]));
        w.run(4000);
        w.frozen[B] = false;
        change(&mut w.hosts[A]);
        w.settle();
        let error = w.hosts[A].status(0) & status::ERROR_MASK;
        assert_eq!(error, bits | if answered { status::PARTIAL_ERROR } else { 0 });
        assert_eq!(w.hosts[A].vi(A), State::Error);
    }
    // Out of reach: nothing more is written.
    let mut w = open(Reliability::Delivery);
    post_rdma(&mut w, A, 0, rdma_of(READ, &[(LOCAL, 200_000)]));
    w.run(4000);
    w.ok(A, Opcode::RegionClear, REGION.into(), [0; 12]);
    w.settle();
    assert_eq!(w.hosts[A].status(0), 0);
    let bits = status::PROTECTION_ERROR | status::PARTIAL_ERROR;
    assert_eq!(stops(&mut w, A), [(StopReason::Descriptor as u32, 0, bits)]);
}

#[test]
fn disconnects_forget_reads_and_answers() {
    for side in [A, B] {
        let mut w = open(Reliability::Delivery);
        w.hosts[B].put(REMOTE, &pattern(4, 200_000));
        post_rdma(&mut w, A, 0, rdma_of(READ, &[(LOCAL, 200_000)]));
        w.run(4000);
        assert_eq!(w.ok(side, Opcode::ViQuery, VIS[side].into(), [0; 12]) >> 12 & 1, 1);
        w.ok(side, Opcode::ViDisconnect, VIS[side].into(), [0; 12]);
        w.settle();
        assert_eq!(w.hosts[A].status(0), 0);
        let other = 1 - side;
        w.ok(other, Opcode::ViDisconnect, VIS[other].into(), [0; 12]);
        w.settle();
        // What B had sent before A's Fin came finds nobody.
        let unmatched = if side == A { w.hosts[A].count(Counter::Unmatched) } else { 0 };
        for (side, connection) in [(B, 5), (A, 5)] {
            w.hosts[side].unlink(VIS[side]);
            let mut words = connect_words(side);
            words[1] = connection | rdma::MASK << rdma::PEER_LSB;
            w.ok(side, Opcode::ViConnect, VIS[side].into(), words);
        }
        w.settle();
        post_rdma(&mut w, A, 0x400, rdma_of(READ, &[(LOCAL, 9000)]));
        w.settle();
        assert_eq!(w.hosts[A].count(Counter::Unmatched), unmatched, "of an old answer");
        assert_eq!(w.hosts[A].status(0x400), HAS_READ);
        assert_eq!(w.hosts[A].data(LOCAL, 9000), &pattern(4, 200_000)[..9000]);
    }
}

#[test]
fn a_device_without_rdma_takes_no_part() {
    // Frames of these types are unknown there; its descriptors are malformed.
    let mut w = open(UNRELIABLE);
    w.hosts[B].model = Model::with_features(Features::NONE);
    w.bring_up(B);
    w.ok(A, Opcode::PeerClose, NODES[B].into(), [0; 12]);
    w.ok(A, Opcode::ViDisconnect, VIS[A].into(), [0; 12]);
    w.hosts[A].events(ERRORS);
    w.settle();
    w.open_channels();
    let mut create = vi_words(UNRELIABLE);
    create[3] = rdma::MASK;
    w.ok(B, Opcode::ViCreate, VIS[B].into(), create);
    for side in [A, B] {
        let mut words = connect_words(side);
        words[1] |= rdma::MASK << rdma::PEER_LSB;
        w.ok(side, Opcode::ViConnect, VIS[side].into(), words);
        w.hosts[side].unlink(VIS[side]);
    }
    post_rdma(&mut w, A, 0, rdma_of(WRITE, &[(LOCAL, 100)]));
    w.settle();
    assert_eq!(w.hosts[B].count(Counter::DropLength), 1);
    post_rdma(&mut w, B, 0, rdma_of(WRITE, &[(LOCAL, 100)]));
    w.settle();
    assert_eq!(w.hosts[B].status(0), status::DONE | status::OP_SEND | status::FORMAT_ERROR);
    let reset = w.reg_read(B, nic_regs::csr::CAPS3::OFFSET);
    assert_eq!(reset, nic_regs::csr::CAPS3::RESET.0);
    assert!(!w.hosts[A].model.busy());
}
