//! The region table on the Verilated block: random regions and look-ups around their edges from
//! both clients at once, against the model's.
#![cfg(feature = "blocks")]
#![allow(clippy::cast_possible_truncation, reason = "random numbers are cut to their field")]

use cosim::random::{Random, each_seed};
use cosim::verilated::blocks::tpt::Model;
use nic_model::tpt::{Access, Found, Owner, Place};
use nic_regs::tpt::{RIGHT_VALID, Region};

const REGIONS: u64 = 12;

#[derive(Clone, Copy, Debug)]
struct Lookup {
    index: u16,
    access: Access,
}

fn random_region(random: &mut Random) -> Region {
    let length = match random.below(6) {
        0 => u32::MAX,
        1 => 1,
        2 => u32::MAX - 63,
        3 => random.bits() as u32 | 1,
        _ => random.below(10_000) as u32 + 1,
    };
    let page = random.below(4096);
    let place = |random: &mut Random| {
        let highest = u64::MAX - u64::from(length) + 1;
        let base = match random.below(4) {
            0 => 0,
            1 => highest,
            2 => random.below(1 << 34),
            _ => random.bits(),
        };
        (base.min(highest) & !4095 | page).min(highest)
    };
    let bus_base = place(random);
    // Equal modulo 4,096, and neither wraps.
    let mut va_base = place(random) & !4095 | bus_base & 4095;
    if va_base.checked_add(u64::from(length) - 1).is_none() {
        va_base -= 4096;
    }
    Region {
        va_base,
        bus_base,
        length,
        tag: random.bits() as u16,
        generation: random.bits() as u16,
        domain: random.below(64) as u8,
        rights: RIGHT_VALID | (random.below(4) as u8) << 1,
    }
}

fn random_lookup(random: &mut Random, entries: &[Option<Region>]) -> Lookup {
    let index = random.below(REGIONS) as u16;
    let region = entries[usize::from(index)].unwrap_or_default();
    let va_mode = random.chance(0.6);
    let length = match random.below(5) {
        0 => u32::MAX,
        1 => region.length.max(1),
        2 => 1,
        _ => random.below(300) as u32 + 1,
    };
    let start = if va_mode { region.va_base } else { region.bus_base & 63 };
    let end = start.wrapping_add(u64::from(region.length));
    let address = match random.below(8) {
        0 => start,
        1 => start.wrapping_sub(1 + random.below(130)),
        2 => end.wrapping_sub(u64::from(length)),
        3 => end.wrapping_sub(u64::from(length)).wrapping_add(1),
        4 => end,
        5 => random.bits(),
        6 => start & !63,
        _ => start.wrapping_add(random.below(u64::from(region.length) + 1)),
    };
    let index = if random.chance(0.02) { index + 1024 } else { index };
    let Region { mut generation, mut tag, mut domain, .. } = region;
    if random.chance(0.1) {
        generation ^= 1 << random.below(16);
    }
    if random.chance(0.05) {
        tag ^= 1 << random.below(16);
    }
    if random.chance(0.05) {
        domain ^= 1 << random.below(6);
    }
    let access = Access {
        generation: random.chance(0.7).then_some(generation),
        place: if va_mode { Place::Address(address) } else { Place::Offset(address) },
        length,
        owner: Owner { tag, domain },
        rights: if random.chance(0.7) { 0 } else { random.below(8) as u8 },
    };
    Lookup { index, access }
}

/// Generation, whether it is checked, whether the place is a virtual address, the place.
fn ports(access: &Access) -> (u16, u8, u8, u64) {
    let (va_mode, address) = match access.place {
        Place::Address(address) => (1, address),
        Place::Offset(offset) => (0, offset),
    };
    let generation = access.generation;
    (generation.unwrap_or(0xdead), generation.is_some().into(), va_mode, address)
}

/// A client of the look-up: what it asks, and the entry's contents since it asked.
#[derive(Default)]
struct Client {
    pause: u64,
    asked_at: u64,
    call: Option<(Lookup, Vec<Option<Region>>)>,
}

/// Checks an answer against the contents that the entry had while the look-up ran.
fn check(client: &mut Client, ok: bool, answer: Found) -> bool {
    let (ask, contents) = client.call.take().expect("no answer without a question");
    let right = contents.iter().any(|entry| {
        let found = |access: Access| entry.and_then(|region| access.check(&region));
        if ok {
            return found(ask.access) == Some(answer);
        }
        // How much would be granted.
        let room = found(Access { length: 0, ..ask.access }).map_or(0, |found| found.room);
        found(ask.access).is_none() && answer.room == room
    });
    assert!(right, "{ask:?} in {contents:?}: {answer:x?}");
    ok
}

