//! CLAN's primitives between two nodes of `shm:`. Both are in this process, and meet as two processes
//! do; `shm_processes` has what needs several, and `shm_races` what threads do to each other.

mod support;

use std::sync::Arc;
use std::time::Duration;

use port::clan::{
    AccessRights, ClanEvent, ClanPeer, ClanPort, Cookie, DmaError, DmaRequest, RegionNumber,
    Tripwire,
};
use port::{DmaMemory, Wait, WaitOps};
use soft_nic::shm::{Error, ShmNode, ShmPort};
use support::{Pair, event, own};

/// Memory that its peers map, and memory that they do not.
fn both_kinds(port: &ShmPort, length: usize) -> [DmaMemory; 2] {
    [port.allocate(length).unwrap(), DmaMemory::new(length).unwrap()]
}

#[test]
fn stores_copies_and_reads_reach_memory_of_every_kind() {
    let pair = Pair::new("access");
    for (memory, is_mapped) in both_kinds(&pair.a, 300_000).iter().zip([true, false]) {
        let (_, mut remote) = pair.share(memory, AccessRights::ALL);
        assert_eq!((remote.length(), remote.is_mapped()), (300_000, is_mapped));
        remote.store(64, &[1, 2, 3]).unwrap();
        assert_eq!([64, 72, 80, 88].map(|at| memory.load_u64(at)), [1, 2, 3, 0]);
        let source = DmaMemory::new(200_001).unwrap();
        let bytes: Vec<u8> = (0..200_001_u32).map(|i| (i * 7 % 251) as u8).collect();
        source.copy_from(0, &bytes);
        // Aligned alike, and not.
        for offset in [4096_u32, 4099] {
            remote.write(offset.into(), &source).unwrap();
            assert_eq!(memory.to_vec(offset as usize, 200_001), bytes);
        }
        let target = DmaMemory::new(200_001).unwrap();
        remote.read(4099, &target, 0).unwrap();
        assert_eq!(target.to_vec(0, 200_001), bytes);
    }
}

#[test]
fn a_part_of_shared_memory_is_a_region_by_itself() {
    let pair = Pair::new("part");
    let whole = pair.a.allocate(20_000).unwrap();
    let (_, mut remote) = pair.share(&whole.slice(5_000, 8_192).unwrap(), AccessRights::ALL);
    remote.store(8_184, &[u64::MAX]).unwrap();
    assert_eq!(remote.store(8_192, &[1]), Err(DmaError::Refused));
    assert_eq!(whole.load_u64(13_184), u64::MAX);
}

#[test]
fn nothing_outside_a_region_or_against_its_rights_is_accessed() {
    let pair = Pair::new("bounds");
    for memory in both_kinds(&pair.a, 8192) {
        let piece = DmaMemory::new(16).unwrap();
        let (_, mut write) = pair.share(&memory, AccessRights::WRITE);
        for offset in [8_185, 8_192, u64::MAX, u64::MAX - 7, 4] {
            assert_eq!(write.store(offset, &[1]), Err(DmaError::Refused), "{offset}");
        }
        for offset in [8_177, u64::MAX - 15] {
            assert_eq!(write.write(offset, &piece), Err(DmaError::Refused), "{offset}");
        }
        assert_eq!(write.read(0, &piece, 0), Err(DmaError::Refused));
        let (_, mut read) = pair.share(&memory, AccessRights::READ);
        assert_eq!(read.store(0, &[1]), Err(DmaError::Refused));
        assert_eq!(read.write(0, &piece), Err(DmaError::Refused));
        assert_eq!(read.read(8_177, &piece, 0), Err(DmaError::Refused));
        assert_eq!(read.read(8_176, &piece, 0), Ok(()));
        assert_eq!(memory.to_vec(0, 8192), [0; 8192]);
    }
}

#[test]
fn a_cookie_is_good_for_the_domain_that_it_was_given_to() {
    let pair = Pair::new("cookie");
    let region = pair.a.register(&pair.a.allocate(4096).unwrap()).unwrap();
    let cookie = pair.a.open(region, own(&pair.b), AccessRights::WRITE).unwrap();
    let attach = |cookie| pair.b.attach(own(&pair.a), cookie).map(drop);
    let refused = |cookie| {
        let error = attach(cookie).unwrap_err();
        matches!(error, port::Error::NoSuch { what: "cookie", .. })
    };
    for bit in (0..64).filter(|bit| !(18..32).contains(bit)) {
        let other = Cookie::from_bits(cookie.to_bits() ^ 1 << bit).unwrap();
        assert!(refused(other), "bit {bit}");
    }
    let other = ClanPeer { domain: 1, ..own(&pair.b).clone() };
    assert!(refused(pair.a.open(region, &other, AccessRights::WRITE).unwrap()));
    attach(cookie).unwrap();
    let nobody = ClanPeer { host: b"nobody".to_vec(), domain: 0 };
    let error = pair.b.attach(&nobody, cookie).unwrap_err();
    assert!(matches!(error, port::Error::NotReachable(_)), "{error}");
    assert_eq!(error.to_string(), "there is no node 'nobody'");
}

