//! Proofs: what the contract and the blocks' pages promise, of the Verilog of the NIC, by induction.
//!
//! ```text
//! Verilog of the NIC --modules of one block--> + fragment with rules --> Yosys --> proved, or VCD
//!                                  `--one edit (mutation)--> + rules --> Yosys --> must be refuted
//! ```
//! A proof is a module as it stands in the NIC and a fragment of Verilog (`cosim/prove/*.sv`) that is
//! put into it: see [`fragment`]. Yosys' `sat -tempinduct` does k-induction: no trace from reset
//! breaks a rule within k cycles, and k cycles without a broken rule are never followed by one with.
//! A mutation is an edit of the RTL's Verilog after which a rule must break within so many cycles
//! from reset; without that a rule could be true of anything.

mod fragment;
mod module;
mod report;
mod table;
mod yosys;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fragment::Fragment;
pub(crate) use report::Report;
pub(crate) use table::PROOFS;

/// What is proved of one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proof {
    /// As on the command line.
    pub(crate) name: &'static str,
    /// The module, as it is called in the Verilog of the NIC.
    pub(crate) module: &'static str,
    /// Rules, lemmas, assumptions, and the state that they need.
    fragment: &'static str,
    /// Macros that the fragment uses.
    defines: &'static [(&'static str, &'static str)],
    /// Edits of the design and its fragment for the traces of mutations, which would take too long
    /// otherwise: they skip the clearing of tables after reset, or leave fewer inputs. Without a
    /// mutation they must not break a rule.
    shortened: &'static [(&'static str, &'static str)],
    /// Instances in the module that are taken out: the fragment stands in for them.
    opened: &'static [&'static str],
    /// The longest induction that is tried, in cycles.
    induction: usize,
    /// From reset, the cycles in which a mutation must show.
    cycles: usize,
    mutations: &'static [Mutation],
}

/// An edit of the RTL after which a rule must break.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutation {
    pub(crate) name: &'static str,
    /// Occurs once in the block's Verilog.
    from: &'static str,
    to: &'static str,
}

/// What is run of a proof.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// The rules of the RTL as it is: proved.
    Proof,
    /// The shortened RTL: no rule breaks in as many cycles as mutations have.
    Control,
    /// The RTL with an edit: a rule breaks.
    Mutation(&'static Mutation),
}

impl Step {
    /// The steps of a proof; only the first one without mutations.
    fn all(proof: &Proof, mutations: bool) -> Vec<Self> {
        let mut steps = vec![Self::Proof];
        if mutations {
            if !proof.shortened.is_empty() {
                steps.push(Self::Control);
            }
            steps.extend(proof.mutations.iter().map(Self::Mutation));
        }
        steps
    }

    fn name(self) -> &'static str {
        match self {
            Self::Proof => "proof",
            Self::Control => "control",
            Self::Mutation(mutation) => mutation.name,
        }
    }
}

/// How a run of Yosys ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Holds always; by induction over so many cycles.
    Proved { cycles: usize },
    /// Holds for so many cycles from reset.
    Bounded { cycles: usize },
    /// Broken by a trace from reset.
    Broken { cycles: usize, rules: Vec<String>, trace: PathBuf },
    /// Neither broken nor proved; the trace starts in a state that need not be reachable.
    Open { cycles: usize, trace: PathBuf },
    /// The solver took too long.
    TimedOut,
}

/// One run of Yosys.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) proof: &'static Proof,
    pub(crate) step: Step,
    pub(crate) verdict: Verdict,
    pub(crate) took: Duration,
}

impl Run {
    /// Whether it ended as it must.
    pub(crate) fn is_good(&self) -> bool {
        match self.step {
            Step::Proof => matches!(self.verdict, Verdict::Proved { .. }),
            Step::Control => matches!(self.verdict, Verdict::Bounded { .. }),
            Step::Mutation(_) => matches!(self.verdict, Verdict::Broken { .. }),
        }
    }
}

