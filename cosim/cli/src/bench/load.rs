//! How busy the machine is with other programs while something is measured.

use std::time::Instant;

use crate::Failure;

/// Processors that others may keep busy.
pub(crate) const BUSY_MAX: f64 = 0.15;

/// Processor time since some moment.
#[derive(Debug)]
pub(crate) struct Load {
    start: Instant,
    /// Of all programs, and of this one with its children, in ticks.
    all: u64,
    own: u64,
}

/// Ticks a second (`USER_HZ`).
const TICKS: f64 = 100.0;

impl Load {
    /// From now on.
    pub(crate) fn start() -> Result<Self, Failure> {
        Ok(Self { start: Instant::now(), all: all()?, own: own()? })
    }

    /// Processors that other programs have kept busy since, on average.
    pub(crate) fn of_others(&self) -> Result<f64, Failure> {
        let ticks = (all()? - self.all).saturating_sub(own()? - self.own);
        let seconds = self.start.elapsed().as_secs_f64();
        Ok(f64::from(u32::try_from(ticks)?) / TICKS / seconds.max(1.0 / TICKS))
    }
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// user, nice, system, irq, softirq, steal of all processors.
fn all() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let cpu = numbers(text.lines().next().unwrap_or_default());
    let busy = [0, 1, 2, 5, 6, 7];
    Ok(busy.iter().filter_map(|at| cpu.get(*at)).sum())
}

/// utime and stime of this process and of its descendants: of those that live, and of those that have
/// ended, which the kernel adds to their parent's cutime and cstime.
fn own() -> Result<u64, Failure> {
    let of = |pid: u64| -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the name, which may have anything in it.
        let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_whitespace().collect();
        fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum()
    };
    let (mut family, mut ticks) = (vec![u64::from(std::process::id())], 0);
    while let Some(pid) = family.pop() {
        ticks += of(pid).unwrap_or(0);
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        family.extend(numbers(&children.unwrap_or_default()));
    }
    Ok(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_has_ended_is_not_another_program() {
        let before = own().expect("procfs");
        let mut child = std::process::Command::new("sh");
        child.args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]);
        assert!(child.status().expect("a shell").success());
        assert!(own().expect("procfs") >= before + 5, "less than 50 ms");
    }
}
