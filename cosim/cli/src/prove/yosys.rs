//! One run of Yosys: its script, and what its output means.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{ProveError, Verdict};

/// For one question to the solver, in seconds. The longest takes a tenth on a machine of its own.
const TIMEOUT_S: u32 = 120;
/// How much of a failed run's output is shown.
const TAIL_LINES: usize = 15;
/// The trace of whatever was found, in the folder of the run.
const TRACE: &str = "trace.vcd";

/// What to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    /// Yosys, as it is called.
    pub(super) program: &'a str,
    /// Verilog with assertions.
    pub(super) design: &'a str,
    pub(super) defines: &'a [(&'a str, &'a str)],
    pub(super) top: &'a str,
    /// The longest trace, in cycles.
    pub(super) bound: usize,
    /// Only look for a trace from reset.
    pub(super) from_reset_only: bool,
    /// For all files; made if missing.
    pub(super) folder: &'a Path,
}

/// Runs it to its verdict.
pub(super) fn run(job: &Job<'_>) -> Result<Verdict, ProveError> {
    let in_folder = |name: &str| job.folder.join(name);
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ProveError::File { path, source }
    };
    fs::create_dir_all(job.folder).map_err(failed(job.folder))?;
    for (name, text) in [("design.sv", job.design), ("script.ys", &script(job))] {
        fs::write(in_folder(name), text).map_err(failed(&in_folder(name)))?;
    }
    // A trace of an older run must not be taken for one of this.
    let _ = fs::remove_file(in_folder(TRACE));
    let log = in_folder("yosys.log");
    let output = File::create(&log).map_err(failed(&log))?;
    let errors = output.try_clone().map_err(failed(&log))?;
    let status = Command::new(job.program)
        .arg("script.ys")
        .current_dir(job.folder)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .status()
        .map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ProveError::Missing,
            _ => ProveError::File { path: "yosys".into(), source },
        })?;
    let text = fs::read(&log).map_err(failed(&log))?;
    let text = String::from_utf8_lossy(&text);
    let verdict = if status.success() { verdict(&text, &in_folder(TRACE))? } else { None };
    verdict.ok_or_else(|| {
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
        ProveError::Failed { log, tail }
    })
}

fn script(job: &Job<'_>) -> String {
    let defines: String =
        job.defines.iter().map(|(name, value)| format!(" -D{name}={value}")).collect();
    let mode = if job.from_reset_only { " -tempinduct-baseonly" } else { "" };
    format!(
        "read_verilog -sv -formal{defines} design.sv\n\
         hierarchy -check -top {top}\n\
         proc\nflatten\nmemory_collect\nmemory_map -formal\nasync2sync\nchformal -lower\nopt_clean\n\
         sat -tempinduct{mode} -prove-asserts -set-assumes -maxsteps {bound} -timeout {TIMEOUT_S} \
         -show-public -dump_vcd {TRACE} {top}\n",
        top = job.top,
        bound = job.bound,
    )
}

