//! Event queues of `shm:`: waiting for an event, and queues that are destroyed.

mod support;

use std::time::{Duration, Instant};

use port::clan::{AccessRights, ClanEvent, ClanPort, DmaRequest, wait_event};
use support::{Pair, on_write, own};

#[test]
fn a_destroyed_event_queue_takes_nothing_of_a_later_one_with_its_number() {
    let pair = Pair::new("successor");
    let memory = pair.a.allocate(4096).unwrap();
    let (cookie, mut remote) = pair.share(&memory, AccessRights::WRITE);
    let old = pair.a.event_queue().unwrap();
    let mut dma = pair.a.dma_queue(old.number()).unwrap();
    pair.a.destroy_event_queue(old.number()).unwrap();
    // Numbers are used again as late as possible.
    let new = loop {
        let new = pair.a.event_queue().unwrap();
        if new.number() == old.number() {
            break new;
        }
        pair.a.destroy_event_queue(new.number()).unwrap();
    };
    pair.a.set_tripwire(&on_write(cookie, 64, &new)).unwrap();
    remote.store(64, &[1]).unwrap();
    assert!(!old.has_event());
    assert_eq!(old.poll(), None);
    assert_eq!(new.poll(), Some(ClanEvent::Tripwire { tag: 64 }));
    let own_cookie = pair.a.open(cookie.region, own(&pair.a), AccessRights::WRITE).unwrap();
    let mut to_self = pair.a.attach(own(&pair.a), own_cookie).unwrap();
    let request = DmaRequest { offset: 0, source: memory.slice(0, 8).unwrap(), notify: Some(1) };
    let refused = dma.submit(&mut *to_self, request).unwrap_err();
    assert!(matches!(refused, port::Error::NoSuch { what: "event queue", .. }), "{refused}");
}

#[test]
fn a_wait_for_an_event_ends_with_it_or_with_its_time() {
    let pair = Pair::new("wait");
    let memory = pair.a.allocate(4096).unwrap();
    let (cookie, mut remote) = pair.share(&memory, AccessRights::WRITE);
    let queue = pair.a.event_queue().unwrap();
    pair.a.set_tripwire(&on_write(cookie, 8, &queue)).unwrap();
    let begin = Instant::now();
    assert_eq!(wait_event(&pair.a, &*queue, 20_000_000), None);
    assert!(begin.elapsed() >= Duration::from_millis(20));
    assert_eq!(wait_event(&pair.a, &*queue, 0), None);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            remote.store(8, &[1]).unwrap();
        });
        let event = wait_event(&pair.a, &*queue, u64::MAX);
        assert_eq!(event, Some(ClanEvent::Tripwire { tag: 8 }));
    });
}
