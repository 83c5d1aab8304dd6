//! Registered memory: what segments may name, how many regions there are.

use nic_regs::desc::status::PROTECTION_ERROR;
use tests::{DeviceKind, LEVELS, Pair, code, on_every_kind};
use vipl::{MemAttributes, Segment, VipReturn};

use crate::case::Case;

fn segments_that_may_not_be_read(kind: DeviceKind) {
    for level in LEVELS {
        for wrong in 0..6 {
            let case = Case::new(kind, level);
            let node = &case.pair.a;
            let region = node.region(4096);
            let good = region.segment(1024, 16);
            let other_tag = node.nic.create_ptag().unwrap();
            let other = vipl::DmaMemory::new(64).unwrap();
            let other = node.nic.register_mem(&other, MemAttributes::new(other_tag)).unwrap();
            let gone = node.region(64);
            node.nic.deregister_mem(&gone).unwrap();
            let bad = match wrong {
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

fn registrations_run_out_and_come_back(kind: DeviceKind) {
    let pair = Pair::new(kind);
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

on_every_kind! {
    segments_that_may_not_be_read,
    registrations_run_out_and_come_back,
}