#[test]
#[allow(clippy::too_many_lines, reason = "one driver")]
fn random_regions_and_edges() {
    let (mut hits, mut misses, mut slowest) = (0, 0, 0);
    each_seed(0..20, |seed| {
        let mut random = Random::new(seed);
        let mut model = Model::new();
        model.reset();
        let mut entries: Vec<Option<Region>> = vec![None; 2048];
        let mut clients = [Client::default(), Client::default()];
        let mut set: Option<(bool, u16, Region)> = None;
        let mut set_pause = 0;
        let mut ready_at = None;
        let idle = random.below(12) + 1;
        for now in 0..30_000_u64 {
            for client in &mut clients {
                if client.pause > 0 {
                    client.pause -= 1;
                } else if client.call.is_none() {
                    let ask = random_lookup(&mut random, &entries);
                    client.call = Some((ask, vec![entries[usize::from(ask.index)]]));
                    client.asked_at = now;
                }
            }
            if set_pause > 0 {
                set_pause -= 1;
            } else if set.is_none() {
                let index = if random.chance(0.05) { 1024 } else { 0 } + random.below(REGIONS);
                set = Some((random.chance(0.4), index as u16, random_region(&mut random)));
            }
            let i = &mut model.inputs;
            if let Some((Lookup { index, access }, _)) = &clients[0].call {
                i.desc_send_index = *index;
                (
                    i.desc_send_generation,
                    i.desc_send_check_generation,
                    i.desc_send_va_mode,
                    i.desc_send_address,
                ) = ports(access);
                i.desc_send_length = access.length;
                (i.desc_send_tag, i.desc_send_domain) = (access.owner.tag, access.owner.domain);
                i.desc_send_rights = access.rights;
            }
            if let Some((Lookup { index, access }, _)) = &clients[1].call {
                i.desc_recv_index = *index;
                (
                    i.desc_recv_generation,
                    i.desc_recv_check_generation,
                    i.desc_recv_va_mode,
                    i.desc_recv_address,
                ) = ports(access);
                i.desc_recv_length = access.length;
                (i.desc_recv_tag, i.desc_recv_domain) = (access.owner.tag, access.owner.domain);
                i.desc_recv_rights = access.rights;
            }
            i.desc_send_valid = clients[0].call.is_some().into();
            i.desc_recv_valid = clients[1].call.is_some().into();
            i.set_valid = set.is_some().into();
            if let Some((clear, index, region)) = &set {
                i.set_clear = (*clear).into();
                i.set_index = *index;
                i.set_va_base = region.va_base;
                i.set_bus_base = region.bus_base;
                i.set_length = region.length;
                i.set_tag = region.tag;
                i.set_generation = region.generation;
                i.set_domain = region.domain;
                i.set_rights = region.rights;
            }
            model.cycle();
            let o = &model.outputs;
            if o.ready != 0 {
                ready_at.get_or_insert(now);
            } else {
                assert_eq!((o.desc_send_done, o.desc_recv_done, o.set_done), (0, 0, 0));
            }
            let done = [
                (o.desc_send_done, o.desc_send_ok, o.desc_send_bus, o.desc_send_room),
                (o.desc_recv_done, o.desc_recv_ok, o.desc_recv_bus, o.desc_recv_room),
            ];
            let offsets = [o.desc_send_offset_64, o.desc_recv_offset_64];
            for (at, (done, ok, bus, room)) in done.into_iter().enumerate() {
                if done != 0 {
                    let client = &mut clients[at];
                    if client.asked_at > ready_at.unwrap() {
                        slowest = slowest.max(now - client.asked_at + 1);
                    }
                    let answer = Found { bus, room, offset_64: offsets[at] };
                    *(if check(client, ok != 0, answer) { &mut hits } else { &mut misses }) += 1;
                    client.pause = 1 + random.below(idle);
                }
            }
            if o.set_done != 0 {
                let (clear, index, region) = set.take().expect("a set is running");
                let entry = &mut entries[usize::from(index)];
                assert_eq!(o.set_ok != 0, entry.is_some() == clear && index < 1024);
                if o.set_ok != 0 {
                    *entry = (!clear).then_some(region);
                    for (ask, contents) in clients.iter_mut().filter_map(|c| c.call.as_mut()) {
                        if ask.index == index {
                            contents.push(*entry);
                        }
                    }
                }
                set_pause = 1 + random.below(200);
            }
        }
        assert!(ready_at.is_some_and(|at| at < 1_100));
    });
    assert!(hits > 10_000 && misses > 10_000, "{hits} hits, {misses} misses");
    assert!(slowest <= 8, "a look-up took {slowest} cycles");
}
