//! Short sends that travel with their doorbell. What arrives is the same with and without, so that
//! most of it is seen in counters.

use nic_regs::admin::Opcode;
use nic_regs::counter::Counter;
use nic_regs::csr;
use nic_regs::desc::DataSegment;
use nic_regs::desc::status::{DESC_FLUSHED_ERROR, LENGTH_ERROR, PROTECTION_ERROR, TRANSPORT_ERROR};
use nic_regs::doorbell::{PUSH_OFFSET, TOKEN_OFFSET, Token, push_line};
use nic_regs::tpt::Handle;
use nic_regs::vi::Reliability as Level;
use tests::bare::{Bare, FREE_BYTES, page};
use tests::vi::{BareVi, DOMAIN, HANDLE, REGION, region_body, vi_body};
use tests::{
    Buffer, DeviceKind, LEVELS, LONG, Pair, Setup, error_bits, on_every_kind, pattern, skipped,
};
use vipl::{MemAttributes, Vi, ViAttributes, ViState};

/// Pushes of node 0 that were taken with their data, and without.
fn pushes(pair: &Pair) -> (u32, u32) {
    let count = |counter| pair.a.driver.counter(counter).unwrap();
    (count(Counter::PushesInline), count(Counter::PushesPlain))
}

/// Whether the device has push doorbells; says so if not.
fn has_push(pair: &Pair, kind: DeviceKind) -> bool {
    let has = pair.a.driver.capabilities().push;
    if !has {
        skipped(kind, "push doorbells");
        assert_eq!(pushes(pair), (0, 0));
    }
    has
}

fn send(pair: &Pair, (a, b): (&Vi, &Vi), length: usize, immediate: Option<u32>) {
    let (from, to) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 64));
    let data = pattern(length, length + 1);
    from.set(&data);
    let segment = from.region.segment(1024, u32::try_from(length).unwrap());
    from.descriptor.prepare(&[segment], immediate).unwrap();
    b.post_recv(&to.descriptor).unwrap();
    a.post_send(&from.descriptor).unwrap();
    let got = b.recv_wait(LONG).unwrap();
    assert_eq!(got.status().has_immediate().then(|| got.immediate()), immediate);
    assert_eq!(to.data(), data);
    assert_eq!(a.send_wait(LONG).unwrap().length() as usize, length);
}

fn short_sends_travel_with_their_doorbell(kind: DeviceKind) {
    // Whole lines at once, and word by word.
    for line_words in [8, 1, 3] {
        let mut setup = Setup::new(kind);
        setup.simulation.line_words = line_words;
        let pair = Pair::with(&setup);
        let has = has_push(&pair, kind);
        for level in LEVELS {
            let (a, b) = pair.connected(level);
            let mut before = pushes(&pair);
            for (length, immediate) in
                [0, 1, 8, 9, 40, 41, 64_u8].map(|n| (usize::from(n), Some(u32::from(n))))
            {
                for immediate in [None, immediate] {
                    send(&pair, (&a, &b), length, immediate);
                    pair.settle();
                    let inline = u32::from(has && length <= 40);
                    let after = (before.0 + inline, before.1);
                    assert_eq!(pushes(&pair), after, "{length} {level:?}");
                    before = after;
                }
            }
        }
        pair.assert_no_stray_access();
    }
}

fn sends_behind_others_arrive_in_order(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let has = has_push(&pair, kind);
    for level in LEVELS {
        let (a, b) = pair.connected(level);
        let count = 30;
        let (from, to) = (pair.a.region(count * 128), pair.b.region(count * 128));
        for i in 0..count {
            let recv = to.descriptor(128 * i, 1).unwrap();
            recv.prepare(&[to.segment(128 * i + 64, 40)], None).unwrap();
            b.post_recv(&recv).unwrap();
            from.memory().copy_from(128 * i + 64, &pattern(40, i));
        }
        for i in 0..count {
            let send = from.descriptor(128 * i, 1).unwrap();
            send.prepare(&[from.segment(128 * i + 64, 40)], None).unwrap();
            a.post_send(&send).unwrap();
            if i % 7 == 0 {
                pair.simulation.run(5 * i as u64);
            }
        }
        for i in 0..count {
            b.recv_wait(LONG).unwrap();
            a.send_wait(LONG).unwrap();
            assert_eq!(to.memory().to_vec(128 * i + 64, 40), pattern(40, i), "{level:?} {i}");
        }
    }
    pair.settle();
    assert!(!has || pushes(&pair).0 >= 3, "the first of each is inline");
}

