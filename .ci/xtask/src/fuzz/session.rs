//! One target: runs of libFuzzer, and what becomes of their inputs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{folder, output, shown};

/// Seconds after which an input hangs.
const HANG_SECONDS: u32 = 20;
/// Seconds in which an input that fails is made smaller.
const SMALLER_SECONDS: u32 = 30;
/// Bytes of an input at most.
const LONGEST: u32 = 2_048;
/// Lines of what a failure said that are shown: libFuzzer's own stand behind them.
const MESSAGE_LINES: usize = 6;

/// See the module.
#[derive(Debug)]
pub(super) struct Session<'a> {
    program: &'a Path,
    target: &'a str,
}

fn make(folder: PathBuf) -> Result<PathBuf, String> {
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// The files of a folder, which may be missing, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

impl<'a> Session<'a> {
    pub(super) const fn new(program: &'a Path, target: &'a str) -> Self {
        Self { program, target }
    }

    /// The inputs of the tree.
    fn tree(&self) -> [PathBuf; 2] {
        ["corpus", "regressions"].map(|kind| folder().join(kind).join(self.target))
    }

    fn found(&self) -> PathBuf {
        output().join("corpus").join(self.target)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.env("FUZZ_TARGET", self.target).env("RUST_BACKTRACE", "0");
        command.arg(format!("-timeout={HANG_SECONDS}")).arg(format!("-max_len={LONGEST}"));
        // A panic of Rust is its message; libFuzzer's stacks add nothing.
        command.args(["-handle_abrt=1", "-print_final_stats=1", "-len_control=0"]);
        command
    }

    /// Looks for an input that fails, for some time, or until there is one: gives its place in the
    /// tree.
    pub(super) fn run(&self, seconds: u64) -> Result<Option<PathBuf>, String> {
        let artifacts = output().join("failed").join(self.target);
        if artifacts.exists() {
            fs::remove_dir_all(&artifacts).map_err(|e| format!("{}: {e}", artifacts.display()))?;
        }
        make(artifacts.clone())?;
        let mut command = self.command();
        command.arg(format!("-max_total_time={seconds}"));
        command.arg(format!("-artifact_prefix={}/", artifacts.display()));
        command.arg(make(self.found())?).args(self.tree().into_iter().filter(|path| path.exists()));
        let lines = self.show(&mut command)?;
        let Some(failed) = files(&artifacts).into_iter().next() else {
            return match lines.last() {
                None => Ok(None),
                Some(_) => Err(format!("{}: {}", self.target, lines.join("\n"))),
            };
        };
        lines.iter().for_each(|line| println!("{}: {line}", self.target));
        self.keep(&failed).map(Some)
    }

    /// Runs libFuzzer with its lines shown. Nothing if it ends well, else what it said before its own
    /// report.
    fn show(&self, command: &mut Command) -> Result<Vec<String>, String> {
        let cannot = |error: std::io::Error| format!("{}: {error}", self.program.display());
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(cannot)?;
        let mut said = Vec::new();
        for line in
            child.stderr.take().into_iter().flat_map(|text| BufReader::new(text).split(b'\n'))
        {
            let line = String::from_utf8_lossy(&line.map_err(cannot)?).into_owned();
            // Its progress, and the figures at its end.
            if line.starts_with('#') || line.starts_with("stat::") {
                println!("{}: {line}", self.target);
            } else if !line.starts_with("INFO:") {
                said.push(line);
            }
        }
        if child.wait().map_err(cannot)?.success() {
            return Ok(Vec::new());
        }
        said.truncate(
            said.iter().position(|line| line.contains("libFuzzer: ")).unwrap_or(said.len()),
        );
        said.retain(|line| !line.trim().is_empty());
        let message = said.len().saturating_sub(MESSAGE_LINES);
        said.drain(..message);
        if said.is_empty() {
            said.push("it hangs, or has no memory left".to_owned());
        }
        Ok(said)
    }

    /// Makes an input that fails smaller, and puts it into the tree.
    fn keep(&self, failed: &Path) -> Result<PathBuf, String> {
        let small = failed.with_extension("small");
        println!("{}: makes the input smaller, up to {SMALLER_SECONDS} s", self.target);
        let mut command = self.command();
        command.arg("-minimize_crash=1").arg(format!("-max_total_time={SMALLER_SECONDS}"));
        command.arg(format!("-exact_artifact_path={}", small.display())).arg(failed);
        // If it cannot, the input stays as it is.
        let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let [_, regressions] = self.tree();
        let name = failed.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // `crash-`, `timeout-` or the like, and the hash of the input as it was found.
        let place = make(regressions)?.join(name.rsplit('-').next().unwrap_or(&name));
        let smallest = if small.exists() { &small } else { failed };
        fs::copy(smallest, &place).map_err(|error| format!("{}: {error}", place.display()))?;
        println!("{}: kept as {}", self.target, shown(&place));
        Ok(place)
    }

    /// Puts the fewest inputs into the tree that reach every branch which all reach together.
    pub(super) fn merge(&self) -> Result<(), String> {
        let merged = output().join("merged").join(self.target);
        if merged.exists() {
            fs::remove_dir_all(&merged)
                .map_err(|error| format!("{}: {error}", merged.display()))?;
        }
        let [corpus, _] = self.tree();
        let mut command = self.command();
        // How often a branch runs would take many times as many inputs.
        command.args(["-set_cover_merge=1", "-use_counters=0"]).arg(make(merged.clone())?);
        command.args([make(corpus.clone())?, make(self.found())?]);
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", self.program.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{}: no merge: {said}", self.target));
        }
        let copy = || -> std::io::Result<(usize, u64)> {
            for file in files(&corpus) {
                fs::remove_file(file)?;
            }
            let (mut count, mut bytes) = (0, 0);
            for file in files(&merged) {
                bytes += fs::copy(&file, corpus.join(file.file_name().unwrap_or_default()))?;
                count += 1;
            }
            Ok((count, bytes))
        };
        let (count, bytes) = copy().map_err(|error| format!("{}: {error}", corpus.display()))?;
        println!("{}: {count} inputs of {bytes} bytes in {}", self.target, shown(&corpus));
        Ok(())
    }
}
