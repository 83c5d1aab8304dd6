//! A simulator of its own for rows whose ends are two processes.

use crate::Failure;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a simulator may take to start: devices are made, no program runs.
const START: Duration = Duration::from_secs(120);
/// How long it may take to stop; then it is killed.
const STOP: Duration = Duration::from_secs(10);

/// `viaduct cosim serve` with two nodes in a folder of its own. It ends when this is dropped, or
/// with this process however that ends: it stops at the end of its input.
#[derive(Debug)]
pub(super) struct Served {
    process: Child,
    folder: PathBuf,
}

impl Served {
    /// What is to be served in place of a device that is simulated in the program's own process;
    /// None for a device that programs share.
    pub(super) fn kind(device: &str) -> Option<Result<&str, Failure>> {
        let kind = device.strip_prefix("sim:")?;
        if kind.contains('?') {
            let text = format!(
                "{device}: two processes take a simulator with default options; start one with `viaduct cosim serve` \
                 and its options, and give --device vfio-user:PATH"
            );
            return Some(Err(text.into()));
        }
        Some(Ok(kind))
    }

    /// Starts one, with models or RTL.
    pub(super) fn start(kind: &str) -> Result<Self, Failure> {
        let folder = env::temp_dir().join(format!("viaduct-conformance-{}", std::process::id()));
        let process = Command::new(env::current_exe()?)
            .args(["cosim", "serve", "--until-eof", "--nodes", "2", "--device", kind, "--dir"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut served = Self { process, folder };
        let output = served.process.stdout.take().ok_or("no output of the simulator")?;
        let (sender, lines) = channel();
        // It reads on to the end, so that the simulator can always write.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        loop {
            match lines.recv_timeout(START) {
                Ok(line) if line == "ready" => return Ok(served),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = START.as_secs();
                    return Err(format!("the simulator was not ready after {seconds} s").into());
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the simulator did not start: see above".into());
                }
            }
        }
    }

    /// URL of its node 0.
    pub(super) fn device(&self) -> String {
        format!("vfio-user:{}", self.folder.join("nic0.sock").display())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let end = Instant::now() + STOP;
        while matches!(self.process.try_wait(), Ok(None)) {
            if Instant::now() > end {
                let _ = self.process.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = fs::remove_dir(&self.folder);
    }
}