/// What the output says, if it says it.
fn verdict(log: &str, trace: &Path) -> Result<Option<Verdict>, ProveError> {
    let read = || {
        fs::read_to_string(trace)
            .map_err(|source| ProveError::File { path: trace.to_path_buf(), source })
    };
    // The last question is the one that was answered.
    let cycles = |kind: &str| {
        let mark = format!("[{kind} ");
        let tail = log.rsplit(mark.as_str()).next().unwrap_or_default();
        tail.split(']').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    Ok(if log.contains("Induction step proven: SUCCESS!") {
        Some(Verdict::Proved { cycles: cycles("induction step") })
    } else if log.contains("model found for base case: FAIL!") {
        let rules = broken(&read()?);
        let trace = trace.to_path_buf();
        Some(Verdict::Broken { cycles: cycles("base case"), rules, trace })
    } else if log.contains("Reached maximum number of time steps -> proved base case") {
        Some(Verdict::Bounded { cycles: cycles("base case") })
    } else if log.contains("Reached maximum number of time steps -> proof failed") {
        Some(Verdict::Open { cycles: cycles("induction step"), trace: trace.to_path_buf() })
    } else if log.contains("TIMEOUT") {
        Some(Verdict::TimedOut)
    } else {
        None
    })
}

/// The conditions that are low at the end of a trace.
fn broken(vcd: &str) -> Vec<String> {
    let mut conditions: Vec<(&str, &str, bool)> = Vec::new();
    for line in vcd.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["$var", "wire", "1", id, name, ..] = words.as_slice() {
            let name = name.trim_start_matches('\\');
            if name.starts_with("rule_") || name.starts_with("lemma_") {
                conditions.push((*id, name, true));
            }
        } else if let [change] = words.as_slice() {
            let value = change.strip_prefix('0').map(|id| (id, false));
            let value = value.or_else(|| change.strip_prefix('1').map(|id| (id, true)));
            if let Some((id, value)) = value {
                conditions.iter_mut().filter(|entry| entry.0 == id).for_each(|e| e.2 = value);
            }
        }
    }
    conditions.into_iter().filter(|entry| !entry.2).map(|entry| entry.1.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;
    use std::path::PathBuf;

    #[test]
    fn the_last_value_of_a_condition_counts() {
        let vcd = "$var wire 1 v1 \\rule_a $end\n$var wire 1 v2 \\lemma_b $end\n\
                   $var wire 1 v3 \\other $end\n$enddefinitions $end\n\
                   #0\n0v1\n1v2\n0v3\n#1\n1v1\n0v2\n#2\n";
        assert_eq!(broken(vcd), ["lemma_b"]);
    }

    #[test]
    fn output_without_a_verdict_is_none() {
        let nowhere = Path::new("no-such-trace.vcd");
        assert!(matches!(verdict("nothing of the kind", nowhere), Ok(None)));
        assert!(verdict("model found for base case: FAIL!", nowhere).is_err());
        let log = "[base case 1] ..\n[induction step 1] ..\n[base case 2] ..\n\
                   [induction step 2] ..\nInduction step proven: SUCCESS!";
        let proved = verdict(log, nowhere).expect("no file is needed");
        assert_eq!(proved, Some(Verdict::Proved { cycles: 2 }));
    }

    /// Counts from 0 to 5 and stays there; `up` is free.
    const COUNTER: &str = "module top(input wire clock, input wire up);
        reg [3:0] count; initial count = 0;
        always @(posedge clock) if (up && count != 5) count <= count + 1;
        wire rule_count = RULE;
        always @(*) assert (rule_count);
        endmodule";

    fn folder(name: &str) -> PathBuf {
        env::temp_dir().join(format!("viaduct-prove-{name}-{}", std::process::id()))
    }

    /// What Yosys says of the rule, or none without Yosys.
    fn counter(name: &str, rule: &str, bound: usize, from_reset_only: bool) -> Option<Verdict> {
        crate::path::find("yosys")?;
        let design = COUNTER.replace("RULE", rule);
        let folder = folder(name);
        let job = Job {
            program: "yosys",
            design: &design,
            defines: &[],
            top: "top",
            bound,
            from_reset_only,
            folder: &folder,
        };
        let verdict = run(&job).expect("the counter is Verilog");
        if let Verdict::Broken { trace, .. } | Verdict::Open { trace, .. } = &verdict {
            assert!(trace.is_file(), "{}", trace.display());
        }
        let _ = fs::remove_dir_all(folder);
        Some(verdict)
    }

    #[test]
    fn what_holds_is_proved_and_what_does_not_leaves_a_trace() {
        let Some(verdict) = counter("holds", "count <= 5", 2, false) else { return };
        assert_eq!(verdict, Verdict::Proved { cycles: 1 });
        match counter("breaks", "count != 3", 8, true) {
            Some(Verdict::Broken { cycles: 4, rules, .. }) => assert_eq!(rules, ["rule_count"]),
            other => panic!("{other:?}"),
        }
        // 9 is out of reach, but 8 goes to 9: not to be shown by induction over two cycles.
        let open = counter("open", "count != 9", 2, false);
        assert!(matches!(open, Some(Verdict::Open { cycles: 2, .. })), "{open:?}");
        let bounded = counter("bounded", "count != 5", 4, true);
        assert_eq!(bounded, Some(Verdict::Bounded { cycles: 4 }));
    }

    #[test]
    fn a_missing_tool_is_named_and_how_to_get_it() {
        let folder = folder("missing");
        let job = Job {
            program: "no-such-yosys",
            design: COUNTER,
            defines: &[],
            top: "top",
            bound: 1,
            from_reset_only: false,
            folder: &folder,
        };
        let error = run(&job).expect_err("there is no such program");
        assert!(matches!(error, ProveError::Missing));
        assert!(error.to_string().contains("cargo xtask setup --only synth"), "{error}");
        let _ = fs::remove_dir_all(folder);
    }
}
