//! What is recorded of a phase, when all is at rest.

use super::fenced::FENCED_OFFSET;
use super::run::Run;
use crate::testbench::{FREE_OFFSET, Hung, header};
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::csr;
use nic_regs::desc::status;
use nic_regs::event::{Event, Kind};
use nic_regs::frame::{Type, flag};
use std::collections::{BTreeMap, BTreeSet};

/// Counters that do not depend on timing.
const STEADY: &[Counter] = &[
    Counter::DoorbellBad,
    Counter::DropLength,
    Counter::DropVersion,
    Counter::DropNode,
    Counter::DropTag,
    Counter::DropStaging,
    Counter::ResetsSent,
    Counter::MessagesSent,
    Counter::MessagesReceived,
    Counter::MessagesRefused,
    Counter::ViStops,
    Counter::RefusalsSent,
    Counter::UnreliableEmpty,
    Counter::UnreliableGap,
    Counter::SendsCompleted,
    Counter::RecvsCompleted,
    Counter::ReadTimeouts,
    Counter::UnexpectedCompletions,
    Counter::BadRegister,
    Counter::BadTlp,
    Counter::AdminCommands,
    Counter::AdminErrors,
    Counter::PeersLost,
    Counter::RdmaRefused,
];
/// Those that traffic behind a fence changes by no fixed number.
const FENCED: &[Counter] = &[
    Counter::ViStops,
    Counter::RefusalsSent,
    Counter::SendsCompleted,
    Counter::RecvsCompleted,
    Counter::AdminCommands,
    Counter::AdminErrors,
    Counter::RdmaRefused,
];

/// Those that frames change which are on their way to a node that is reset, or to a channel that is closed.
const CUT: &[Counter] =
    &[Counter::DropNode, Counter::DropTag, Counter::DropLength, Counter::ResetsSent];

/// Those that depend on what becomes of answers, and of the frames that open a channel.
pub(super) const LOSSY: &[Counter] =
    &[Counter::DropNode, Counter::DropCrc, Counter::FramesReceived];

/// Those of errors, of completions (two), and of messages.
const EVENT_QUEUES: [usize; 4] = [0, 1, 2, 3];
/// Those without completions.
const OTHER_QUEUES: [usize; 2] = [0, 3];

