//! Trace events of the kernel, with the processor's cycle counter as their clock.

use std::fs;
use std::path::{Path, PathBuf};

use port::stamp::{Stage, Stamps};

/// Where the kernel has its tracing files.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The clock that is the cycle counter.
const CLOCK: &str = "x86-tsc";
/// KiB for events of each processor.
const BUFFER: &str = "2048";

/// A trace buffer of this process alone.
#[derive(Debug)]
pub(super) struct Trace {
    folder: PathBuf,
}

/// An event: the process in whose context it happened, and when.
type Event = (u32, u64);

impl Trace {
    /// A buffer for events of these processes, or why there is none.
    pub(super) fn open(processes: [u32; 2]) -> Result<Self, String> {
        let instances = PLACES.map(|place| Path::new(place).join("instances"));
        let found = instances.into_iter().find(|folder| folder.is_dir());
        let instances = found.ok_or(format!("tracefs is not mounted at {}", PLACES[0]))?;
        let folder = instances.join(format!("viaduct-{}", std::process::id()));
        let failed = |what: &Path, why| format!("{}: {why}", what.display());
        fs::create_dir(&folder).map_err(|why| failed(&folder, why))?;
        let trace = Self { folder };
        let [one, other] = processes;
        trace.write("trace_clock", CLOCK)?;
        trace.write("buffer_size_kb", BUFFER)?;
        trace.write("set_event_pid", &format!("{one} {other}"))?;
        Ok(trace)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.folder.join(file);
        fs::write(&path, text).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Begins with events of this name, such as `net/net_dev_queue`, and no others.
    pub(super) fn start(&self, event: &str) -> Result<(), String> {
        self.write("trace", "")?;
        self.write(&format!("events/{event}/enable"), "1")
    }

    /// Ends with them; those that happened, in order.
    pub(super) fn stop(&self, event: &str) -> Result<Vec<Event>, String> {
        self.write(&format!("events/{event}/enable"), "0")?;
        let path = self.folder.join("trace");
        let text = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        let mut events: Vec<Event> = text.lines().filter_map(event_of).collect();
        events.sort_by_key(|event| event.1);
        Ok(events)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = self.write("events/enable", "0");
        let _ = fs::remove_dir(&self.folder);
    }
}

/// An event in a line of a trace: `NAME-PID [CPU] FLAGS TIME: EVENT: ...`.
fn event_of(line: &str) -> Option<Event> {
    if line.starts_with('#') {
        return None;
    }
    let (task, rest) = line.split_once(" [")?;
    let process = task.trim_end().rsplit_once('-')?.1.parse().ok()?;
    let time = rest.split_whitespace().find_map(|word| word.strip_suffix(':'))?;
    Some((process, time.parse().ok()?))
}

/// Which event belongs to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The sender's first one behind the stamp of this stage.
    After(Stage),
    /// The receiver's last one before the stamp of this stage.
    Before(Stage),
}

/// Enters events as stamps of a stage. `rounds` are one process's, and so are the events.
pub(super) fn enter(rounds: &mut [Stamps], events: &[u64], which: Which, stage: Stage) {
    for stamps in rounds {
        let found = match which {
            Which::After(other) => {
                let at = stamps[other as usize];
                events.get(events.partition_point(|event| *event < at)).filter(|_| at != 0)
            }
            Which::Before(other) => {
                let behind = events.partition_point(|event| *event <= stamps[other as usize]);
                behind.checked_sub(1).map(|before| &events[before])
            }
        };
        stamps[stage as usize] = found.copied().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_trace_are_taken_apart() {
        let line =
            "         viaduct-1234    [001] b..1. 81234567890123: net_dev_queue: dev=lo len=42";
        assert_eq!(event_of(line), Some((1234, 81_234_567_890_123)));
        for line in ["# tracer: nop", "", "CPU:0 [LOST 12 EVENTS]"] {
            assert_eq!(event_of(line), None, "{line}");
        }
    }

    #[test]
    fn events_belong_to_the_message_of_the_stamp_beside_them() {
        let mut rounds = [[0; Stage::COUNT]; 3];
        for (round, start) in rounds.iter_mut().zip([100, 200, 0]) {
            round[Stage::Program as usize] = start;
        }
        let events = [90, 110, 120, 205];
        enter(&mut rounds, &events, Which::After(Stage::Program), Stage::Data);
        assert_eq!(rounds.map(|round| round[Stage::Data as usize]), [110, 205, 0]);
        enter(&mut rounds, &events, Which::Before(Stage::Program), Stage::Wire);
        assert_eq!(rounds.map(|round| round[Stage::Wire as usize]), [90, 120, 0]);
    }

    #[test]
    fn a_process_without_rights_or_tracing_is_given_the_reason() {
        // Where tracing is permitted it may succeed.
        if let Err(why) = Trace::open([std::process::id(); 2]) {
            assert!(why.contains("/sys/kernel/"), "{why}");
        }
    }
}