#[test]
fn after_a_cookie_is_revoked_nothing_is_written_by_it() {
    let pair = Pair::new("revoke");
    for memory in both_kinds(&pair.a, 4096) {
        let (cookie, mut remote) = pair.share(&memory, AccessRights::WRITE);
        let mut copy = remote.duplicate();
        let region = cookie.region;
        let second = pair.a.open(region, own(&pair.b), AccessRights::WRITE).unwrap();
        let mut other = pair.b.attach(own(&pair.a), second).unwrap();
        // A writer that does not stop by itself.
        let stop = Arc::new(core::sync::atomic::AtomicBool::new(false));
        let writer = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                for word in 1.. {
                    let stored = copy.store(8, &[word]);
                    if stored.is_err() || stop.load(core::sync::atomic::Ordering::Relaxed) {
                        return stored;
                    }
                }
                Ok(())
            }
        });
        while memory.load_u64(8) == 0 {
            std::thread::yield_now();
        }
        pair.a.revoke(cookie).unwrap();
        memory.store_u64(8, 0);
        assert_eq!(writer.join().unwrap(), Err(DmaError::Refused));
        assert_eq!(remote.store(0, &[1]), Err(DmaError::Refused));
        assert_eq!(remote.duplicate().store(0, &[1]), Err(DmaError::Refused));
        assert!(pair.b.attach(own(&pair.a), cookie).is_err());
        assert_eq!((memory.load_u64(0), memory.load_u64(8)), (0, 0));
        // The other cookie of the region is another matter.
        other.store(0, &[2]).unwrap();
        assert_eq!(memory.load_u64(0), 2);
        pair.a.deregister(region).unwrap();
        assert_eq!(other.store(0, &[3]), Err(DmaError::Refused));
        assert_eq!(memory.load_u64(0), 2);
        let gone = pair.a.deregister(region).unwrap_err();
        assert!(matches!(gone, port::Error::NoSuch { what: "region", .. }));
    }
}

#[test]
fn a_tripwire_fires_for_accesses_behind_it_and_for_no_others() {
    let pair = Pair::new("tripwire");
    let queue = pair.a.event_queue().unwrap();
    for (memory, tag) in both_kinds(&pair.a, 65_536).iter().zip([10, 20]) {
        let (cookie, mut remote) = pair.share(memory, AccessRights::ALL);
        remote.store(128, &[1]).unwrap();
        let at = |offset, on, once, tag| Tripwire {
            region: cookie.region,
            offset,
            on,
            once,
            queue: queue.number(),
            tag,
        };
        let wire = pair.a.set_tripwire(&at(128, AccessRights::WRITE, false, tag)).unwrap();
        let read = pair.a.set_tripwire(&at(136, AccessRights::READ, true, tag + 1)).unwrap();
        assert_eq!(queue.poll(), None, "an access before it was set");
        remote.store(120, &[1]).unwrap();
        remote.store(136, &[1]).unwrap();
        assert_eq!(
            queue.poll(),
            None,
            "other words, and a write of a word whose reads are watched"
        );
        for _ in 0..3 {
            remote.store(120, &[1, 2]).unwrap();
            assert_eq!(queue.poll(), Some(ClanEvent::Tripwire { tag }));
            assert_eq!(queue.poll(), None);
        }
        // A large copy, whose words are not looked at one by one.
        remote.write(0, &DmaMemory::new(65_536).unwrap()).unwrap();
        assert_eq!(queue.poll(), Some(ClanEvent::Tripwire { tag }));
        let target = DmaMemory::new(1).unwrap();
        remote.read(143, &target, 0).unwrap();
        assert_eq!(queue.poll(), Some(ClanEvent::Tripwire { tag: tag + 1 }));
        remote.read(143, &target, 0).unwrap();
        assert_eq!(queue.poll(), None, "once");
        pair.a.clear_tripwire(wire).unwrap();
        pair.a.clear_tripwire(read).unwrap();
        remote.store(128, &[1]).unwrap();
        assert_eq!(queue.poll(), None, "cleared");
        assert!(pair.a.clear_tripwire(wire).is_err());
    }
    let nowhere = Tripwire {
        region: RegionNumber(4000),
        offset: 0,
        on: AccessRights::ALL,
        once: false,
        queue: queue.number(),
        tag: 0,
    };
    assert!(pair.a.set_tripwire(&nowhere).is_err());
}

