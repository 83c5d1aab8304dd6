//! Attributes that change, what a NIC knows of the network, and handles that are closed.

use core::sync::atomic::{AtomicBool, Ordering};

use host_driver::address::NodeAddress;
use host_driver::nic::NicConfig;
use nic_regs::desc::status::{PROTECTION_ERROR, RDMA_PROT_ERROR};
use tests::{
    Buffer, DeviceKind, LONG, Node, Pair, code, error_bits, on_every_kind, pattern, skipped,
};
use vipl::{
    INFINITE, MemAttributes, NetAddress, Nic, Reliability, SMI_AUTODISCOVERY, ViAttributes,
    ViState, VipReturn,
};

fn memory_changes_its_tag_and_its_rights(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (a, b) = pair.connected(Reliability::Delivery);
    let nic = &pair.b.nic;
    let other = nic.create_ptag().unwrap();
    let recvs = [0, 1].map(|_| Buffer::new(&pair.b, 100));
    let sends = [0, 1].map(|seed| {
        let send = Buffer::new(&pair.a, 100);
        send.set(&pattern(100, seed));
        send
    });
    // The data alone has another tag: its descriptor stays in reach.
    let data = pair.b.region(4096);
    let handle = data.handle();
    recvs[0].descriptor.prepare(&[data.segment(0, 100)], None).unwrap();
    nic.set_mem_attributes(&data, MemAttributes::new(other)).unwrap();
    assert_eq!((data.handle(), nic.query_mem(&data).unwrap().ptag), (handle, other));
    // The new tag is in use, and the old one is not for this.
    assert_eq!(code(nic.destroy_ptag(other)), VipReturn::ErrorResource);
    b.post_recv(&recvs[0].descriptor).unwrap();
    a.post_send(&sends[0].descriptor).unwrap();
    assert_eq!(error_bits(&b.recv_wait(LONG)), PROTECTION_ERROR);
    // Back again, and the same handle is good.
    nic.set_mem_attributes(&data, MemAttributes::new(pair.b.tag)).unwrap();
    nic.destroy_ptag(other).unwrap();
    let _ = a.send_wait(LONG);
    for vi in [&a, &b] {
        vi.disconnect().unwrap();
        while vi.recv_done().is_err_and(|e| e.descriptor.is_some()) {}
        while vi.send_done().is_err_and(|e| e.descriptor.is_some()) {}
    }
    pair.settle();
    pair.connect(&a, &b);
    recvs[1].descriptor.prepare(&[data.segment(0, 100)], None).unwrap();
    b.post_recv(&recvs[1].descriptor).unwrap();
    a.post_send(&sends[1].descriptor).unwrap();
    b.recv_wait(LONG).unwrap();
    assert_eq!(data.memory().to_vec(0, 100), pattern(100, 1));
    // What may not be leaves everything as it was.
    let gone = MemAttributes::new(other);
    assert_eq!(code(nic.set_mem_attributes(&data, gone)), VipReturn::InvalidPtag);
    assert_eq!(nic.query_mem(&data).unwrap(), MemAttributes::new(pair.b.tag));
    let foreign = pair.a.nic.set_mem_attributes(&data, MemAttributes::new(pair.a.tag));
    assert_eq!(code(foreign), VipReturn::InvalidParameter);
    nic.deregister_mem(&data).unwrap();
    let late = nic.set_mem_attributes(&data, MemAttributes::new(pair.b.tag));
    assert_eq!(code(late), VipReturn::InvalidParameter);
    pair.assert_no_stray_access();
}

