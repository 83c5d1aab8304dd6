//! The machine: QEMU with an IOMMU and the NICs.

use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::image;
use crate::tools::guest as tools;

/// How often the end of QEMU is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Slot of the first NIC, so that programs know the addresses.
const FIRST_SLOT: usize = 0x10;
/// Lines of the console that are shown when something went wrong.
const LAST_LINES: usize = 25;

/// What is to run; its files are in the folder.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) nics: Vec<PathBuf>,
    pub(super) memory_mib: u32,
    pub(super) folder: PathBuf,
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The program did, with this exit code.
    Exit(u8),
    /// It had no more time.
    TimedOut,
    /// QEMU did, and why.
    Lost(String),
}

impl Machine {
    /// Boots it and waits until it is switched off, at most as long as `bound`.
    pub(super) fn run(&self, bound: Duration) -> Result<End, String> {
        let path = self.errors();
        let errors = File::create(&path)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let mut child = Command::new(tools::qemu())
            .args(self.arguments()?)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("cannot run QEMU: {error}"))?;
        let status = wait(&mut child, bound)?;
        let Some(status) = status else { return Ok(End::TimedOut) };
        match exit_code(&read(&self.console())) {
            Some(code) => Ok(End::Exit(code)),
            None => Ok(End::Lost(status.to_string())),
        }
    }

    /// What QEMU said, and the end of the console.
    pub(super) fn last_words(&self) -> String {
        let (errors, console) = (read(&self.errors()), read(&self.console()));
        let lines: Vec<&str> = console.lines().collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        format!("what QEMU said:\n{errors}\nthe end of the console:\n{last}")
    }

    fn errors(&self) -> PathBuf {
        self.folder.join("errors")
    }

    fn console(&self) -> PathBuf {
        self.folder.join("console")
    }

    fn arguments(&self) -> Result<Vec<String>, String> {
        let size = self.memory_mib;
        let kernel = tools::folder().join("vmlinuz").display().to_string();
        let memory = format!("memory-backend-memfd,id=mem,size={size}M,share=on");
        let megabytes = format!("{size}M");
        let mut arguments: Vec<String> = [
            "-nodefaults",
            "-no-reboot",
            // Nobody is left who would end it.
            "-run-with",
            "exit-with-parent=on",
            // A KVM that is there may still be of no use.
            "-accel",
            "tcg",
            "-cpu",
            "max",
            "-display",
            "none",
            "-machine",
            "q35,memory-backend=mem",
            "-m",
            &megabytes,
            "-object",
            &memory,
            // The IOMMU makes groups for VFIO; with interrupts and with mappings that are reported.
            "-device",
            "intel-iommu,intremap=on,caching-mode=on",
            "-serial",
            "file:console",
            "-serial",
            "stdio",
            "-kernel",
            &kernel,
            "-initrd",
            image::NAME,
            "-append",
            "console=ttyS0 quiet panic=-1 no_timer_check intel_iommu=on",
        ]
        .map(str::to_owned)
        .to_vec();
        for (number, nic) in self.nics.iter().enumerate() {
            arguments.extend(["-device".to_owned(), device(nic, number)?]);
        }
        Ok(arguments)
    }
}

/// The QEMU argument for a NIC. A simulated NIC may take its time.
fn device(socket: &Path, number: usize) -> Result<String, String> {
    let slot = FIRST_SLOT + number;
    let path = socket.to_str().filter(|path| !path.contains(['"', '\\']));
    let path =
        path.ok_or_else(|| format!("no argument of QEMU can hold the path {}", socket.display()))?;
    let socket = format!(r#"{{"type":"unix","path":"{path}"}}"#);
    Ok(format!(
        r#"{{"driver":"vfio-user-pci","addr":"{slot:x}","x-msg-timeout":60000,"socket":{socket}}}"#
    ))
}

/// Waits for the end of a process; after a while it is killed, and None is the answer.
fn wait(child: &mut Child, bound: Duration) -> Result<Option<ExitStatus>, String> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Some(status)),
            Ok(None) if start.elapsed() < bound => std::thread::sleep(LOOK),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
            Err(error) => return Err(format!("cannot wait for QEMU: {error}")),
        }
    }
}

/// The exit code that the guest printed on its console.
fn exit_code(console: &str) -> Option<u8> {
    let rest = console.split(image::EXIT).nth(1)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn read(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_found_between_kernel_messages() {
        let console = "[1.0] x\r\nviaduct guest: exit 3\r\n[ 2.0] reboot: machine restart\r\n";
        assert_eq!(exit_code(console), Some(3));
        assert_eq!(exit_code("[1.0] Kernel panic\r\n"), None);
        assert_eq!(exit_code("viaduct guest: exit "), None);
    }

    #[test]
    fn a_process_that_does_not_end_is_ended() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("it starts");
        assert_eq!(wait(&mut child, Duration::from_millis(1)), Ok(None));
        let mut child = Command::new("false").spawn().expect("it starts");
        let status = wait(&mut child, Duration::from_secs(1000)).expect("it can be waited for");
        assert_eq!(status.and_then(|status| status.code()), Some(1));
    }

    #[test]
    fn a_socket_is_printed_as_json() {
        let text = device(Path::new("/a b/nic0.sock"), 1).expect("a plain path");
        assert!(text.contains(r#""path":"/a b/nic0.sock"}}"#), "{text}");
        assert!(device(Path::new("/a\"b"), 0).is_err());
    }
}
