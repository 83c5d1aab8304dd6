//! What a run found, as text.

use std::fmt::Write as _;
use std::time::Duration;

use super::mutant::{Fate, Mutant};

/// How many were found, by what, how long that took, and which were not.
pub(super) fn text(fates: &[(&Mutant, Fate)]) -> String {
    let mut text = String::new();
    let found = fates.iter().filter(|(_, fate)| fate.found().is_some()).count();
    let equivalent = fates
        .iter()
        .filter(|(mutant, fate)| fate.found().is_none() && mutant.reason.is_some())
        .count();
    let wanted = fates.len() - equivalent;
    let percent = (found * 100).checked_div(wanted).unwrap_or(100);
    let _ = writeln!(text, "\n{found} of {wanted} mutants found ({percent} %)");
    if equivalent != 0 {
        let _ = writeln!(text, "{equivalent} more are equivalent");
    }
    let mut suites: Vec<&str> = Vec::new();
    for run in fates.iter().flat_map(|(_, fate)| &fate.runs) {
        if !suites.contains(&run.suite) {
            suites.push(run.suite);
        }
    }
    for suite in suites {
        let runs =
            || fates.iter().flat_map(|(_, fate)| &fate.runs).filter(|run| run.suite == suite);
        let took =
            median(runs().filter(|run| run.answer.found().is_some()).map(|run| run.took).collect());
        let (found, all) =
            (runs().filter(|run| run.answer.found().is_some()).count(), runs().count());
        let _ =
            writeln!(text, "{found:>5} of {all:>3} by {suite}, median {:.1} s", took.as_secs_f64());
    }
    for (mutant, _) in fates.iter().filter(|(_, fate)| fate.found().is_none()) {
        match &mutant.reason {
            Some(reason) => {
                let _ = writeln!(text, "equivalent: {}: {reason}", mutant.shown());
            }
            None => {
                let _ = writeln!(text, "survives: {}", mutant.shown());
            }
        }
    }
    for (mutant, fate) in fates {
        if let (Some(run), true) = (fate.found(), mutant.reason.is_some()) {
            let by = format!("{} {}", run.suite, run.answer.found().unwrap_or_default());
            let _ = writeln!(text, "not equivalent, {by} finds it: {}", mutant.shown());
        }
    }
    text
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::mutant::Run;
    use super::*;

    #[test]
    fn what_was_found_is_counted() {
        let mutant = |reason: Option<&str>| Mutant {
            block: "tpt".into(),
            reason: reason.map(str::to_owned),
            ..Mutant::default()
        };
        let run = |suite, found: Option<&str>, seconds| Run {
            suite,
            answer: found.map(str::to_owned).into(),
            took: Duration::from_secs(seconds),
        };
        let (plain, same) = (mutant(None), mutant(Some("reset")));
        let fates = [
            (&plain, Fate { runs: vec![run("bench", Some("a"), 2)] }),
            (&plain, Fate { runs: vec![run("bench", None, 9), run("lockstep", None, 9)] }),
            (&same, Fate { runs: vec![run("bench", None, 9)] }),
            (&same, Fate { runs: vec![run("bench", Some("b"), 4)] }),
        ];
        let text = text(&fates);
        for line in [
            "2 of 3 mutants found (66 %)",
            "1 more are equivalent",
            "2 of   4 by bench, median 4.0 s",
            "0 of   1 by lockstep, median 0.0 s",
            "survives: ",
            "equivalent: ",
            "not equivalent, bench b finds it: ",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