fn memory_opens_and_closes_to_rdma(kind: DeviceKind) {
    let pair = Pair::new(kind);
    if !pair.b.driver.capabilities().rdma_write {
        let open = MemAttributes { enable_rdma_write: true, ..MemAttributes::new(pair.b.tag) };
        let refused = pair.b.nic.set_mem_attributes(&pair.b.region(8), open);
        assert_eq!(code(refused), VipReturn::ErrorNotSupported);
        return skipped(kind, "RDMA writes");
    }
    let (a, b) = (pair.a.vi(Reliability::Reception), pair.b.vi(Reliability::Reception));
    // The peer is notified of what the VI allows now, not of what it was created with.
    b.set_attributes(ViAttributes { enable_rdma_write: true, ..b.attributes() }).unwrap();
    pair.connect(&a, &b);
    let target = pair.b.region(100);
    let closed = pair.b.nic.query_mem(&target).unwrap();
    let open = MemAttributes { enable_rdma_write: true, ..closed };
    let source = Buffer::new(&pair.a, 100);
    let write = |value: usize| {
        source.set(&pattern(100, value));
        let segments = [source.region.segment(1024, 100)];
        source.descriptor.prepare_rdma_write(target.remote(0), &segments, None).unwrap();
        a.post_send(&source.descriptor).unwrap();
        a.send_wait(LONG)
    };
    for value in 0..2 {
        pair.b.nic.set_mem_attributes(&target, open).unwrap();
        assert_eq!(pair.b.nic.query_mem(&target).unwrap(), open);
        write(value).unwrap();
        pair.b.nic.set_mem_attributes(&target, closed).unwrap();
        assert_eq!(error_bits(&write(7)), RDMA_PROT_ERROR);
        assert_eq!(target.memory().to_vec(0, 100), pattern(100, value));
        pair.settle();
        for vi in [&a, &b] {
            vi.disconnect().unwrap();
        }
        pair.connect(&a, &b);
    }
    let reads = MemAttributes { enable_rdma_read: true, ..closed };
    if !pair.b.driver.capabilities().rdma_read {
        let refused = pair.b.nic.set_mem_attributes(&target, reads);
        assert_eq!(code(refused), VipReturn::InvalidRdmaRead);
    }
    pair.assert_no_stray_access();
}

fn an_idle_vi_changes_its_attributes(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (a, b) = (pair.a.vi(Reliability::Delivery), pair.b.vi(Reliability::Unreliable));
    let good = ViAttributes::new(Reliability::Delivery, pair.b.tag);
    // Receives that are posted stay so, in order.
    let recvs = [0, 1].map(|_| Buffer::new(&pair.b, 100));
    recvs.iter().for_each(|recv| b.post_recv(&recv.descriptor).unwrap());
    let number = b.number();
    b.set_attributes(good).unwrap();
    assert_eq!((b.number(), b.query().attributes), (number, good));
    assert_eq!(b.query().state, ViState::Idle);
    pair.connect(&a, &b);
    assert_eq!(code(b.set_attributes(good)), VipReturn::InvalidState);
    for (i, recv) in recvs.iter().enumerate() {
        let send = Buffer::new(&pair.a, 100);
        send.set(&pattern(100, i));
        a.post_send(&send.descriptor).unwrap();
        a.send_wait(LONG).unwrap();
        assert_eq!(b.recv_wait(LONG).unwrap().address(), recv.descriptor.address());
        assert_eq!(recv.data(), pattern(100, i));
    }
    b.disconnect().unwrap();
    // Another tag: the old one is free then.
    let tag = pair.b.nic.create_ptag().unwrap();
    b.set_attributes(ViAttributes { ptag: tag, ..good }).unwrap();
    assert_eq!(code(pair.b.nic.destroy_ptag(tag)), VipReturn::ErrorResource);
    b.set_attributes(good).unwrap();
    pair.b.nic.destroy_ptag(tag).unwrap();
    let refused = |attributes| code(b.set_attributes(attributes));
    assert_eq!(refused(ViAttributes { ptag: tag, ..good }), VipReturn::InvalidPtag);
    assert_eq!(refused(ViAttributes { max_transfer_size: 0, ..good }), VipReturn::InvalidMtu);
    let reads =
        ViAttributes { reliability: Reliability::Unreliable, enable_rdma_read: true, ..good };
    assert_eq!(refused(reads), VipReturn::InvalidRdmaRead);
    assert_eq!(b.attributes(), good);
    b.destroy().unwrap();
    assert_eq!(refused(good), VipReturn::InvalidParameter);
}

fn nodes_that_answer_are_found(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let found = pair.a.nic.query_management(SMI_AUTODISCOVERY).unwrap();
    assert_eq!(found.addresses, [NetAddress::of_node(1, b"")]);
    assert_eq!(found.number_of_hops, 1);
    let unknown = pair.a.nic.query_management(2);
    assert_eq!(code(unknown), VipReturn::InvalidParameter);
    // The search leaves the channels as they were.
    let (a, b) = pair.connected(Reliability::Delivery);
    pair.assert_works(&a, &b);
}

