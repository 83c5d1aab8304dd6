//! What threads of two nodes do to each other, and what their limits are.

mod support;

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use port::DmaMemory;
use port::clan::{AccessRights, ClanEvent, ClanPort, DmaError, DmaRequest, EventQueue, Tripwire};
use soft_nic::shm::ShmNode;
use support::{Pair, event, on_write, own};

/// Everything that a queue has.
fn all(queue: &Arc<dyn EventQueue>) -> Vec<ClanEvent> {
    core::iter::from_fn(|| queue.poll()).collect()
}

#[test]
fn threads_that_connect_at_the_same_time_share_one_connection() {
    for round in 0..20 {
        let pair = Pair::new(&format!("connect{round}"));
        let (ours, theirs) = (pair.a.event_queue().unwrap(), pair.b.event_queue().unwrap());
        pair.a.set_message_queue(ours.number()).unwrap();
        pair.b.set_message_queue(theirs.number()).unwrap();
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for i in 0..8 {
                let (pair, start) = (&pair, &start);
                scope.spawn(move || {
                    start.wait();
                    pair.b.send_message(own(&pair.a), &[i; 48]).unwrap();
                });
            }
        });
        for _ in 0..8 {
            assert!(matches!(event(&pair.a, &ours), ClanEvent::Message { .. }), "round {round}");
        }
        // Nobody took the end of a connection that was too many for the end of a node.
        pair.b.send_message(own(&pair.a), &[9; 48]).unwrap();
        let last = event(&pair.a, &ours);
        assert!(matches!(last, ClanEvent::Message { message: [9, ..], .. }), "{last:?}");
        assert_eq!(theirs.poll(), None);
    }
}

#[test]
fn a_cookie_that_is_revoked_while_it_is_attached_gives_no_access() {
    let pair = Pair::new("overtake");
    let memory = pair.a.allocate(4096).unwrap();
    let region = pair.a.register(&memory).unwrap();
    let start = Barrier::new(2);
    for round in 0..3_000 {
        let cookie = pair.a.open(region, own(&pair.b), AccessRights::WRITE).unwrap();
        std::thread::scope(|scope| {
            let attached = scope.spawn(|| {
                start.wait();
                pair.b.attach(own(&pair.a), cookie)
            });
            start.wait();
            (0..round % 40 * 50).for_each(|_| core::hint::spin_loop());
            pair.a.revoke(cookie).unwrap();
            if let Ok(mut remote) = attached.join().unwrap() {
                assert_eq!(remote.store(0, &[1]), Err(DmaError::Refused), "round {round}");
            }
        });
    }
    assert_eq!(memory.load_u64(0), 0);
}

#[test]
fn a_region_with_more_grants_than_a_socket_holds_packets_is_deregistered() {
    let pair = Pair::new("grants");
    let region = pair.a.register(&pair.a.allocate(4096).unwrap()).unwrap();
    let cookie = pair.a.open(region, own(&pair.b), AccessRights::WRITE).unwrap();
    let attach = || pair.b.attach(own(&pair.a), cookie).unwrap();
    let mut remotes: Vec<_> = (0..3_000).map(|_| attach()).collect();
    pair.a.deregister(region).unwrap();
    for remote in &mut remotes {
        assert_eq!(remote.store(0, &[1]), Err(DmaError::Refused));
    }
}

