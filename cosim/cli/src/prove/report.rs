//! The tables of rules and mutations.

use std::fmt;

use super::fragment::Fragment;
use super::{Run, Step, Verdict};

/// Everything that was run, in the order of the table of proofs.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    runs: Vec<Run>,
}

impl Report {
    pub(super) fn new(runs: Vec<Run>) -> Self {
        Self { runs }
    }

    /// What did not end as it must.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.runs.iter().filter(|run| !run.is_good()).map(ToString::to_string).collect()
    }

    fn of(&self, wanted: fn(Step) -> bool) -> Vec<&Run> {
        self.runs.iter().filter(|run| wanted(run.step)).collect()
    }

    /// The mutations that broke this rule.
    fn caught_by(&self, proof: &str, rule: &str) -> String {
        let runs = self.runs.iter().filter(|run| run.proof.name == proof);
        let caught = runs.filter_map(|run| match (run.step, &run.verdict) {
            (Step::Mutation(mutation), Verdict::Broken { rules, .. }) => {
                rules.iter().any(|broken| broken == rule).then_some(mutation.name)
            }
            _ => None,
        });
        caught.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.proof.name)?;
        match self.step {
            Step::Proof => {}
            Step::Control => f.write_str(", control")?,
            Step::Mutation(mutation) => write!(f, ", mutation {}", mutation.name)?,
        }
        match (&self.verdict, self.step) {
            (Verdict::Proved { cycles }, _) => write!(f, ": proved, k = {cycles}")?,
            (Verdict::Broken { cycles, rules, .. }, Step::Mutation(_)) => {
                write!(f, ": caught by {} in cycle {cycles}", rules.join(", "))?;
            }
            (Verdict::Broken { cycles, rules, trace }, _) => {
                let rules = rules.join(", ");
                write!(f, ": BROKEN: {rules} in cycle {cycles}: see {}", trace.display())?;
            }
            (Verdict::Bounded { cycles }, Step::Control) => {
                write!(f, ": no rule breaks within {cycles} cycles of reset")?;
            }
            (Verdict::Bounded { cycles }, _) => {
                write!(f, ": SURVIVES: no rule breaks within {cycles} cycles of reset")?;
            }
            (Verdict::Open { cycles, trace }, _) => write!(
                f,
                ": NOT PROVED: no trace from reset breaks a rule within {cycles} cycles, but one \
                 from a state that may be out of reach does: see {}",
                trace.display()
            )?,
            (Verdict::TimedOut, _) => f.write_str(": TIMED OUT")?,
        }
        write!(f, " ({:.1} s)", self.took.as_secs_f64())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| block | property | method | k | seconds | result | mutations caught |")?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        let proofs = self.of(|step| matches!(step, Step::Proof));
        for run in &proofs {
            // A fragment that does not parse has no run.
            let Ok(fragment) = Fragment::parse(run.proof.fragment) else { continue };
            let (k, result) = match &run.verdict {
                Verdict::Proved { cycles } => (cycles.to_string(), "proved"),
                Verdict::Broken { .. } => ("-".to_owned(), "**broken**"),
                Verdict::Open { .. } => ("-".to_owned(), "**not proved**"),
                Verdict::Bounded { .. } | Verdict::TimedOut => ("-".to_owned(), "**timed out**"),
            };
            for rule in &fragment.rules {
                writeln!(
                    f,
                    "| {} | `{}` {} | induction | {k} | {:.1} | {result} | {} |",
                    run.proof.name,
                    rule.name,
                    rule.text,
                    run.took.as_secs_f64(),
                    self.caught_by(run.proof.name, &rule.name),
                )?;
            }
        }
        let mutations = self.of(|step| matches!(step, Step::Mutation(_)));
        let good = |runs: &[&Run]| runs.iter().filter(|run| run.is_good()).count();
        write!(
            f,
            "\n{} of {} blocks proved, {} of {} mutations caught",
            good(&proofs),
            proofs.len(),
            good(&mutations),
            mutations.len()
        )
    }
}
