//! Running the tools: output into a file, a sign of life now and then.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::SynthError;

/// How often the tools are looked at.
const POLL: Duration = Duration::from_millis(100);
/// How often a line says that they still run.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);
/// How much of a failed tool's output is shown.
const TAIL_LINES: usize = 15;

/// A running tool; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Tool {
    name: &'static str,
    label: &'static str,
    log: PathBuf,
    child: Child,
    started: Instant,
    done: bool,
}

impl Tool {
    /// Starts the program in the folder.
    pub(super) fn start(
        folder: &Path,
        name: &'static str,
        label: &'static str,
        arguments: &[String],
    ) -> Result<Self, SynthError> {
        let file_name: String =
            label.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
        let log = folder.join(format!("{file_name}.log"));
        let in_log = |source| SynthError::File { path: log.clone(), source };
        let output = File::create(&log).map_err(in_log)?;
        let errors = output.try_clone().map_err(in_log)?;
        let child = Command::new(name)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => SynthError::Missing { tool: name },
                _ => SynthError::File { path: PathBuf::from(name), source },
            })?;
        Ok(Self { name, label, log, child, started: Instant::now(), done: false })
    }

    /// The result, once there is one.
    fn poll(&mut self) -> Result<Option<ExitStatus>, SynthError> {
        self.child
            .try_wait()
            .map_err(|source| SynthError::File { path: PathBuf::from(self.name), source })
    }

    fn seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// The output so far; what cannot be read is empty.
    fn output(&self) -> String {
        fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// What the tool is about, by its last line that says so.
    fn phase(&self) -> String {
        let output = self.output();
        let line = output.lines().rev().find(|line| {
            line.contains("Executing ") || line.starts_with("Info: ") || line.contains("iter")
        });
        let phase = line.unwrap_or_default().trim().trim_start_matches("Info: ");
        phase.chars().take(70).collect()
    }

    fn failure(&self) -> SynthError {
        let output = self.output();
        let lines: Vec<&str> = output.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
        SynthError::Failed { tool: self.name, log: self.log.clone(), tail }
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        // Both fail if it has ended already, and that is all that is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for all of them; the first failure ends the others.
pub(super) fn wait(tools: &mut [Tool], out: &mut dyn Write) -> Result<(), SynthError> {
    let mut last_sign = Instant::now();
    while tools.iter().any(|tool| !tool.done) {
        for tool in tools.iter_mut().filter(|tool| !tool.done) {
            match tool.poll()? {
                Some(status) if status.success() => {
                    tool.done = true;
                    writeln!(out, "{}: done in {} s", tool.label, tool.seconds())
                        .map_err(SynthError::Output)?;
                }
                Some(_) => return Err(tool.failure()),
                None => {}
            }
        }
        if last_sign.elapsed() >= SIGN_OF_LIFE {
            last_sign = Instant::now();
            for tool in tools.iter().filter(|tool| !tool.done) {
                writeln!(out, "{}: {} s, {}", tool.label, tool.seconds(), tool.phase())
                    .map_err(SynthError::Output)?;
            }
        }
        sleep(POLL);
    }
    Ok(())
}