fn what_the_device_must_judge_is_not_pushed(kind: DeviceKind) {
    for wrong in 0..4 {
        let pair = Pair::new(kind);
        let (a, b) = pair.connected(Level::Unreliable);
        let region = pair.a.region(2048);
        let good = region.segment(1024, 8);
        let other_tag = pair.a.nic.create_ptag().unwrap();
        let other = vipl::DmaMemory::new(64).unwrap();
        let other = pair.a.nic.register_mem(&other, MemAttributes::new(other_tag)).unwrap();
        let bad = match wrong {
            0 => other.segment(0, 8),
            1 => region.segment(2041, 8),
            2 => vipl::Segment { handle: good.handle.wrapping_add(1 << 16), ..good },
            _ => vipl::Segment { address: 8, ..good },
        };
        let descriptor = region.descriptor(0, 1).unwrap();
        descriptor.prepare(&[bad], None).unwrap();
        a.post_send(&descriptor).unwrap();
        assert_eq!(error_bits(&a.send_wait(LONG)), PROTECTION_ERROR, "{wrong}");
        assert_eq!(pushes(&pair), (0, 0));
        pair.assert_works(&a, &b);
    }
    // The length is judged, pushed or not.
    let pair = Pair::new(kind);
    let small =
        ViAttributes { max_transfer_size: 7, ..ViAttributes::new(Level::Unreliable, pair.a.tag) };
    let a = pair.a.nic.create_vi(small, None, None).unwrap();
    let small = ViAttributes { ptag: pair.b.tag, ..small };
    let b = pair.b.nic.create_vi(small, None, None).unwrap();
    pair.connect(&a, &b);
    let long = Buffer::new(&pair.a, 8);
    a.post_send(&long.descriptor).unwrap();
    assert_eq!(error_bits(&a.send_wait(LONG)), LENGTH_ERROR);
}

fn torn_pushes_are_posted_once(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    if !bare.features().push {
        return skipped(kind, "push doorbells");
    }
    bare.register();
    let mut vis = bare.connected(Level::Delivery, 40, 0);
    // Stopped after each word; broken by a write to the page; with words that come too late.
    for (end, disturb) in (1..=8).flat_map(|end| [(end, false), (end, true)]) {
        let data = pattern(40, end);
        let (from, to) = (vis[0].data_offset(), vis[1].data_offset());
        bare.host_mut(0).put(from, &data);
        bare.host_mut(1).memory[to..to + 40].fill(0);
        let segments = [vis[0].segment(0, 40), vis[1].segment(0, 40)];
        let recv = vis[1].post(&mut bare, vipl::Queue::Recv, &segments[1..]);
        bare.bench.run(300);
        let (sent, token) = vis[0].write(&mut bare, vipl::Queue::Send, &segments[..1]);
        let (words, _) = push_line(token, &data, None).unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let at = page(DOMAIN) + PUSH_OFFSET + 64 * (end as u64 % 4);
        bare.write_raw(0, 2, at, &bytes[..8 * end]);
        if disturb {
            bare.write_raw(0, 2, page(DOMAIN) + TOKEN_OFFSET, &[0; 4]);
            if end < 8 {
                bare.write_raw(0, 2, at + 8 * end as u64, &bytes[8 * end..]);
            }
        }
        bare.wait("a push", |bare| recv.is_done(bare) && sent.is_done(bare));
        assert_eq!((sent.status(&bare), recv.status(&bare)), (1, 0x1_0001), "{end} {disturb}");
        assert!(bare.host(1).memory[to..to + 40] == data);
        bare.settle();
        vis[0].forget_queues();
    }
    let tokens = bare.counter(0, Counter::DoorbellTokens);
    let whole = bare.counter(0, Counter::PushesInline);
    assert_eq!((tokens, whole + bare.counter(0, Counter::PushesPlain)), (16, 16));
    assert!(whole <= 2);
}

