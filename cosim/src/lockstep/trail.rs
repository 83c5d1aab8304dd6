//! What two devices did in the phase in which they differ: frames and writes, from a little before the first one
//! that differs.
//!
//! A run is repeatable, so it is only run again for this when there is something to show.

use super::order::place;
use super::plan::Plan;
use crate::testbench::host::Write;
use crate::testbench::{EVENT_OFFSET, FREE_OFFSET, RING_BYTES, Seen, header};
use nic_regs::frame::Type;
use std::ops::Range;

/// Lines of each stream at most.
const MOST_LINES: usize = 10;
/// Of those, before the first one that differs.
const LINES_BEFORE: usize = 3;
/// Bytes that are shown of a write.
const HEAD: usize = 8;
/// Columns of the first device.
const WIDTH: usize = 68;

/// What a device did in a phase: cycle, node, and what.
pub(super) type Trail = Vec<(u64, usize, Seen)>;

/// A frame or a write, and its cycle; writes that follow each other in memory are one, as in `order`.
#[derive(Debug)]
struct Line {
    cycle: u64,
    text: String,
    /// What is written.
    written: Option<Written>,
}

/// Bytes that follow each other in memory: where, the first ones, and a sum of all
/// with their places.
#[derive(Clone, Debug)]
struct Written {
    range: Range<usize>,
    head: String,
    sum: u64,
}

impl Line {
    fn of_write(cycle: u64, written: Written) -> Self {
        let Written { range, head, sum } = &written;
        let text = format!("{:#x} + {} {head} sum {sum:x}", range.start, range.len());
        Self { cycle, text, written: Some(written) }
    }
}

/// Streams of which each is in order on any device: name, and those of both devices.
type Stream = (String, [Vec<Line>; 2]);

/// Both devices side by side, for each stream in which they differ, and when the second one first does. Of a pair,
/// only its frames and writes are shown.
pub(super) fn side_by_side(
    plan: &Plan,
    phase: usize,
    pair: Option<usize>,
    trails: [&Trail; 2],
) -> (Vec<String>, Option<u64>) {
    let (mut lines, mut first_cycle) = (Vec::new(), None);
    for (name, [first, second]) in streams(plan, phase, pair, trails) {
        let same = first.iter().zip(&second).take_while(|(a, b)| a.text == b.text).count();
        if same == first.len().max(second.len()) {
            continue;
        }
        // What it never does is missed where the next is, or behind the last.
        let cycle = second.get(same).or(second.last()).map(|line| line.cycle);
        first_cycle = [first_cycle, cycle].into_iter().flatten().min();
        let from = same.saturating_sub(LINES_BEFORE);
        lines.push(format!("{name}, from number {from} on (cycle, what)"));
        let count = first.len().max(second.len()).min(from + MOST_LINES);
        for at in from..count {
            let shown = |stream: &[Line]| {
                stream
                    .get(at)
                    .map_or_else(String::new, |line| format!("{:>8} {}", line.cycle, line.text))
            };
            let mark = if at == same { '>' } else { ' ' };
            lines.push(format!("{mark} {:<WIDTH$} | {}", shown(&first), shown(&second)));
        }
    }
    (lines, first_cycle)
}

fn streams(plan: &Plan, phase: usize, pair: Option<usize>, trails: [&Trail; 2]) -> Vec<Stream> {
    let mut streams: Vec<Stream> = Vec::new();
    for (device, trail) in trails.into_iter().enumerate() {
        for (cycle, node, seen) in trail {
            let line = match seen {
                Seen::Frame(frame) => frame_line(plan, phase, pair, *node, frame)
                    .map(|(stream, text)| (stream, Line { cycle: *cycle, text, written: None })),
                Seen::Write(write) => write_line((plan, phase, pair, *node), *cycle, write),
            };
            let Some((stream, line)) = line else { continue };
            let name = format!("node {node}: {stream}");
            let at = streams.iter().position(|(other, _)| *other == name);
            let at = at.unwrap_or_else(|| {
                streams.push((name, Default::default()));
                streams.len() - 1
            });
            join(&mut streams[at].1[device], line);
        }
    }
    streams
}

/// Appends a line, or makes the last one longer.
fn join(lines: &mut Vec<Line>, line: Line) {
    let before = lines.last().and_then(|last| Some((last.cycle, last.written.clone()?)));
    match (before, &line.written) {
        (Some((cycle, before)), Some(next)) if before.range.end == next.range.start => {
            lines.pop();
            let range = before.range.start..next.range.end;
            let sum = before.sum.wrapping_add(next.sum);
            let head = before.head.chars().chain(next.head.chars()).take(2 * HEAD).collect();
            lines.push(Line::of_write(cycle, Written { range, head, sum }));
        }
        _ => lines.push(line),
    }
}

/// Without what is timing: numbers of sequence, credits, and frames that carry these alone.
fn frame_line(
    plan: &Plan,
    phase: usize,
    pair: Option<usize>,
    node: usize,
    frame: &[u64],
) -> Option<(String, String)> {
    let head = header(frame)?;
    let kind = Type::from_bits(head.kind)?;
    let is_fenced = plan.fenced_vi(phase) == Some(head.src_vi);
    if kind == Type::Ack
        || is_fenced
        || pair.is_some_and(|pair| plan.pairs[pair].vi[node] != head.src_vi)
    {
        return None;
    }
    let text = format!(
        "{kind:?} {} bytes, flags {:#04x}, word {:#x}, to VI {}",
        head.length, head.flags, head.word, head.dst_vi
    );
    Some((format!("frames of VI {}", head.src_vi), text))
}

fn write_line(
    (plan, phase, wanted, node): (&Plan, usize, Option<usize>, usize),
    cycle: u64,
    write: &Write,
) -> Option<(String, Line)> {
    let (range, bytes) = match write {
        Write::Interrupt(vector, _) => {
            let line = Line { cycle, text: format!("vector {vector}"), written: None };
            return wanted.is_none().then(|| ("interrupts".to_owned(), line));
        }
        Write::Memory(range, bytes) => (range.clone(), bytes),
    };
    let start = range.start;
    let head = bytes.iter().take(HEAD).map(|byte| format!("{byte:02x}")).collect::<String>();
    // However the device cuts it.
    let sum = range.clone().zip(bytes).fold(0, |sum: u64, (at, &byte)| {
        sum.wrapping_add(u64::from(byte).wrapping_mul(2 * at as u64 + 1))
    });
    let line = Line::of_write(cycle, Written { range, head, sum });
    if start < FREE_OFFSET {
        let ring = start.checked_sub(EVENT_OFFSET)? / RING_BYTES;
        return wanted.is_none().then(|| (format!("records of queue {ring}"), line));
    }
    let (pair, queue, _) = place(plan, phase, node, start)?;
    let is_wanted = wanted.is_none_or(|wanted| wanted == pair);
    is_wanted.then(|| (format!("writes of pair {pair} {queue:?}"), line))
}
