//! The cache of registrations.

mod common;

use std::collections::BTreeMap;

use common::Node;
use vipl::cache::{CacheLimits, Lease, RegistrationCache};
use vipl::{DmaMemory, MemAttributes, VipReturn};

const KIB: usize = 1024;

fn cache(node: &Node, entries: usize, bytes: usize) -> RegistrationCache {
    RegistrationCache::new(&node.nic, CacheLimits { entries, bytes: bytes as u64 })
}

fn is_registered(node: &Node, lease_region: &vipl::Region) -> bool {
    node.nic.query_mem(lease_region).is_ok()
}

#[test]
fn covered_ranges_with_the_same_attributes_are_hits() {
    let node = Node::new(0);
    let cache = cache(&node, 8, 64 * KIB);
    let plain = MemAttributes::new(node.tag);
    let memory = DmaMemory::new(16 * KIB).unwrap();
    let whole = cache.register(&memory, plain).unwrap();
    let inside = memory.slice(100, 200).unwrap();
    let part = cache.register(&inside, plain).unwrap();
    assert_eq!(part.region().handle(), whole.region().handle());
    let segment = part.segment();
    assert_eq!((segment.address, segment.length), (memory.address() + 100, 200));
    let last = memory.slice(16 * KIB - 1, 1).unwrap();
    let last = cache.register(&last, plain).unwrap();
    assert_eq!(last.region().handle(), whole.region().handle());
    // Other rights, another tag: other registrations.
    let rdma = MemAttributes { enable_rdma_write: true, ..plain };
    let open = cache.register(&inside, rdma).unwrap();
    let other = MemAttributes::new(node.nic.create_ptag().unwrap());
    let tagged = cache.register(&inside, other).unwrap();
    let handles = [&whole, &open, &tagged].map(|lease| lease.region().handle());
    assert!(handles[0] != handles[1] && handles[1] != handles[2] && handles[0] != handles[2]);
    assert_eq!(node.nic.query_mem(open.region()).unwrap(), rdma);
    // A range that sticks out of an entry is none of it, whatever lies before it.
    drop(cache.register(&memory.slice(0, 50).unwrap(), rdma).unwrap());
    let wider = cache.register(&memory.slice(100, 201).unwrap(), rdma).unwrap();
    assert_ne!(wider.region().handle(), open.region().handle());
    let counters = cache.counters();
    assert_eq!((counters.hits, counters.misses, counters.evictions), (2, 5, 0));
    assert_eq!((counters.entries, counters.bytes), (5, (16 * KIB + 200 + 200 + 50 + 201) as u64));
}

#[test]
fn the_longest_unused_goes_first_and_what_is_used_stays() {
    let node = Node::new(0);
    let cache = cache(&node, 3, 64 * KIB);
    let plain = MemAttributes::new(node.tag);
    let memories: Vec<_> = (0..5).map(|_| DmaMemory::new(KIB).unwrap()).collect();
    let lease = |i: usize| cache.register(&memories[i], plain).unwrap();
    let (a, b, c) = (lease(0), lease(1), lease(2));
    let regions = [&a, &b, &c].map(|lease| lease.region().clone());
    // All are in use: the fourth is not kept, and goes with its lease.
    let d = lease(3);
    let fourth = d.region().clone();
    assert!(is_registered(&node, &fourth));
    drop(d);
    assert!(!is_registered(&node, &fourth));
    assert_eq!((cache.counters().not_kept, cache.counters().entries), (1, 3));
    drop((c, b));
    // c was given back first.
    let e = lease(4);
    let registered = || regions.each_ref().map(|region| is_registered(&node, region));
    assert_eq!(registered(), [true, true, false]);
    // Used once more, b is the youngest; but a is in use, so b goes all the same.
    drop(lease(1));
    let c = lease(2);
    assert_eq!(registered(), [true, false, false]);
    assert_eq!(cache.counters().evictions, 2);
    drop((a, c, e));
    // More than all: nothing goes for it.
    let large = DmaMemory::new(65 * KIB).unwrap();
    drop(cache.register(&large, plain).unwrap());
    assert_eq!((cache.counters().entries, cache.counters().evictions), (3, 2));
    // Bytes bound it too.
    let wide = DmaMemory::new(63 * KIB).unwrap();
    let wide = cache.register(&wide, plain).unwrap();
    assert_eq!((cache.counters().entries, cache.counters().bytes), (2, 64 * KIB as u64));
    // With the cache, everything goes; leases outlive it.
    let region = wide.region().clone();
    drop(cache);
    assert!(is_registered(&node, &region));
    drop(wide);
    assert!(!is_registered(&node, &region));
    node.nic.destroy_ptag(node.tag).unwrap();
}

