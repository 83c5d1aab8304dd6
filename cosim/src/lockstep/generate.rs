//! Random programs: what two nodes set up, post and poke, as a function of a seed.
//!
//! A program must end the same on any device that obeys the contract, whatever its timing. So the
//! receives of a phase are posted before its sends, a connection carries messages one way in a
//! phase, and on a reliable VI nothing follows a message that the receiver will refuse (how many
//! later sends complete before the refusal arrives is timing).

use super::broken::Broken;
use super::descriptor::{small, spec};
use super::fenced::Fenced;
use super::forge::Forged;
use super::message::{self, Kind};
use super::plan::{Change, Pair, Phase, Plan, Poke, SLOTS, Traffic, Unreachable};
use super::refused;
use crate::random::Random;
use crate::testbench::{MESSAGE_DOMAINS, Names};
use nic_regs::csr;
use nic_regs::limits::{
    CREDITS_MAX, EVENT_QUEUE_COUNT, FRAME_CREDITS, LINK_PAYLOAD_BYTES, MAX_TRANSFER_BYTES,
    PEER_COUNT,
};
use nic_regs::vi::{Reliability, rdma};

/// Cycles in which a queue of a few messages mostly empties.
const ALONE: u64 = 1_500;

/// The program of a seed. `lossy`: only reliable VIs, so that frames may be lost.
#[must_use]
pub(super) fn plan(seed: u64, lossy: bool) -> Plan {
    let mut random = Random::new(seed);
    let count = 1 + random.below(5);
    let unreliable = !lossy && random.chance(0.3);
    let mut pairs: Vec<Pair> = Vec::new();
    for i in 0..count {
        let mut number = || u16::try_from(random.below(1024 / count) * count + i).expect("a VI");
        let vi = [number(), number()];
        let level = if unreliable { 0 } else { 1 + random.below(2) };
        pairs.push(Pair {
            vi,
            domain: [small(&mut random, 64), small(&mut random, 64)],
            tag: [tag(&mut random, i), tag(&mut random, i)],
            reliability: [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception]
                [usize::try_from(level).expect("below 3")],
            max_transfer: max_transfer(&mut random),
            allows: [allowed(&mut random), allowed(&mut random)],
            reported: [allowed(&mut random), allowed(&mut random)],
            recv_events: [(); 2].map(|()| if random.chance(0.6) { 1 } else { 2 }),
        });
    }
    let count = 2 + random.below(4);
    let loses = unreliable && random.chance(0.75);
    let with_fences = !unreliable && random.chance(0.6);
    let mut keeps_events = false;
    let phases = (0..count)
        .map(|_| {
            let kept_events = std::mem::replace(&mut keeps_events, random.chance(0.4));
            let with = With { lossy, loses, keeps_events, kept_events };
            let mut phase = phase(&mut random, &pairs, with);
            let is_taken = |vi| pairs.iter().any(|pair| pair.vi.contains(&vi));
            if with_fences && random.chance(0.7) {
                phase.fenced = Some(Fenced::random(&mut random, is_taken));
            }
            if phase.resets.is_some() && random.chance(0.8) {
                phase.cut = Some(Fenced::random(&mut random, is_taken));
            }
            phase
        })
        .collect();
    let unreliable_loss = if loses { 0.35 } else { 0.0 };
    let event_log2 = 2 + u32::from(small(&mut random, 10).min(small(&mut random, 10)));
    let names = names(&mut random);
    let overflows = !lossy && random.chance(0.02);
    let mut plan = Plan { seed, names, pairs, phases, unreliable_loss, overflows, event_log2 };
    for phase in 0..plan.phases.len() {
        plan.phases[phase].refused = refused::commands(&plan, phase);
    }
    plan
}

/// What a VI transfers at most: mostly all that it may.
fn max_transfer(random: &mut Random) -> u32 {
    let bytes = match random.below(10) {
        0 => 8 + random.below(64),
        1 => LINK_PAYLOAD_BYTES as u64 - 4 + random.below(1_000),
        2 => 64 + random.below(u64::from(MAX_TRANSFER_BYTES) - 63),
        _ => MAX_TRANSFER_BYTES.into(),
    };
    u32::try_from(bytes).expect("at most the most")
}

