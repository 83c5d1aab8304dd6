//! Posts the messages of a phase.

use super::fenced;
use super::plan::{Message, Phase, Spec, Traffic, Unreachable};
use super::push;
use super::regions::{PairRegion, area, segments, slot};
use super::run::Run;
use crate::testbench::{Hung, MEMORY_BYTES, va};
use nic_regs::doorbell::{Queue, TOKEN_OFFSET, Token};

/// Cycles from a receive that comes late to the send of its message, if no other one is between.
const LATE: u64 = 300;

impl Run<'_> {
    /// Posts the receives that are there before the sends.
    pub(super) fn post_receives(&mut self, phase: usize, n: usize, traffic: &Traffic) {
        let count = traffic.receives().count();
        (0..traffic.early(0).unwrap_or(count))
            .for_each(|i| self.post_receive(phase, n, traffic, i));
    }

    fn post_receive(&mut self, phase: usize, n: usize, traffic: &Traffic, i: usize) {
        if let Some(spec) = traffic.receives().nth(i) {
            self.post(phase, 1 - traffic.sender, n, Queue::Recv, i, spec);
        }
    }

    /// Posts the sends of pairs that are not connected, and connects these.
    pub(super) fn post_while_idle(&mut self, phase: usize, pairs: &[usize]) -> Result<(), Hung> {
        for &n in pairs {
            let Traffic { sender, messages, .. } = &self.plan.phases[phase].traffic[n];
            for (i, message) in messages.iter().enumerate() {
                self.post(phase, *sender, n, Queue::Send, i, &message.send);
            }
            // The doorbells come first.
            self.bench.run(LATE);
            self.connect_from(n, 1 - sender)?;
        }
        Ok(())
    }

    /// Sends of all pairs in turn, with the plan's pauses; receives that come late, changes of regions, and the fence.
    pub(super) fn post_sends(
        &mut self,
        phase: usize,
        mut fenced: Option<&mut fenced::Run<'_>>,
    ) -> Result<(), Hung> {
        let plan = self.plan;
        let Phase { traffic, changes, .. } = &plan.phases[phase];
        let most = traffic.iter().map(|traffic| traffic.messages.len()).max().unwrap_or(0);
        if let Some(fenced) = &fenced {
            fenced.post_sends(&mut self.bench);
        }
        for i in 0..=most {
            if let Some(fenced) = fenced.as_mut().filter(|fenced| fenced.is_due(i)) {
                fenced.fence(&mut self.bench)?;
            }
            for change in changes.iter().filter(|change| change.after.min(most) == i) {
                self.change(phase, *change)?;
            }
            for (n, traffic) in traffic.iter().enumerate() {
                let Some(message) = traffic.messages.get(i).filter(|_| !traffic.while_idle) else {
                    continue;
                };
                if let Some(late) = traffic.early(i).filter(|_| i > 0) {
                    let before = traffic.early(i - 1).unwrap_or(late);
                    (before..late).for_each(|late| self.post_receive(phase, n, traffic, late));
                    self.bench.run(LATE);
                }
                self.bench.run(message.delay);
                self.post(phase, traffic.sender, n, Queue::Send, i, &message.send);
            }
        }
        match fenced.filter(|fenced| fenced.is_due(usize::MAX)) {
            Some(fenced) => fenced.fence(&mut self.bench),
            None => Ok(()),
        }
    }

    pub(super) fn post(
        &mut self,
        phase: usize,
        node: usize,
        n: usize,
        queue: Queue,
        i: usize,
        spec: &Spec,
    ) {
        let plan = self.plan;
        let pair = &plan.pairs[n];
        let offset = slot(n, queue, i);
        let segments = segments(plan, phase, (n, node), spec);
        let count = u16::try_from(segments.len()).expect("at most 17");
        let host = self.bench.host_mut(node);
        host.put(offset, &spec.control_segment(count).to_bytes());
        for (s, segment) in segments.iter().enumerate() {
            host.put(offset + 32 + 16 * s, &segment.to_bytes());
        }
        let base = slot(n, Queue::Send, 0);
        let of = match spec.unreachable {
            Some(Unreachable::Tag) => PairRegion::DescriptorsOfTag,
            Some(Unreachable::Domain) => PairRegion::DescriptorsOfDomain,
            Some(Unreachable::Absent) => PairRegion::Absent,
            _ => PairRegion::Descriptors,
        };
        let mut handle = of.handle(plan, phase, (n, node));
        let mut token = Token {
            vi: pair.vi[node],
            region: handle.index(),
            offset_64: u32::try_from((offset - base) / 64).expect("small"),
            segments: u8::try_from(count).expect("at most 17"),
            queue,
        };
        let mut next = va(offset);
        match spec.unreachable {
            Some(Unreachable::Place(of_token, of_next)) => {
                token.offset_64 ^= 1 << of_token;
                next ^= 1 << of_next;
            }
            Some(Unreachable::Generation(bit)) => handle.0 ^= 1 << (16 + bit),
            Some(Unreachable::Index(bit)) => handle.0 ^= 1024 << bit,
            Some(Unreachable::Aligned(bit)) => next ^= 1 << bit,
            Some(Unreachable::Absent) => next = va(MEMORY_BYTES + offset - base),
            Some(Unreachable::Tag | Unreachable::Domain) | None => {}
        }
        if let Some(&tail) = self.tail.get(&(node, n, queue as u8)) {
            self.bench.host_mut(node).put(tail, &next.to_le_bytes());
            self.bench.host_mut(node).put(tail + 8, &handle.0.to_le_bytes());
        }
        self.tail.insert((node, n, queue as u8), offset);
        self.posted.push((
            format!("phase {phase} node {node} pair {n} {queue:?} {i}"),
            node,
            offset,
        ));
        let page = (node, pair.domain[node]);
        // What a push says must be in memory; a read that is under way may change that.
        let Traffic { messages, while_idle, .. } = &self.plan.phases[phase].traffic[n];
        let reads = messages[..i.min(messages.len())].iter().any(Message::is_read);
        let absent = spec.unreachable == Some(Unreachable::Absent);
        if queue == Queue::Send && !reads && !absent && !while_idle {
            let seed = plan.seed_of([phase, n, i]);
            push::post(&mut self.bench, page, token, (spec, area(n)), seed);
        } else {
            self.bench.doorbell(node, page.1, TOKEN_OFFSET, token.to_bits());
        }
    }
}