#[test]
fn a_revocation_is_confirmed_although_messages_fill_the_socket() {
    let pair = Pair::new("flood");
    let region = pair.a.register(&pair.a.allocate(4096).unwrap()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                // An error says that there is no room.
                while !stop.load(Ordering::Relaxed) {
                    let _ = pair.b.send_message(own(&pair.a), &[1; 48]);
                }
            });
        }
        for _ in 0..100 {
            let cookie = pair.a.open(region, own(&pair.b), AccessRights::WRITE).unwrap();
            // The request may find no room either.
            let _attached = pair.b.attach(own(&pair.a), cookie);
            pair.a.revoke(cookie).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_large_copy_is_refused_in_the_middle_when_its_cookie_is_revoked() {
    let pair = Pair::new("large");
    let memory = pair.a.allocate(64 << 20).unwrap();
    let (cookie, mut remote) = pair.share(&memory, AccessRights::WRITE);
    let queue = pair.a.event_queue().unwrap();
    pair.a.set_tripwire(&on_write(cookie, 0, &queue)).unwrap();
    let source = DmaMemory::new(64 << 20).unwrap();
    source.fill(3);
    let writer = std::thread::spawn(move || {
        loop {
            remote.write(0, &source)?;
        }
    });
    while memory.load_u64(0) == 0 {
        std::thread::yield_now();
    }
    pair.a.revoke(cookie).unwrap();
    memory.fill(0);
    let result: Result<(), DmaError> = writer.join().unwrap();
    assert_eq!(result, Err(DmaError::Refused));
    assert!((0..memory.len() / 8).all(|i| memory.load_u64(8 * i) == 0));
}

#[test]
fn a_region_may_start_anywhere() {
    let pair = Pair::new("unaligned");
    let whole = pair.a.allocate(8192).unwrap();
    let (_, mut remote) = pair.share(&whole.slice(4_001, 64).unwrap(), AccessRights::ALL);
    remote.store(8, &[0x0102_0304_0506_0708, 9]).unwrap();
    assert_eq!(whole.to_vec(4_009, 9), [8, 7, 6, 5, 4, 3, 2, 1, 9]);
    assert_eq!(remote.store(64, &[1]), Err(DmaError::Refused));
}

#[test]
fn a_full_queue_loses_messages_and_nothing_else() {
    let pair = Pair::new("full");
    let queue = pair.a.event_queue().unwrap();
    pair.a.set_message_queue(queue.number()).unwrap();
    let mut dma = pair.a.dma_queue(queue.number()).unwrap();
    let memory = pair.b.allocate(4096).unwrap();
    let region = pair.b.register(&memory).unwrap();
    let cookie = pair.b.open(region, own(&pair.a), AccessRights::ALL).unwrap();
    let mut remote = pair.a.attach(own(&pair.b), cookie).unwrap();
    let watched = pair.a.register(&pair.a.allocate(4096).unwrap()).unwrap();
    let cookie = pair.a.open(watched, own(&pair.b), AccessRights::ALL).unwrap();
    let mut other = pair.b.attach(own(&pair.a), cookie).unwrap();
    pair.a.set_tripwire(&on_write(cookie, 8, &queue)).unwrap();
    for _ in 0..5_000 {
        pair.a.send_message(own(&pair.a), &[0; 48]).unwrap();
    }
    let request = DmaRequest { offset: 0, source: DmaMemory::new(8).unwrap(), notify: Some(1) };
    let full = dma.submit(&mut *remote, request.clone()).unwrap_err();
    assert!(matches!(full, port::Error::Exhausted { .. }), "{full}");
    // Tripwires and messages take turns.
    other.store(8, &[1]).unwrap();
    let first: Vec<_> = (0..2).filter_map(|_| queue.poll()).collect();
    assert!(first.contains(&ClanEvent::Tripwire { tag: 8 }), "{first:?}");
    dma.submit(&mut *remote, request).unwrap();
    let Pair { folder, a, b } = &pair;
    // A node that comes and goes.
    let c = ShmNode::open_in(folder, Some("c")).unwrap();
    let port = c.port().unwrap();
    port.send_message(own(a), &[2; 48]).unwrap();
    port.send_message(own(b), &[2; 48]).unwrap();
    drop((port, c));
    let lost = ClanEvent::NodeLost { host: b"c".to_vec() };
    let mut events = Vec::new();
    while events.last() != Some(&lost) {
        events.push(event(a, &queue));
    }
    assert!(events.contains(&ClanEvent::Dma { tag: 1, result: Ok(()) }));
    let messages = events.iter().filter(|event| matches!(event, ClanEvent::Message { .. }));
    assert!((4_000..5_000).contains(&messages.count()));
}

#[test]
fn a_port_that_was_closed_does_not_touch_the_next_domain_of_its_number() {
    let pair = Pair::new("closed");
    let node = ShmNode::open_in(&pair.folder, Some("c")).unwrap();
    let first = node.port().unwrap();
    first.close();
    let second = node.port().unwrap();
    assert_eq!(own(&first), own(&second));
    let region = second.register(&second.allocate(4096).unwrap()).unwrap();
    let error = first.deregister(region).unwrap_err();
    assert!(matches!(error, port::Error::NoSuch { what: "domain", .. }), "{error}");
    drop(first);
    second.deregister(region).unwrap();
}

#[test]
fn a_bit_that_was_taken_is_not_the_event_of_a_later_tripwire() {
    let pair = Pair::new("bits");
    let memory = pair.a.allocate(4096).unwrap();
    let (cookie, mut remote) = pair.share(&memory, AccessRights::WRITE);
    let queue = pair.a.event_queue().unwrap();
    let set = |start: u64| {
        let wire = |i| Tripwire { tag: start + i, ..on_write(cookie, 8 * i, &queue) };
        let set = |i| pair.a.set_tripwire(&wire(i)).unwrap();
        (0..64).map(set).collect::<Vec<_>>()
    };
    let first = set(0);
    remote.write(0, &DmaMemory::new(512).unwrap()).unwrap();
    assert_eq!(queue.poll(), Some(ClanEvent::Tripwire { tag: 0 }));
    first.into_iter().for_each(|wire| pair.a.clear_tripwire(wire).unwrap());
    // They have the bits of those before.
    let again = set(100);
    assert_eq!(all(&queue), []);
    again.into_iter().for_each(|wire| pair.a.clear_tripwire(wire).unwrap());
}

#[test]
fn a_tripwire_that_fires_once_reports_one_access_and_can_be_set_again() {
    let pair = Pair::new("once");
    let memory = pair.a.allocate(4096).unwrap();
    let (cookie, mut remote) = pair.share(&memory, AccessRights::WRITE);
    let queue = pair.a.event_queue().unwrap();
    let always = Tripwire { tag: 1, ..on_write(cookie, 8, &queue) };
    pair.a.set_tripwire(&always).unwrap();
    for round in 0..1_000 {
        let wire = Tripwire { once: true, ..on_write(cookie, 0, &queue) };
        let wire = pair.a.set_tripwire(&wire).unwrap();
        remote.store(0, &[round, round]).unwrap();
        remote.store(0, &[round]).unwrap();
        let mut events = all(&queue);
        events.sort_by_key(|event| matches!(event, ClanEvent::Tripwire { tag: 1 }));
        let expected = [0, 1].map(|tag| ClanEvent::Tripwire { tag });
        assert_eq!(events, expected, "round {round}");
        remote.store(0, &[round]).unwrap();
        assert_eq!(all(&queue), [], "round {round}");
        pair.a.clear_tripwire(wire).unwrap();
    }
}

#[test]
fn handlers_of_the_program_never_run_in_the_service() {
    let pair = Pair::new("signals");
    // Its thread runs, and has its name.
    let queue = pair.a.event_queue().unwrap();
    pair.a.set_message_queue(queue.number()).unwrap();
    pair.b.send_message(own(&pair.a), &[0; 48]).unwrap();
    event(&pair.a, &queue);
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let status = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("status")).ok()
    };
    let services: Vec<String> =
        tasks.filter_map(status).filter(|status| status.starts_with("Name:\tshm a\n")).collect();
    assert!(!services.is_empty());
    for status in services {
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap();
        let blocked = u64::from_str_radix(blocked, 16).unwrap();
        // All but SIGKILL, SIGSTOP, and the C library's own.
        assert_eq!(blocked | 1 << 8 | 1 << 18 | 0b111 << 31, u64::MAX);
    }
}