impl Run<'_> {
    pub(super) fn observe(&mut self, phase: usize) -> Result<(), Hung> {
        self.observe_posted();
        let (with_fences, with_cut) = (self.plan.ends_traffic(), self.plan.has_cut(phase));
        (0..2).try_for_each(|node| self.observe_writes(phase, node))?;
        self.unread = self.plan.keeps_events(phase);
        self.observe_events(phase, if self.unread { &OTHER_QUEUES } else { &EVENT_QUEUES })?;
        for node in 0..2 {
            self.observe_frames(phase, node);
            for &counter in STEADY {
                let is_timing = self.is_lossy && LOSSY.contains(&counter)
                    || with_fences && FENCED.contains(&counter)
                    || with_cut && CUT.contains(&counter);
                if is_timing {
                    continue;
                }
                let value = self.counter(node, counter)?;
                self.record(&format!("phase {phase} node {node} {counter:?}"), &value.to_string());
            }
            let status = self.bench.read32(node, csr::STATUS::OFFSET)?;
            self.record(&format!("phase {phase} node {node} STATUS"), &format!("{status:#x}"));
            self.observe_errors(phase, node)?;
            // The rings are compared as events; the rest byte by byte.
            let memory = &self.bench.host(node).memory[FREE_OFFSET..FENCED_OFFSET];
            let sum =
                memory.as_chunks::<8>().0.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, word| {
                    (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
                });
            let stray = format!("{:x?}", self.bench.host(node).stray_writes);
            self.record(&format!("phase {phase} node {node} memory"), &format!("{sum:016x}"));
            self.record(&format!("phase {phase} node {node} stray writes"), &stray);
        }
        Ok(())
    }

    /// What became of the descriptors that were posted since the last time.
    pub(super) fn observe_posted(&mut self) {
        for (what, node, offset) in std::mem::take(&mut self.posted) {
            let host = self.bench.host(node);
            let word = |at| host.word(offset + at);
            let value =
                format!("status {:#x} length {} immediate {:#x}", word(28), word(24), word(20));
            self.record(&what, &value);
        }
    }

    /// What each work queue had written, in order, and that nothing was reported too early.
    fn observe_writes(&mut self, phase: usize, node: usize) -> Result<(), Hung> {
        let consumed = self.bench.consumed(node);
        let place = (self.plan, phase, node);
        let wrong = |why: String| Hung(format!("phase {phase} node {node}: {why}"));
        if let Some(broken) = self.bench.device(node).violations().first() {
            return Err(wrong(broken.clone()));
        }
        let taken = self.order[node].take(place, self.bench.host_mut(node), consumed);
        taken.map_err(wrong)?.iter().for_each(|(what, value)| self.record(what, value));
        Ok(())
    }

    /// Reads the events that a phase before has left.
    pub(super) fn observe_kept_events(&mut self, phase: usize) -> Result<(), Hung> {
        if std::mem::take(&mut self.unread) {
            self.observe_events(phase, &EVENT_QUEUES)
        } else {
            Ok(())
        }
    }

    /// Reads all events of these queues of both nodes, also those that had no room yet: a ring that had room has no
    /// more.
    fn observe_events(&mut self, phase: usize, queues: &[usize]) -> Result<(), Hung> {
        let (fenced, cut) = (self.plan.fenced_vi(phase), self.plan.cut_vi(phase));
        let mut completions: [BTreeMap<(u16, u16), u32>; 2] = Default::default();
        let mut others = [Vec::new(), Vec::new()];
        let (mut rest, mut was_full) = (Some(0), [[true; 4]; 2]);
        // Behind the first time only what was deferred comes: by VI, the sends of each first (contract 10.1).
        let mut deferred: Option<[[(u16, u8); 4]; 2]> = None;
        while let Some(quiet) = rest.take() {
            self.bench.settle(quiet)?;
            for (node, &queue) in (0..2).flat_map(|node| queues.iter().map(move |it| (node, it))) {
                let events = self.bench.events(node, queue);
                if !was_full[node][queue] && !events.is_empty() {
                    let count = events.len();
                    return Err(Hung(format!(
                        "node {node}: {count} records of queue {queue} wait for room that there is"
                    )));
                }
                was_full[node][queue] = events.len() == self.bench.ring(queue);
                if events.is_empty() {
                    continue;
                }
                // A ring that may have been full is followed by a scan of all VIs.
                let quiet = if 2 * events.len() < self.bench.ring(queue) { 1_000 } else { 4_000 };
                rest = rest.max(Some(quiet));
                for (event, message) in events {
                    if queue == 1 || queue == 2 {
                        let new = (event.index, event.kind);
                        let last = deferred.as_mut().map(|last| &mut last[node][queue]);
                        if let Some(last) = last.map(|last| std::mem::replace(last, new))
                            && new < last
                        {
                            return Err(Hung(format!(
                                "node {node}, queue {queue}: what was deferred comes as {last:?}, then {new:?}"
                            )));
                        }
                        let kind = u16::from(event.kind) | u16::from(event.flags) << 8;
                        *completions[node].entry((kind, event.index)).or_default() += event.word1;
                    } else if event.kind != Kind::ViError as u8 || Some(event.index) != fenced {
                        let Event { kind, flags, index, word1, mut word2, .. } = event;
                        if kind == Kind::ViError as u8 && Some(index) == cut {
                            // How far its reads came is timing.
                            word2 &= !status::PARTIAL_ERROR;
                        }
                        others[node].push(format!(
                            "kind {kind} flags {flags} index {index} {word1:#x} {word2:#x} {message:x?}"
                        ));
                    }
                }
            }
            deferred.get_or_insert_default();
        }
        for (node, (completions, mut others)) in completions.into_iter().zip(others).enumerate() {
            others.sort();
            let place = format!("phase {phase} node {node}");
            self.record(&format!("{place} completions"), &format!("{completions:?}"));
            self.record(&format!("{place} events"), &others.join(", "));
        }
        Ok(())
    }

    /// Frames of each VI in order, first transmissions only, without what the channel fills in.
    fn observe_frames(&mut self, phase: usize, node: usize) {
        let mut by_vi: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
        let sent = self.bench.sent(node, self.frames_seen[node]);
        self.frames_seen[node] += sent.len();
        for frame in sent {
            let Some(head) = header(&frame) else { continue };
            if !matches!(
                Type::from_bits(head.kind),
                Some(
                    Type::Data
                        | Type::RdmaWrite
                        | Type::ReadRequest
                        | Type::ReadResponse
                        | Type::ViAck
                        | Type::ViRefuse
                        | Type::Fin
                )
            ) {
                continue;
            }
            let sequenced = head.flags & flag::SEQUENCED != 0;
            if sequenced && !self.sequences[node].insert((head.tag, head.sequence)) {
                continue;
            }
            if Some(head.src_vi) == self.plan.fenced_vi(phase) {
                continue;
            }
            let digest = by_vi.entry(head.src_vi).or_default();
            let sequence = if sequenced { 0 } else { head.sequence };
            digest.push(u64::from(head.kind) | u64::from(head.length) << 8);
            digest.push(
                u64::from(head.word) | u64::from(head.flags) << 32 | u64::from(sequence) << 40,
            );
            digest.push(frame[3..frame.len() - 1].iter().fold(7, |sum: u64, &beat| {
                (sum ^ beat).wrapping_mul(0x0100_0000_01b3).rotate_left(5)
            }));
        }
        for (vi, digest) in by_vi {
            let text = format!("{} frames {digest:x?}", digest.len() / 3);
            self.record(&format!("phase {phase} node {node} frames of VI {vi}"), &text);
        }
    }

    fn observe_errors(&mut self, phase: usize, node: usize) -> Result<(), Hung> {
        let (mut log, mut read_errors, mut entries) = (Vec::new(), BTreeSet::new(), 0);
        while self.bench.read32(node, csr::ERROR_COUNT::OFFSET)? & 0xffff != 0 {
            let lo = self.bench.read32(node, csr::ERROR_LO::OFFSET)?;
            let hi = self.bench.read32(node, csr::ERROR_HI::OFFSET)?;
            let code = lo & 0xff;
            if code != ErrorCode::ReadError as u32 {
                log.push(format!("code {code} index {:#x} {hi:#x}", lo >> 16));
            } else if read_errors.insert(hi) {
                // How many reads of absent memory there are, and with which tags, is the device's affair.
                log.push(format!("code {code} {hi:#x}"));
            }
            self.bench.write32(node, csr::ERROR_POP::OFFSET, 0);
            entries += 1;
            if entries > 64 {
                return Err(Hung(format!("the error log of node {node} does not empty")));
            }
        }
        log.sort();
        self.record(&format!("phase {phase} node {node} error log"), &log.join(", "));
        Ok(())
    }

    /// A counter of a node.
    pub(super) fn counter(&mut self, node: usize, counter: Counter) -> Result<u32, Hung> {
        self.bench.read32(node, csr::COUNTER_OFFSET + 4 * counter as u32)
    }
}
