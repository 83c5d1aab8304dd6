//! VIs and what belongs to them: arguments, and that closing gives everything back.

use tests::{DeviceKind, Pair, code, on_every_kind};
use vipl::{MemAttributes, Reliability, ViAttributes, VipReturn};

fn arguments_of_vis_memory_and_tags(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (nic, tag) = (&pair.a.nic, pair.a.tag);
    let good = ViAttributes::new(Reliability::Delivery, tag);
    let create = |attributes| code(nic.create_vi(attributes, None, None));
    assert_eq!(create(ViAttributes { max_transfer_size: 0, ..good }), VipReturn::InvalidMtu);
    let too_long = ViAttributes { max_transfer_size: 262_145, ..good };
    assert_eq!(create(too_long), VipReturn::InvalidMtu);
    // Reads are for the reliable levels, on devices that have them.
    let reads = ViAttributes { enable_rdma_read: true, ..good };
    let unreliable = ViAttributes { reliability: Reliability::Unreliable, ..reads };
    assert_eq!(create(unreliable), VipReturn::InvalidRdmaRead);
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

fn closing_gives_everything_back(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let port = host_driver::HardwarePort::open(pair.a.driver.clone()).unwrap();
    for _ in 0..kind.size(3, 2) {
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

on_every_kind! {
    arguments_of_vis_memory_and_tags,
    closing_gives_everything_back,
}
