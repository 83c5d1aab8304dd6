//! Programs in words: what a person reads when two devices differ.

use super::plan::Plan;

/// Lines of a report about one pair's messages at most.
const MOST_LINES: usize = 8;

/// What a program does, one thing a line.
pub(super) fn program(plan: &Plan) -> String {
    let mut lines = Vec::new();
    let busy = |pair: usize| plan.phases.iter().any(|of| !of.traffic[pair].messages.is_empty());
    lines.push(format!("{:?}", plan.names));
    for (n, pair) in plan.pairs.iter().enumerate().filter(|&(n, _)| busy(n)) {
        lines.push(format!("pair {n}: {pair:?}"));
    }
    for (at, of) in plan.phases.iter().enumerate() {
        lines.extend(of.pokes.iter().map(|poke| format!("phase {at}: {poke:?}")));
        lines.extend(of.refused.iter().map(|refused| format!("phase {at}: {refused:?}")));
        lines.extend(of.forged.iter().map(|forged| format!("phase {at}: {forged:?}")));
        lines.extend(of.messages.iter().map(|(node, domain)| {
            format!("phase {at}: node {node} sends a message to domain {domain}")
        }));
        lines.extend(of.fenced.iter().map(|fenced| format!("phase {at}: {fenced:?}")));
        lines.extend(of.changes.iter().map(|change| format!("phase {at}: {change:?}")));
        (0..plan.pairs.len()).for_each(|pair| lines.extend(traffic(plan, at, pair)));
        lines.extend(of.cut.iter().map(|cut| format!("phase {at}: {cut:?}, for a reset")));
        lines.extend(of.resets.map(|node| format!("phase {at}: node {node} is reset")));
        lines.extend(of.broken.iter().map(|broken| format!("phase {at}: {broken:?}")));
        lines.extend(of.closes.map(|node| format!("phase {at}: node {node} closes")));
    }
    lines.join("\n")
}

/// The messages of a pair in a phase, in order; each with its receive, if it has one.
fn traffic(plan: &Plan, phase: usize, pair: usize) -> impl Iterator<Item = String> {
    let traffic = &plan.phases[phase].traffic[pair];
    let place = format!("phase {phase}, pair {pair}, from node {}", traffic.sender);
    let messages = traffic.messages.iter().map({
        let place = place.clone();
        move |message| format!("{place}: {message:?}")
    });
    messages.chain(traffic.spare.iter().map(move |spare| format!("{place}, spare: {spare:?}")))
}

/// The phase and the pair that a record is about, as its name says.
pub(super) fn place_of(plan: &Plan, what: &str) -> (Option<usize>, Option<usize>) {
    let number = |name: &str| {
        what.split_whitespace().skip_while(|&word| word != name).nth(1)?.parse::<usize>().ok()
    };
    let phase = number("phase").filter(|&phase| phase < plan.phases.len());
    (phase, number("pair").filter(|&pair| pair < plan.pairs.len()))
}

/// The messages of a pair in a phase. Empty: there is no pair.
pub(super) fn messages_of(plan: &Plan, place: (Option<usize>, Option<usize>)) -> Vec<String> {
    let (Some(phase), Some(pair)) = place else { return Vec::new() };
    let mut lines: Vec<_> = traffic(plan, phase, pair).collect();
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}
