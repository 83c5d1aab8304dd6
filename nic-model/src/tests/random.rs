//! Random programs against a few lines of reference: pushes split anywhere, RDMA over a bad wire.

use nic_regs::counter::Counter;
use nic_regs::desc::{ControlSegment, control, status};
use nic_regs::doorbell::{PAGE_BYTES, PUSH_LINE_BYTES, PUSH_OFFSET, Token, push_line};
use nic_regs::vi::{Reliability, rdma};

use super::rdma::{open_over, post_rdma, rdma_of};
use super::support::*;
use crate::device::Device;
use crate::link::Faults;

/// Numbers that look random, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % n
    }
}

/// One post, as a token or as a split push, whole or not, disturbed or not.
fn post(w: &mut Testbench, random: &mut Random, at: u64, data: &[u8]) {
    let offset_64 = ((at + BUS % 64) / 64) as u32;
    let token = Token { vi: VIS[A], region: REGION, offset_64, segments: 1, queue: Send };
    if random.below(4) == 0 {
        return w.hosts[A].doorbell(DOMAIN, 0, token.to_bits());
    }
    let (words, count) = push_line(token, data, None).unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let page = PAGE_BYTES * u64::from(DOMAIN);
    let line = page + PUSH_OFFSET + PUSH_LINE_BYTES * random.below(4);
    let end = if random.below(3) == 0 { 1 + random.below(8) as usize } else { count };
    let mut first = 0;
    while first < end {
        let next = first + 1 + random.below((end - first) as u64) as usize;
        w.hosts[A].model.bar_write(2, line + 8 * first as u64, &bytes[8 * first..8 * next]);
        first = next;
        match random.below(12) {
            0 => w.run(random.below(70)),
            1 => w.hosts[A].doorbell(DOMAIN + 1, PUSH_OFFSET, u64::MAX),
            2 => w.hosts[A].model.bar_write(2, page + 0x40, &[0; 8]),
            3 => w.hosts[A].model.bar_write(2, line + 4, &[0; 4]),
            4 => assert_eq!(w.bar_read(A, 2, page, 8), 0),
            // The last word; not if it is the next one, since that would be another message.
            5 if first < 7 => w.hosts[A].model.bar_write(2, line + 56, &[0xff; 8]),
            _ => {}
        }
    }
}

#[test]
fn pushes_split_anywhere_post_once_and_in_order() {
    const COUNT: u64 = 40;
    let mut total = [0; 2];
    for seed in 0..60 {
        let random = &mut Random(seed);
        let level = [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];
        let mut w = Testbench::pair(level[seed as usize % 3]);
        for i in 0..COUNT {
            w.hosts[B].post(VIS[B], Recv, 64 * i, &[(0x4000 + 64 * i, 40)]);
        }
        w.settle();
        for i in 0..COUNT {
            let data = pattern((seed * COUNT + i) as u32, random.below(41) as usize);
            let segment = [(0x2000 + 64 * i, data.len() as u32)];
            w.hosts[A].put(0x2000 + 64 * i, &data);
            w.hosts[A].write_descriptor(64 * i, ControlSegment::default(), &segment);
            w.hosts[A].link(VIS[A], Send, 64 * i);
            post(&mut w, random, 64 * i, &data);
            if random.below(2) == 0 {
                w.run(random.below(150));
            }
        }
        w.settle();
        for i in 0..COUNT {
            assert_eq!(w.hosts[A].status(64 * i), status::DONE, "seed {seed}, {i}");
            let length = w.hosts[A].length(64 * i);
            assert_eq!(w.hosts[B].length(64 * i), length, "seed {seed}, {i}");
            let [from, to] = [(A, 0x2000), (B, 0x4000)]
                .map(|(side, at)| w.hosts[side].data(at + 64 * i, length as usize).to_vec());
            assert_eq!(from, to, "seed {seed}, {i}");
        }
        assert_eq!(u64::from(w.hosts[A].count(Counter::DoorbellTokens)), COUNT, "seed {seed}");
        total[0] += w.hosts[A].count(Counter::PushesInline);
        total[1] += w.hosts[A].count(Counter::PushesPlain);
    }
    assert!(total.iter().all(|&n| n > 300), "both kinds: {total:?}");
}

/// Each side has an area in the other's memory; what its operations do to it is known.
const AREA: usize = 0x8000;
const REMOTE: [u64; 2] = [0x8_0000, 0x9_0000];
const LOCAL: u64 = 0x2_0000;

#[test]
fn rdma_over_a_bad_wire_is_as_memory() {
    for seed in 0..12 {
        let random = &mut Random(seed);
        let level = [Reliability::Delivery, Reliability::Reception][seed as usize % 2];
        let faults =
            Faults { seed, loss: 0.02, corrupt: 0.02, duplicate: 0.02, ..Faults::default() };
        let mut w = open_over(level, [rdma::MASK; 2], &faults);
        let mut areas = [vec![0_u8; AREA], vec![0_u8; AREA]];
        for round in 0..4_u64 {
            // Up to five operations each, all posted at once.
            let mut checks = Vec::new();
            for side in [A, B] {
                for slot in 0..1 + random.below(5) {
                    let start = random.below(AREA as u64 / 2);
                    let n = random.below(AREA as u64 / 2) as usize;
                    let (local, at) = (LOCAL + 0x5000 * slot, 0x400 * slot + 0x4000 * (round % 2));
                    let segments =
                        [(local, n as u32 / 2), (local + 0x2800, n as u32 - n as u32 / 2)];
                    let read = random.below(2) == 0;
                    let op = if read { control::OP_RDMA_READ } else { control::OP_RDMA_WRITE };
                    let range = start as usize..start as usize + n;
                    if read {
                        checks.push((side, segments, areas[side][range].to_vec()));
                    } else {
                        let data = pattern((seed * 100 + round * 10 + slot) as u32, n);
                        w.hosts[side].put(segments[0].0, &data[..n / 2]);
                        w.hosts[side].put(segments[1].0, &data[n / 2..]);
                        areas[side][range].copy_from_slice(&data);
                    }
                    let mut d = rdma_of(op, &segments);
                    d.address = VA + REMOTE[side] + start;
                    post_rdma(&mut w, side, at, d);
                }
            }
            // The doorbells first.
            w.run(20);
            w.until("both queues are empty", |w| {
                [A, B].iter().all(|&s| {
                    let vi = w.hosts[s].model.vi_snapshot(VIS[s]);
                    vi.posted[0] == 0 && !vi.sending
                })
            });
            // What a Delivery VI has sent may still be on its way, more than once.
            w.run(60_000);
            for (side, segments, expected) in checks {
                let got: Vec<u8> = segments
                    .iter()
                    .flat_map(|s| w.hosts[side].data(s.0, s.1 as usize).to_vec())
                    .collect();
                let bad = got.iter().zip(&expected).position(|(a, b)| a != b);
                assert!(
                    got == expected,
                    "{bad:?} of {} {:x?} {:?} seed {seed}, round {round}, side {side}",
                    got.len(),
                    &segments,
                    w.hosts[side].events(ERRORS)
                );
            }
            for side in [A, B] {
                let there = w.hosts[1 - side].data(REMOTE[side], AREA);
                assert!(there == areas[side], "seed {seed}, round {round}, side {side}");
            }
        }
    }
}