#[test]
fn all_tripwires_can_be_set_and_one_more_is_refused() {
    let pair = Pair::new("many");
    let memory = pair.a.allocate(8 * 4096).unwrap();
    let (cookie, mut remote) = pair.share(&memory, AccessRights::WRITE);
    let queues: Vec<_> = (0..4).map(|_| pair.a.event_queue().unwrap()).collect();
    let wire = |i: u64| Tripwire {
        region: cookie.region,
        offset: 8 * i,
        on: AccessRights::WRITE,
        once: false,
        queue: queues[(i % 4) as usize].number(),
        tag: i,
    };
    let limit = u64::from(pair.a.attributes().tripwires);
    let set: Vec<_> = (0..limit).map(|i| pair.a.set_tripwire(&wire(i)).unwrap()).collect();
    assert!(pair.a.set_tripwire(&wire(0)).is_err());
    for i in 0..limit {
        remote.store(8 * i, &[1]).unwrap();
    }
    for (start, queue) in queues.iter().enumerate() {
        let mut tags = Vec::new();
        while let Some(ClanEvent::Tripwire { tag }) = queue.poll() {
            tags.push(tag);
        }
        tags.sort_unstable();
        assert_eq!(tags, (start as u64..limit).step_by(4).collect::<Vec<_>>());
    }
    set.iter().for_each(|wire| pair.a.clear_tripwire(*wire).unwrap());
    pair.a.set_tripwire(&wire(1)).unwrap();
    pair.a.destroy_event_queue(queues[1].number()).unwrap();
    assert!(pair.a.set_tripwire(&wire(1)).is_err(), "its queue does not exist any more");
}

#[test]
fn an_armed_queue_wakes_its_reader() {
    let pair = Pair::new("wake");
    let memory = pair.a.allocate(4096).unwrap();
    let (cookie, mut remote) = pair.share(&memory, AccessRights::WRITE);
    let (queue, wakes) = (pair.a.event_queue().unwrap(), pair.a.wake_queue().unwrap());
    for (offset, queue) in [(0, &queue), (64, &wakes)] {
        let wire = Tripwire {
            region: cookie.region,
            offset,
            on: AccessRights::WRITE,
            once: false,
            queue: queue.number(),
            tag: 5,
        };
        pair.a.set_tripwire(&wire).unwrap();
    }
    let mut other = remote.duplicate();
    std::thread::scope(|scope| {
        let (asked, go) = std::sync::mpsc::channel();
        scope.spawn(move || {
            for word in go {
                std::thread::sleep(Duration::from_millis(1));
                other.store(64, &[word]).unwrap();
            }
        });
        for word in 1..50_u64 {
            asked.send(word).unwrap();
            while memory.load_u64(64) != word {
                let seen = pair.a.wake_count();
                wakes.arm();
                if memory.load_u64(64) != word {
                    pair.a.sleep(seen, 20_000_000_000, Wait::bounded("a store", 0));
                }
            }
            assert_eq!(wakes.poll(), None);
        }
    });
    std::thread::scope(|scope| {
        let (asked, go) = std::sync::mpsc::channel();
        scope.spawn(move || {
            for () in go {
                std::thread::sleep(Duration::from_millis(1));
                remote.store(0, &[1]).unwrap();
            }
        });
        for _ in 0..50 {
            asked.send(()).unwrap();
            assert_eq!(event(&pair.a, &queue), ClanEvent::Tripwire { tag: 5 });
        }
    });
}

#[test]
fn dma_requests_report_what_became_of_them_in_order() {
    let pair = Pair::new("dma");
    let queue = pair.b.event_queue().unwrap();
    let mut dma = pair.b.dma_queue(queue.number()).unwrap();
    for memory in both_kinds(&pair.a, 4096) {
        let (cookie, mut remote) = pair.share(&memory, AccessRights::WRITE);
        let source = DmaMemory::new(100).unwrap();
        source.fill(9);
        let request = |offset, notify| DmaRequest { offset, source: source.clone(), notify };
        dma.submit(&mut *remote, request(0, None)).unwrap();
        dma.submit(&mut *remote, request(4_000, Some(7))).unwrap();
        dma.submit(&mut *remote, request(200, Some(8))).unwrap();
        pair.a.revoke(cookie).unwrap();
        dma.submit(&mut *remote, request(300, None)).unwrap();
        let results: Vec<_> = core::iter::from_fn(|| queue.poll()).collect();
        let done = |tag, result| ClanEvent::Dma { tag, result };
        let refused = Err(DmaError::Refused);
        assert_eq!(results, [done(7, refused), done(8, Ok(())), done(0, refused)]);
        assert_eq!(memory.to_vec(0, 100), [9; 100]);
        assert_eq!(memory.to_vec(200, 100), [9; 100]);
        assert_eq!(memory.to_vec(300, 100), [0; 100]);
    }
}