/// Pushes in the pages of two domains, whose words come in any order of the pages.
fn pushes_of_two_pages_mix(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    if !bare.features().push {
        return skipped(kind, "push doorbells");
    }
    bare.register();
    let other = Handle::new(REGION + 1, 5);
    for node in 0..2 {
        let mut body = region_body(0, FREE_BYTES, other);
        body[6] = body[6] & !0xff | u32::from(DOMAIN + 1);
        bare.ok(node, Opcode::RegionSet, other.index().into(), &body);
        let mut body = vi_body(Level::Delivery);
        body[0] = body[0] & !0xff | u32::from(DOMAIN + 1);
        bare.ok(node, Opcode::ViCreate, 41, &body);
    }
    let mut first = bare.connected(Level::Delivery, 40, 0);
    let mut second = [0, 1].map(|node| BareVi::new(node, 41, 1));
    bare.connect(&second, 1);
    // Bit i: whose word is the next one; the rest of the other one follows.
    for order in [0x5555_u32, 0xaaaa, 0x3333, 0x00fe, 0x7ffe, 0x0f0f, 0x00ff, 0x6996] {
        let mut posted = Vec::new();
        let mut words = Vec::new();
        for (vis, handle, domain) in
            [(&mut first, HANDLE, DOMAIN), (&mut second, other, DOMAIN + 1)]
        {
            let data = pattern(40, order as usize + usize::from(handle.index()));
            let (from, to) = (vis[0].data_offset(), vis[1].data_offset());
            bare.host_mut(0).put(from, &data);
            bare.host_mut(1).memory[to..to + 40].fill(0);
            let segment = |vi: &BareVi| DataSegment { handle: handle.0, ..vi.segment(0, 40) };
            let (segments, region) = ([segment(&vis[0]), segment(&vis[1])], handle.index());
            let page = page(domain);
            let (recv, token) = vis[1].write(&mut bare, vipl::Queue::Recv, &segments[1..]);
            bare.write_raw(
                1,
                2,
                page + TOKEN_OFFSET,
                &Token { region, ..token }.to_bits().to_le_bytes(),
            );
            let (send, token) = vis[0].write(&mut bare, vipl::Queue::Send, &segments[..1]);
            let (line, _) = push_line(Token { region, ..token }, &data, None).unwrap();
            words.push((page + PUSH_OFFSET, line.into_iter().enumerate()));
            posted.push((send, recv, to, data));
            for vi in vis.iter_mut() {
                vi.forget_queues();
            }
        }
        bare.bench.run(300);
        for turn in 0..16 {
            let whose = (order >> turn & 1) as usize;
            for whose in [whose, 1 - whose] {
                let (at, words) = &mut words[whose];
                if let Some((i, word)) = words.next() {
                    bare.write_raw(0, 2, *at + 8 * i as u64, &word.to_le_bytes());
                    break;
                }
            }
        }
        for (send, recv, to, data) in posted {
            bare.wait("a push", |bare| recv.is_done(bare) && send.is_done(bare));
            assert_eq!((send.status(&bare), recv.status(&bare)), (1, 0x1_0001), "{order:#x}");
            assert!(bare.host(1).memory[to..to + 40] == data);
        }
        bare.settle();
    }
    let posts = [Counter::PushesInline, Counter::PushesPlain].map(|it| bare.counter(0, it));
    assert_eq!((bare.counter(0, Counter::DoorbellTokens), posts[0] + posts[1]), (16, 16));
    assert!(posts[0] > 0, "one of two is whole");
}

/// The segment count of a token is a hint: a wrong one costs time at most.
fn a_push_with_a_wrong_hint_is_sent(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    if !bare.features().push {
        return skipped(kind, "push doorbells");
    }
    bare.register();
    let mut vis = bare.connected(Level::Delivery, 40, 0);
    for hint in [0, 2, 16, 17, 31] {
        let data = pattern(40, hint.into());
        let (from, to) = (vis[0].data_offset(), vis[1].data_offset());
        bare.host_mut(0).put(from, &data);
        let segments = [vis[0].segment(0, 40), vis[1].segment(0, 40)];
        let recv = vis[1].post(&mut bare, vipl::Queue::Recv, &segments[1..]);
        bare.bench.run(300);
        let (sent, token) = vis[0].write(&mut bare, vipl::Queue::Send, &segments[..1]);
        let token = Token { segments: hint, ..token };
        let (words, _) = push_line(token, &data, None).unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bare.write_raw(0, 2, page(DOMAIN) + PUSH_OFFSET, &bytes);
        bare.wait("a push", |bare| recv.is_done(bare) && sent.is_done(bare));
        assert_eq!((sent.status(&bare), recv.status(&bare)), (1, 0x1_0001), "{hint}");
        assert!(bare.host(1).memory[to..to + 40] == data);
        bare.settle();
        vis[0].forget_queues();
    }
    assert_eq!(bare.counter(0, Counter::PushesInline), 5);
}