/// A program asks a node for a connection while another one searches; the node comes up later.
fn a_search_closes_no_channel_that_a_request_needs(kind: DeviceKind) {
    let Pair { a, b, simulation, buses, .. } = Pair::new(kind);
    drop((a, b));
    // It keeps no channel open by itself.
    let a = Node::open(buses[0].clone(), &NicConfig::new(0, &[]).with_seed(1));
    let service = NetAddress::of_node(1, b"late");
    let slots = ["search", "client"].map(|name| simulation.slot(name));
    let [search, client] = slots;
    let searched = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _token = search.enter();
            let found = a.nic.query_management(SMI_AUTODISCOVERY).unwrap();
            assert_eq!(found.addresses, []);
            searched.store(true, Ordering::Release);
            let b = Node::open(buses[1].clone(), &NicConfig::new(1, &[0]).with_seed(2));
            let vi = b.vi(Reliability::Delivery);
            b.nic.connect_wait(&service, LONG).unwrap().accept(&vi).unwrap();
            vi.disconnect().unwrap();
        });
        scope.spawn(|| {
            let _token = client.enter();
            // The search is under way.
            simulation.run(100_000);
            let vi = a.vi(Reliability::Delivery);
            assert!(!searched.load(Ordering::Acquire));
            vi.connect_request(&a.address(b""), &service, LONG).unwrap();
            vi.disconnect().unwrap();
        });
    });
}

/// Every call on what a closed NIC leaves behind is refused, and none hangs or panics.
fn everything_of_a_closed_nic_is_refused(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let driver = pair.a.driver.clone();
    let nic = Nic::open(host_driver::HardwarePort::open(driver).unwrap());
    let tag = nic.create_ptag().unwrap();
    let attributes = ViAttributes::new(Reliability::Delivery, tag);
    let cq = nic.create_cq(10).unwrap();
    let vi = nic.create_vi(attributes, None, Some(&cq)).unwrap();
    let plain = nic.create_vi(attributes, None, None).unwrap();
    let memory = vipl::DmaMemory::new(4096).unwrap();
    let region = nic.register_mem(&memory, MemAttributes::new(tag)).unwrap();
    let descriptors = [0, 64, 128].map(|offset| region.descriptor(offset, 1).unwrap());
    for descriptor in &descriptors {
        descriptor.prepare(&[region.segment(1024, 8)], None).unwrap();
    }
    vi.post_recv(&descriptors[0]).unwrap();
    plain.post_recv(&descriptors[1]).unwrap();
    plain.post_send(&descriptors[2]).unwrap();
    let again = nic.clone();
    nic.clone().close();
    again.close();

    let refused = VipReturn::InvalidParameter;
    assert_eq!(code(nic.create_ptag()), refused);
    assert_eq!(code(nic.destroy_ptag(tag)), refused);
    assert_eq!(code(nic.create_cq(10)), refused);
    assert_eq!(code(nic.create_vi(attributes, None, None)), refused);
    assert_eq!(code(nic.register_mem(&memory, MemAttributes::new(tag))), refused);
    assert_eq!(code(nic.deregister_mem(&region)), refused);
    assert_eq!(code(nic.query_mem(&region)), refused);
    assert_eq!(code(nic.set_mem_attributes(&region, MemAttributes::new(tag))), refused);
    assert_eq!(code(nic.query_management(SMI_AUTODISCOVERY)), refused);
    let address = pair.a.address(b"x");
    assert_eq!(code(nic.connect_wait(&address, INFINITE)), refused);
    nic.progress();
    let _ = nic.query();

    assert_eq!(code(cq.resize(4)), refused);
    assert_eq!(cq.wait(INFINITE), Err(refused));
    assert_eq!(code(cq.destroy()), refused);
    // Nobody looks at the program's memory, whatever was done in it.
    assert!(plain.send_done().unwrap_err().descriptor.is_none());
    for vi in [&vi, &plain] {
        assert_eq!(vi.query().state, ViState::Error);
        assert_eq!(vi.recv_wait(INFINITE).unwrap_err().code, refused);
        assert_eq!(vi.send_wait(INFINITE).unwrap_err().code, refused);
        assert_eq!(code(vi.post_recv(&descriptors[0])), refused);
        assert_eq!(code(vi.post_send(&descriptors[0])), refused);
        assert_eq!(code(vi.set_attributes(attributes)), refused);
        assert_eq!(code(vi.connect_request(&address, &pair.b.address(b"x"), LONG)), refused);
        assert_eq!(code(vi.disconnect()), refused);
        assert_eq!(code(vi.destroy()), refused);
    }
    drop((vi, plain, cq, region));
    pair.assert_no_stray_access();
}

on_every_kind! {
    memory_changes_its_tag_and_its_rights,
    memory_opens_and_closes_to_rdma,
    an_idle_vi_changes_its_attributes,
    nodes_that_answer_are_found,
    a_search_closes_no_channel_that_a_request_needs,
    everything_of_a_closed_nic_is_refused,
}