/// What a phase is generated with.
#[derive(Clone, Copy, Debug)]
struct With {
    /// The link loses frames; Unreliable VIs lose messages.
    lossy: bool,
    loses: bool,
    /// Events of completions wait behind it, or did behind the one before. A VI that is disconnected has them read,
    /// so none may stop before that, nor wait for its connection behind.
    keeps_events: bool,
    kept_events: bool,
}

fn phase(random: &mut Random, pairs: &[Pair], with: With) -> Phase {
    let lossy = with.lossy;
    // Pairs that rest, so that their regions may change.
    let rests: Vec<bool> = pairs.iter().map(|_| random.chance(0.15)).collect();
    let traffic = pairs.iter().zip(&rests).map(|(pair, &rests)| match rests {
        true => Traffic::default(),
        false => traffic(random, pair, with),
    });
    let traffic: Vec<Traffic> = traffic.collect();
    // One that is refused may be lost.
    let domain = |random: &mut Random| match lossy {
        true => MESSAGE_DOMAINS[usize::from(random.chance(0.5))],
        false => small(random, 4),
    };
    let messages =
        (0..random.below(3)).map(|_| (usize::from(random.chance(0.5)), domain(random))).collect();
    let mut changes = Vec::new();
    for (pair, node) in (0..2 * pairs.len()).map(|n| (n / 2, n % 2)) {
        if rests[pair] && random.chance(0.7) {
            changes.push(Change { pair, node, after: usize::from(small(random, SLOTS as u64)) });
        }
    }
    let closes = !lossy && random.chance(0.2);
    let broken = usize::try_from(random.below(pairs.len() as u64)).expect("a pair");
    let may_break = |of: &Traffic| of.receives().count() < SLOTS && !rests[broken];
    let broken = (closes && may_break(&traffic[broken])).then(|| Broken::random(random, broken));
    let levels: Vec<Reliability> = pairs.iter().map(|pair| pair.reliability).collect();
    let forged = (0..random.below(5)).map(|_| Forged::random(random, &levels)).collect();
    Phase {
        traffic,
        pokes: pokes(random, pairs),
        forged,
        refused: Vec::new(),
        messages,
        fenced: None,
        changes,
        // A RST that is lost would make it another reason at the other end.
        closes: closes.then(|| usize::from(random.chance(0.5))),
        broken,
        keeps_events: with.keeps_events,
        resets: (!lossy && random.chance(0.15)).then(|| usize::from(random.chance(0.5))),
        cut: None,
        armed: [[(); 4]; 2].map(|node| node.map(|()| random.chance(0.5))),
        masked: [[(); 4]; 2].map(|node| node.map(|()| random.chance(0.2))),
        moderation: [0, 100, 1_000][usize::from(small(random, 3))],
    }
}

/// Numbers of any value. Credits: exactly those of one frame, all that there are, or others.
fn names(random: &mut Random) -> Names {
    let node = small(random, PEER_COUNT as u64);
    let nodes = [node, node ^ 1 << random.below(6)];
    let mut queues = [[0; 4]; 2];
    for of in &mut queues {
        for n in 0..of.len() {
            // Another one than those before.
            while {
                of[n] = u16::from(small(random, EVENT_QUEUE_COUNT as u64));
                of[..n].contains(&of[n])
            } {}
        }
    }
    let mut credits = || {
        u32::try_from(match random.below(3) {
            0 => FRAME_CREDITS as u64,
            1 => CREDITS_MAX as u64,
            _ => random.below((CREDITS_MAX - FRAME_CREDITS) as u64) + FRAME_CREDITS as u64,
        })
        .expect("at most 64")
    };
    let credits = [credits(), credits()];
    let mut epoch = || u32::try_from(random.bits() >> 32).expect("32 bits");
    let epochs = [epoch(), epoch()];
    // Short writes: many wait for the host, each with its header.
    let mut pcie = || {
        let mut size = || u32::from(small(random, 3));
        csr::PCIE(0).with(csr::PCIE::MAX_PAYLOAD, size()).with(csr::PCIE::MAX_READ, size()).0
    };
    let pcie = [pcie(), pcie()];
    Names { nodes, epochs, queues, credits, pcie }
}

fn allowed(random: &mut Random) -> u32 {
    let mut bit = |bit| if random.chance(0.9) { bit } else { 0 };
    bit(rdma::WRITE) | bit(rdma::READ)
}

/// Tags differ between pairs, so that another pair's region is of another tag.
fn tag(random: &mut Random, pair: u64) -> u16 {
    u16::try_from(random.below(1 << 13) * 8 + pair).expect("below 2^16")
}