/// What is pushed while the channel has no room is sent later, from its line or from memory; when the
/// cable is back all of it arrives, once and in order.
fn pushes_without_room_wait_for_it(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let has = has_push(&pair, kind);
    let (a, b) = pair.connected(Level::Delivery);
    let count = 80;
    let (from, to) = (pair.a.region(count * 128), pair.b.region(count * 128));
    for i in 0..count {
        let recv = to.descriptor(128 * i, 1).unwrap();
        recv.prepare(&[to.segment(128 * i + 64, 40)], None).unwrap();
        b.post_recv(&recv).unwrap();
        from.memory().copy_from(128 * i + 64, &pattern(40, i));
    }
    pair.settle();
    pair.simulation.set_connected(0, false);
    let (mut posted, mut done) = (0, 0);
    // The channel keeps what was not acknowledged, until it is full: the last one is not done.
    while posted == done {
        assert!(posted < count, "the channel takes {posted} messages without an acknowledgement");
        let send = from.descriptor(128 * posted, 1).unwrap();
        send.prepare(&[from.segment(128 * posted + 64, 40)], None).unwrap();
        a.post_send(&send).unwrap();
        posted += 1;
        pair.simulation.run(2_000);
        done += usize::from(a.send_done().is_ok());
    }
    pair.simulation.set_connected(0, true);
    for i in 0..posted {
        b.recv_wait(LONG).unwrap();
        assert_eq!(to.memory().to_vec(128 * i + 64, 40), pattern(40, i), "{i}");
    }
    a.send_wait(LONG).unwrap();
    pair.settle();
    assert!(!has || pushes(&pair) == (u32::try_from(posted).unwrap(), 0));
    assert_eq!((a.query().state, b.query().state), (ViState::Connected, ViState::Connected));
}

/// A peer that is lost while a push waits for room: the push is notified, as everything else.
fn a_peer_that_is_lost_ends_a_push(kind: DeviceKind) {
    let registers = vec![(csr::KEEPALIVE::OFFSET, 20_000)];
    let pair = Pair::with(&Setup { registers, ..Setup::new(kind) });
    for level in [Level::Delivery, Level::Reception] {
        let (a, b) = pair.connected(level);
        let sends: Vec<_> = (0..80).map(|_| Buffer::new(&pair.a, 40)).collect();
        pair.simulation.set_connected(0, false);
        let mut left = 0;
        for send in &sends {
            a.post_send(&send.descriptor).unwrap();
            left += 1;
            pair.simulation.run(1_500);
            left -= usize::from(a.send_done().is_ok());
        }
        assert!(left > 0);
        for i in 0..left {
            let wanted = if i == 0 && level == Level::Reception {
                TRANSPORT_ERROR
            } else {
                DESC_FLUSHED_ERROR
            };
            let bits = error_bits(&a.send_wait(LONG));
            assert!(bits == wanted || i == 0, "{level:?} {i} of {left}: {bits:#x}");
        }
        assert_eq!(a.query().state, ViState::Error);
        pair.simulation.set_connected(0, true);
        let recv = Buffer::new(&pair.b, 8);
        b.post_recv(&recv.descriptor).unwrap();
        assert_eq!(error_bits(&b.recv_wait(LONG)), DESC_FLUSHED_ERROR);
        a.disconnect().unwrap();
        b.disconnect().unwrap();
        pair.connect(&a, &b);
        pair.assert_works(&a, &b);
    }
}

on_every_kind! {
    short_sends_travel_with_their_doorbell,
    sends_behind_others_arrive_in_order,
    what_the_device_must_judge_is_not_pushed,
    torn_pushes_are_posted_once,
    pushes_of_two_pages_mix,
    a_push_with_a_wrong_hint_is_sent,
    pushes_without_room_wait_for_it,
    a_peer_that_is_lost_ends_a_push,
}

/// The same programs on a device without.
#[test]
fn without_push_doorbells() {
    short_sends_travel_with_their_doorbell(DeviceKind::Plain);
    sends_behind_others_arrive_in_order(DeviceKind::Plain);
    what_the_device_must_judge_is_not_pushed(DeviceKind::Plain);
}