/// Why there is no verdict.
#[derive(Debug)]
pub(crate) enum ProveError {
    /// No proof of this name.
    Unknown(String),
    /// Yosys is not on the PATH.
    Missing,
    /// Yosys ended with an error.
    Failed {
        /// Where its output is.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// A file cannot be read or written.
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Proof and RTL do not fit each other.
    Misfit {
        /// The proof.
        proof: &'static str,
        /// What does not fit.
        what: String,
    },
}

impl fmt::Display for ProveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let known: Vec<&str> = PROOFS.iter().map(|proof| proof.name).collect();
                write!(f, "no proof {name:?}; there are {}", known.join(", "))
            }
            Self::Missing => f.write_str(
                "yosys is not on the PATH: `cargo viaduct prove` brings it along, and so does \
                 `cargo xtask setup --only synth`",
            ),
            Self::Failed { log, tail } => {
                write!(f, "yosys failed; its output is in {}\n{tail}", log.display())
            }
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Misfit { proof, what } => write!(f, "proof {proof}: {what}"),
        }
    }
}

impl std::error::Error for ProveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The proofs that are asked for: one by its name, or all.
pub(crate) fn chosen(name: Option<&str>) -> Result<Vec<&'static Proof>, ProveError> {
    let all = PROOFS.iter();
    let found: Vec<&'static Proof> =
        all.filter(|proof| name.is_none_or(|name| name == proof.name)).collect();
    match name {
        Some(name) if found.is_empty() => Err(ProveError::Unknown(name.to_owned())),
        _ => Ok(found),
    }
}

/// Runs the proofs, and their mutations if asked, on the Verilog of the NIC.
///
/// Inputs, logs and traces of each run stay in a folder of their own below `folder`. Progress goes
/// to `out`. As many runs as the machine has processors go on at a time.
pub(crate) fn run(
    verilog: &str,
    proofs: &[&'static Proof],
    mutations: bool,
    folder: &Path,
    out: &mut (dyn Write + Send),
) -> Result<Report, ProveError> {
    let jobs: Vec<(&'static Proof, Step)> = proofs
        .iter()
        .flat_map(|&proof| Step::all(proof, mutations).into_iter().map(move |step| (proof, step)))
        .collect();
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Run, ProveError>)>> = Mutex::new(Vec::new());
    let out = Mutex::new(out);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(proof, step)) = jobs.get(index) else { return };
            let result = one(verilog, proof, step, folder);
            if result.is_err() {
                // What is wrong here is wrong everywhere: nothing further is begun.
                next.store(jobs.len(), Ordering::Relaxed);
            }
            let Ok(mut done) = done.lock() else { return };
            if let (Ok(run), Ok(mut out)) = (&result, out.lock()) {
                // Progress that cannot be shown is no reason to stop.
                let _ = writeln!(out, "[{}/{}] {run}", done.len() + 1, jobs.len());
            }
            done.push((index, result));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(index, _)| *index);
    Ok(Report::new(done.into_iter().map(|(_, result)| result).collect::<Result<_, _>>()?))
}

/// One run, in its folder.
fn one(verilog: &str, proof: &'static Proof, step: Step, folder: &Path) -> Result<Run, ProveError> {
    let started = Instant::now();
    let is_proof = matches!(step, Step::Proof);
    let job = yosys::Job {
        program: "yosys",
        design: &design(verilog, proof, step)?,
        defines: proof.defines,
        top: proof.module,
        bound: if is_proof { proof.induction } else { proof.cycles },
        from_reset_only: !is_proof,
        folder: &folder.join(proof.name).join(step.name()),
    };
    let verdict = yosys::run(&job)?;
    Ok(Run { proof, step, verdict, took: started.elapsed() })
}

/// The Verilog of a run: the block, edited, with its fragment.
fn design(verilog: &str, proof: &'static Proof, step: Step) -> Result<String, ProveError> {
    let misfit = |what| ProveError::Misfit { proof: proof.name, what };
    let fragment = Fragment::parse(proof.fragment).map_err(misfit)?;
    let mut text = module::with_parts(verilog, proof.module).map_err(misfit)?;
    if let Step::Mutation(mutation) = step {
        text = module::replace_once(&text, mutation.from, mutation.to)
            .map_err(|what| misfit(format!("mutation {}: {what}", mutation.name)))?;
    }
    for instance in proof.opened {
        text = module::without_instance(&text, proof.module, instance).map_err(misfit)?;
    }
    // A lemma is about the RTL's inside. A mutation must break what is promised outside.
    let is_proof = matches!(step, Step::Proof);
    let checks = fragment.checks(is_proof);
    let mut design = module::with_fragment(&text, proof.module, &checks).map_err(misfit)?;
    for (from, to) in if is_proof { &[] } else { proof.shortened } {
        design = module::replace_once(&design, from, to).map_err(misfit)?;
    }
    Ok(design)
}
