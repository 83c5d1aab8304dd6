//! Which process: numbers of processes are used again.

use core::fmt;
use core::str::FromStr;
use std::fs;

/// A process, by its number and when it was started. As text `NUMBER-STARTED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// When it was started, in ticks of the kernel since the machine was.
    pub started: u64,
}

impl Process {
    /// The process that has a number now. None: there is none, or it has ended.
    #[must_use]
    pub fn of(id: u32) -> Option<Self> {
        Some(look(id)?.0)
    }

    /// This one. Without `/proc` its start is 0.
    #[must_use]
    pub fn own() -> Self {
        let id = std::process::id();
        Self::of(id).unwrap_or(Self { id, started: 0 })
    }

    /// Whether it runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        Self::of(self.id) == Some(*self)
    }

    /// When it was started, in seconds since 1970; None without `/proc`.
    #[must_use]
    pub fn start_time(&self) -> Option<u64> {
        /// The kernel's ticks a second, for programs (`AT_CLKTCK`): the same on all processors but Alpha.
        const TICKS: u64 = 100;
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let boot = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
        Some(boot.trim().parse::<u64>().ok()? + self.started / TICKS)
    }

    /// Which program it runs. None: the process has ended.
    pub(super) fn program(&self) -> Option<Program> {
        look(self.id).filter(|(process, _)| process == self).map(|(_, program)| program)
    }
}

/// A program that a process runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: String,
    /// Another number after an `exec`, since the kernel puts the stack elsewhere; 0 if that is not to be
    /// known.
    pub(super) image: u64,
}

/// What the kernel says of a process that has not ended.
fn look(id: u32) -> Option<(Process, Program)> {
    let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name, in parentheses, may hold anything. proc(5): fields 3, 22 and 28.
    let (begin, end) = (stat.find('(')? + 1, stat.rfind(')')?);
    let fields = stat.get(end + 2..)?;
    if fields.starts_with(['Z', 'X']) {
        return None;
    }
    let mut fields = fields.split(' ');
    let started = fields.nth(19)?.parse().ok()?;
    let image = fields.nth(5).and_then(|field| field.parse().ok()).unwrap_or(0);
    let name = stat.get(begin..end)?.to_owned();
    Some((Process { id, started }, Program { name, image }))
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.id, self.started)
    }
}

/// The text is none of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no process, which is a number and a start, such as 1234-567890")]
pub struct NoProcess;

impl FromStr for Process {
    type Err = NoProcess;

    fn from_str(text: &str) -> Result<Self, NoProcess> {
        let (id, started) = text.split_once('-').ok_or(NoProcess)?;
        match (id.parse(), started.parse()) {
            (Ok(id), Ok(started)) => Ok(Self { id, started }),
            _ => Err(NoProcess),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_start() {
        let own = Process::own();
        assert!(own.is_alive());
        assert_eq!(own.to_string().parse(), Ok(own));
        let program = own.program().unwrap();
        assert_eq!(program.name, fs::read_to_string("/proc/self/comm").unwrap().trim());
        assert_ne!(program.image, 0);
        let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
        let now = now.unwrap().as_secs();
        assert!((now - 86_400..=now + 1).contains(&own.start_time().unwrap()));
        let earlier = Process { started: own.started.wrapping_sub(1), ..own };
        assert!(!earlier.is_alive(), "the number was another process's before");
        assert_eq!(earlier.program(), None);
        for bad in ["", "12", "12-", "-12", "x-1", "1-2-3"] {
            assert_eq!(bad.parse::<Process>(), Err(NoProcess), "{bad}");
        }
    }
}