fn pokes(random: &mut Random, pairs: &[Pair]) -> Vec<Poke> {
    let mut out = Vec::new();
    for _ in 0..random.below(4) {
        let node = usize::from(random.chance(0.5));
        let length = 1 + usize::try_from(random.below(16)).expect("small");
        // Of no BAR; outside every register that has an effect; or inside a doorbell page with a wrong size
        // or place.
        let bar = [0, 0, 0, 2, 2, 2, small(random, 6)][usize::from(small(random, 7))];
        let offset = if bar == 2 {
            let page = u64::from(pairs[0].domain[node]) * 4096;
            page + 0x10 + random.below(0x7d0)
        } else {
            0x200 + random.below(0x100)
        };
        out.push(Poke { node, bar, offset, length, fill: small(random, 256) });
    }
    out
}

fn traffic(random: &mut Random, pair: &Pair, with: With) -> Traffic {
    let sender = usize::from(random.chance(0.5));
    // One slot is for the spare receive.
    let count = random.below(SLOTS as u64);
    let (mut messages, mut is_good) = (Vec::new(), true);
    let only_good = with.keeps_events || random.chance(0.2);
    // What the peer does not allow stops a VI, too.
    let open = rdma::WRITE | rdma::READ;
    let to = 1 - sender;
    let refuses = with.keeps_events && pair.allows[to] & pair.reported[to] != open;
    for _ in 0..count {
        let kind = if only_good { Kind::Good } else { Kind::any(random) };
        is_good &= kind == Kind::Good;
        if kind == Kind::Remote || !refuses && random.chance(0.3) {
            let reads = random.chance(0.4);
            let bit = if reads { rdma::READ } else { rdma::WRITE };
            let allowed = pair.allows[to] & bit != 0;
            let kind = if allowed { kind } else { Kind::Remote };
            is_good &= allowed && pair.reported[to] & bit != 0;
            let reported = pair.reported[to] & bit != 0;
            messages.push(if reads {
                message::read(random, pair, kind, allowed)
            } else {
                message::write(random, pair, kind, reported)
            });
            let refused = if reads { kind.ends_reads(pair) } else { kind.ends_writes(pair) };
            if reported && refused {
                break;
            }
            continue;
        }
        let mut message = message::send(random, pair, kind);
        if with.loses && kind == Kind::Good && random.chance(0.8) {
            // Of two that are as long as each other, what is left may look like one.
            let length = LINK_PAYLOAD_BYTES as u64 + 100;
            message.send.segments = spec(random, length).segments;
            message.recv = Some(spec(random, length));
        }
        messages.push(message);
        if kind.is_refused(pair) || kind.leaves_no_receive() {
            break;
        }
    }
    // Posts in the midst of a read, of which the queue may have been at its end: mostly the read is alone in it.
    for i in 1..messages.len() {
        if messages[i - 1].is_read() && random.chance(0.6) {
            messages[i - 1].delay += if random.chance(0.7) { ALONE } else { 0 };
            messages[i].delay += random.below(600 + (messages[i - 1].send.total() / 4).min(4_000));
        }
    }
    let receives = messages.iter_mut().filter_map(|message| message.recv.as_mut());
    let last = receives.skip(1).last().and_then(|last| last.unreachable.as_mut());
    let is_followed = last.is_some() && random.chance(0.6);
    if let Some(last) = last.filter(|_| is_followed) {
        *last = Unreachable::of_next(random);
    }
    let spare = is_followed.then(|| spec(random, 100));
    // Where a VI may stop, it is timing whether a receive that comes late meets it before or behind.
    let is_late = is_good && !messages.is_empty() && random.chance(0.5);
    let ahead = is_late.then(|| usize::from(small(random, 4)));
    let may_wait = pair.reliability != Reliability::Unreliable && !messages.is_empty();
    let may_wait = may_wait && !with.kept_events && ahead.is_none();
    let while_idle = may_wait && random.chance(if is_good { 0.6 } else { 0.3 });
    if while_idle && is_good && messages.len() > 2 && random.chance(0.7) {
        // The device has to use Next, since there is one behind; neither consumes a receive.
        let behind = messages.len() - 2;
        for message in &mut messages[behind..] {
            message.recv = None;
        }
        messages[behind].send.unreachable = Some(Unreachable::of_next(random));
    }
    Traffic { sender, messages, spare, ahead, while_idle }
}