#[test]
fn messages_arrive_in_order_and_name_their_sender() {
    let pair = Pair::new("message");
    let queue = pair.a.event_queue().unwrap();
    pair.a.set_message_queue(queue.number()).unwrap();
    for i in 0..100 {
        pair.b.send_message(own(&pair.a), &[i; 48]).unwrap();
    }
    for i in 0..100 {
        let from = own(&pair.b).clone();
        assert_eq!(event(&pair.a, &queue), ClanEvent::Message { from, message: [i; 48] });
    }
    pair.a.send_message(own(&pair.a), &[7; 48]).unwrap();
    let from = own(&pair.a).clone();
    assert_eq!(event(&pair.a, &queue), ClanEvent::Message { from, message: [7; 48] });
}

#[test]
fn a_node_reaches_its_own_regions_by_cookie() {
    let pair = Pair::new("self");
    let memory = pair.a.allocate(4096).unwrap();
    let region = pair.a.register(&memory).unwrap();
    let cookie = pair.a.open(region, own(&pair.a), AccessRights::WRITE).unwrap();
    let mut remote = pair.a.attach(own(&pair.a), cookie).unwrap();
    remote.store(0, &[3]).unwrap();
    assert_eq!(memory.load_u64(0), 3);
    pair.a.deregister(region).unwrap();
    assert_eq!(remote.store(0, &[4]), Err(DmaError::Refused));
}

#[test]
fn a_node_that_ends_is_reported_and_its_name_is_free() {
    let Pair { folder, a, b } = &Pair::new("lost");
    let c = ShmNode::open_in(folder, Some("c")).unwrap();
    let port = c.port().unwrap();
    assert_eq!(a.discover().unwrap(), [own(b).host.clone(), own(&port).host.clone()]);
    let (ours, theirs) = (a.event_queue().unwrap(), b.event_queue().unwrap());
    a.set_message_queue(ours.number()).unwrap();
    b.set_message_queue(theirs.number()).unwrap();
    // One has connected to it, to the other it has.
    let memory = port.allocate(4096).unwrap();
    let region = port.register(&memory).unwrap();
    let cookie = port.open(region, own(a), AccessRights::WRITE).unwrap();
    let mut remote = a.attach(own(&port), cookie).unwrap();
    port.send_message(own(b), &[1; 48]).unwrap();
    assert!(matches!(event(b, &theirs), ClanEvent::Message { .. }));
    let taken = ShmNode::open_in(folder, Some("c")).unwrap_err();
    assert!(matches!(taken, Error::NameTaken { .. }), "{taken}");
    let host = own(&port).host.clone();
    drop(port);
    assert_eq!(remote.store(0, &[1]), Err(DmaError::Refused), "its domain is closed");
    drop(c);
    let lost = ClanEvent::NodeLost { host };
    assert_eq!(event(a, &ours), lost);
    assert_eq!(event(b, &theirs), lost);
    let again = ShmNode::open_in(folder, Some("c")).unwrap().port().unwrap();
    assert!(a.attach(own(&again), cookie).is_err());
    again.send_message(own(a), &[2; 48]).unwrap();
    assert!(matches!(event(a, &ours), ClanEvent::Message { .. }));
}

#[test]
fn nodes_without_a_name_are_numbered() {
    let folder = std::env::temp_dir().join(format!("shm-names-{}", std::process::id()));
    let open = |name| ShmNode::open_in(&folder, name);
    let (one, two) = (open(None).unwrap(), open(None).unwrap());
    assert_eq!((one.name(), two.name()), ("node0", "node1"));
    drop(one);
    let three = open(None).unwrap();
    assert_eq!(three.name(), "node0");
    for name in ["", ".hidden", "a/b", "seventeen-letters", "a b", "ä"] {
        assert!(matches!(open(Some(name)), Err(Error::BadName { .. })), "{name}");
    }
    // What a process that died has left.
    std::fs::write(folder.join("stale.sock"), "").unwrap();
    open(Some("stale")).unwrap();
    drop((two, three));
    std::fs::remove_dir_all(&folder).unwrap();
}