#[test]
fn memory_that_goes_is_forgotten() {
    let node = Node::new(0);
    let cache = cache(&node, 8, 64 * KIB);
    let plain = MemAttributes::new(node.tag);
    let memory = DmaMemory::new(16 * KIB).unwrap();
    let part = |offset: usize| memory.slice(offset, KIB).unwrap();
    let lease = |offset: usize| cache.register(&part(offset), plain).unwrap();
    let (used, idle, beside) = (lease(0), lease(2 * KIB), lease(4 * KIB));
    let regions = [&used, &idle, &beside].map(|lease| lease.region().clone());
    drop((idle, beside));
    let at = |offset: usize| memory.address() + offset as u64;
    assert_eq!(cache.invalidate(at(KIB)..at(2 * KIB)), 0, "between them");
    assert_eq!(cache.invalidate(at(10)..at(10)), 0, "empty");
    assert_eq!(cache.counters().entries, 3);
    // Its last byte, its first byte: the range ends before the third.
    assert_eq!(cache.invalidate(at(KIB - 1)..at(2 * KIB + 1)), 1);
    assert_eq!(cache.invalidate(at(0)..at(4 * KIB)), 1, "still in use");
    let registered = || regions.each_ref().map(|region| is_registered(&node, region));
    assert_eq!(registered(), [true, false, true]);
    // It is not given to anybody any more.
    let again = lease(0);
    assert_ne!(again.region().handle(), used.region().handle());
    drop(used);
    assert_eq!(registered(), [false, false, true]);
    assert!(is_registered(&node, again.region()));
    let counters = cache.counters();
    assert_eq!((counters.invalidations, counters.entries, counters.bytes), (2, 2, 2 * KIB as u64));
}

#[test]
fn a_nic_without_regions_left_gets_some_back() {
    let node = Node::new(0);
    let cache = cache(&node, 10_000, 1 << 30);
    let plain = MemAttributes::new(node.tag);
    let limit = node.nic.query().max_register_regions as usize;
    let memory = DmaMemory::new(limit + 10).unwrap();
    let lease = |i: usize| cache.register(&memory.slice(i, 1).unwrap(), plain);
    (0..limit).for_each(|i| drop(lease(i).unwrap()));
    let leases: Vec<_> = (limit - 3..limit + 3).map(|i| lease(i).unwrap()).collect();
    assert_eq!((cache.counters().evictions, cache.counters().entries), (3, limit));
    let held: Vec<_> = (0..limit - 6).map(|i| lease(i + 3).unwrap()).collect();
    // Now all are in use.
    let refused = lease(limit + 5).unwrap_err();
    assert_eq!(refused.code, VipReturn::ErrorResource);
    assert_eq!(cache.counters().entries, limit);
    drop((leases, held));
    lease(limit + 5).unwrap();
    // A closed NIC refuses, and nothing panics.
    node.nic.clone().close();
    assert_eq!(lease(limit + 6).unwrap_err().code, VipReturn::InvalidParameter);
    assert_eq!(cache.invalidate(0..u64::MAX), 0);
    assert_eq!((cache.counters().entries, cache.counters().bytes), (0, 0));
}

/// Any order of look-ups, returns and invalidations keeps the bounds, and what is in use stays
/// registered.
#[test]
fn random_use_keeps_the_bounds() {
    let node = Node::new(0);
    let (entries, bytes) = (6, 12 * KIB);
    let cache = cache(&node, entries, bytes);
    let plain = MemAttributes::new(node.tag);
    let memory = DmaMemory::new(64 * KIB).unwrap();
    let mut held: BTreeMap<u64, Lease> = BTreeMap::new();
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    for step in 0..4000 {
        match next(8) {
            0 => {
                let start = memory.address() + next(64 * KIB) as u64;
                cache.invalidate(start..start + next(4 * KIB) as u64);
            }
            choice if choice < 4 || held.len() > 6 => {
                let oldest = held.keys().next().copied();
                oldest.and_then(|key| held.remove(&key));
            }
            _ => {
                let length = 1 + next(4 * KIB);
                let range = memory.slice(next(16) * 4 * KIB % (60 * KIB), length).unwrap();
                let lease = cache.register(&range, plain).unwrap();
                let region = lease.region().memory();
                assert!(region.address() <= range.address());
                assert!(region.address() + region.len() as u64 >= range.address() + length as u64);
                held.insert(step, lease);
            }
        }
        assert!(held.values().all(|lease| is_registered(&node, lease.region())));
        let counters = cache.counters();
        assert!(counters.entries <= entries && counters.bytes <= bytes as u64, "{counters:?}");
    }
    held.clear();
    let counters = cache.counters();
    assert!(counters.hits > 100 && counters.evictions > 300, "{counters:?}");
    assert!(counters.not_kept > 30 && counters.invalidations > 30, "{counters:?}");
    cache.invalidate(0..u64::MAX);
    assert_eq!((cache.counters().entries, cache.counters().bytes), (0, 0));
    node.nic.destroy_ptag(node.tag).unwrap();
}
