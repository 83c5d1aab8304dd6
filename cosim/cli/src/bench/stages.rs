//! The measurements of `viaduct bench anatomy`: where the time of one message goes on a software
//! device, in the manner of "Anatomy of UDP and M-VIA" (its tables 1 to 3).
//!
//! Two processes, each on a processor of its own, exchange messages by polling: without stamps, which
//! gives the one-way time, and with stamps ([`port::stamp`]) of one stage's end, and of the message's,
//! in both. In turn, again and again, so that what the machine does meanwhile hits all of them. A stage
//! lasts from the end of the one before it to its own: means over the messages of all turns in both
//! directions, without those that were interrupted.
//!
//! With all stamps in the same message, the stages are too short by a quarter: a processor that
//! executes out of order does most of the work between two stamps while it reads the counter, and what
//! a stamp costs is subtracted nevertheless.
//!
//! | module | what |
//! |---|---|
//! | `path` | the stages in order, with their categories; their times from the stamps of a message |
//! | `text` | tables and JSON |
//! | `net` | those of `udp:` and `eth:` |
//! | `sockets`, `trace` | sockets of the kernel, for comparison: its trace events |

mod net;
mod path;
mod sockets;
pub(crate) mod text;
mod trace;

use std::time::Instant;

use device::Place;
use port::stamp::{self, Stage};

use self::path::{Ends, Row};
use self::trace::Trace;
use super::load::{BUSY_MAX, Load};
use super::processes::Processes;
use super::statistics::Sample;
use super::transport::Kind;
use crate::Failure;
use crate::progress::Progress;

/// Most that the stages' sum may differ from the one-way time, as a part of it.
const DIFFERENCE_MAX: f64 = 0.1;

/// What is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// URL of a device.
    pub(crate) device: String,
    /// Bytes of messages.
    pub(crate) sizes: Vec<usize>,
    /// Fewer turns.
    pub(crate) quick: bool,
    /// Reports however busy the machine is.
    pub(crate) anyway: bool,
}

/// The anatomy of messages of one size. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Anatomy {
    /// Bytes of a message.
    pub(crate) size: usize,
    /// Of each stage, by its number; None: the device does not stamp it.
    pub(crate) stages: [Option<f64>; Stage::COUNT],
    /// One way, measured without stamps.
    pub(crate) one_way: f64,
    /// What a stamp costs, which is subtracted.
    pub(crate) probe: f64,
    /// How far the counter of the other process's processor is ahead.
    pub(crate) offset: f64,
    /// Cycles of the counter in a nanosecond.
    pub(crate) frequency: f64,
    /// Messages with stamps.
    pub(crate) messages: usize,
    /// Why stages could not be measured; none, if they could.
    pub(crate) lacks: Option<String>,
}

impl Anatomy {
    /// Of the stages that follow each other.
    pub(crate) fn sum(&self) -> f64 {
        path::critical(&self.stages)
    }

    /// How much more the stages take together than the one-way time, as a part of it.
    pub(crate) fn difference(&self) -> f64 {
        self.sum() / self.one_way - 1.0
    }

    /// Whether the stages add up to the one-way time.
    pub(crate) fn adds_up(&self) -> bool {
        self.difference().abs() <= DIFFERENCE_MAX
    }
}

/// What was measured.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// URL of the device.
    pub(crate) device: String,
    /// Its stages.
    rows: &'static [Row],
    /// One for each size.
    pub(crate) anatomies: Vec<Anatomy>,
    /// Processors that other programs kept busy.
    pub(crate) busy: f64,
}

/// Why a device has no stages that this command can measure.
fn check(name: &str) -> Result<(), Failure> {
    let hardware = |form: &str| -> Result<(), Failure> {
        Err(format!(
            "the stages of `{name}` are those of its NIC: `viaduct bench hw anatomy{form}` has them"
        )
        .into())
    };
    if name.starts_with(sockets::SCHEME) {
        let unknown = || format!("`{name}` is no socket: give kernel:udp or kernel:tcp");
        sockets::kind(name).ok_or_else(unknown)?;
        return stamps_are_there();
    }
    match device::parse(name)? {
        Place::Sim(device::Kind::Model, _) => hardware(" --device model"),
        Place::Sim(device::Kind::Rtl, _)
        | Place::VfioUser(_)
        | Place::Vfio(_)
        | Place::Folder(_) => hardware(""),
        _ => stamps_are_there(),
    }
}

fn stamps_are_there() -> Result<(), Failure> {
    if stamp::BUILT_IN {
        return Ok(());
    }
    Err("this build has no stamps in the data path: `cargo viaduct bench anatomy` builds one that \
         has them (feature `stamps`)"
        .into())
}

/// Measures messages of each size.
pub(crate) fn measure(job: &Job) -> Result<Report, Failure> {
    check(&job.device)?;
    let progress = Progress::default();
    let mut processes = Processes::start()?;
    if !processes.are_apart {
        return Err("two processors are needed, one for each process".into());
    }
    let load = Load::start()?;
    let probe = probe();
    let mut anatomies = Vec::new();
    for &size in &job.sizes {
        progress.start(&format!("{size} bytes"));
        anatomies.push(one(job, &progress, &mut processes, (size, probe))?);
    }
    let busy = load.of_others()?;
    if busy > BUSY_MAX && !job.anyway {
        return Err(format!(
            "other programs kept {busy:.2} processors busy meanwhile: end them, or say --anyway"
        )
        .into());
    }
    Ok(Report { device: job.device.clone(), rows: rows_of(&job.device), anatomies, busy })
}

/// The stages of a device.
fn rows_of(device: &str) -> &'static [Row] {
    match device {
        _ if sockets::kind(device).is_some() => &sockets::ROWS,
        _ if net::is_one(device) => &net::ROWS,
        _ => &path::ROWS,
    }
}

fn one(
    job: &Job,
    progress: &Progress,
    processes: &mut Processes,
    (size, probe): (usize, f64),
) -> Result<Anatomy, Failure> {
    let rounds = rounds(size);
    let turns = if job.quick { 5 } else { 101 };
    let socket = sockets::kind(&job.device);
    let vipl = || Kind::Vipl { device: job.device.clone(), blocking: false };
    let at = processes.open(&socket.clone().unwrap_or_else(vipl), size)?;
    let (start, counter) = (Instant::now(), stamp::now());
    let (mut plain, mut ends, mut lacks) = (Vec::new(), Ends::default(), None);
    let trace = socket.map(|_| Trace::open(processes.ids()));
    for turn in 0..turns {
        progress.tick(|| format!("turn {turn} of {turns}"));
        plain.push(processes.one_way(at, size, rounds)?);
        if let Some(trace) = &trace {
            for row in rows_of(&job.device) {
                match sockets::turn(processes, trace, (at, size, rounds), row.stage)? {
                    Ok(stamps) => ends.add(row.stage, &stamps),
                    Err(why) => lacks = Some(why),
                }
            }
        } else {
            for row in rows_of(&job.device) {
                let stamps = processes.stamped(at, (size, rounds), Ends::wanted(row.stage))?;
                ends.add(row.stage, &stamps);
            }
        }
    }
    let cycles = stamp::now().wrapping_sub(counter) as f64;
    let frequency = cycles / (start.elapsed().as_secs_f64() * 1e9);
    let in_ns = |cycles: f64| cycles / frequency;
    Ok(Anatomy {
        size,
        stages: ends.stages(probe).map(|time| time.map(in_ns)),
        one_way: Sample::new(plain).median(),
        probe: in_ns(probe),
        offset: in_ns(ends.offset().ok_or("no message has stamps at both ends")?),
        frequency,
        messages: ends.messages(),
        lacks,
    })
}

/// Messages there and back of a turn: few large ones, so that not every turn is interrupted.
fn rounds(size: usize) -> u32 {
    const BYTES: usize = 2 << 20;
    u32::try_from(BYTES / size.max(1)).unwrap_or(u32::MAX).clamp(60, 500)
}

/// Cycles that a stamp costs: those between two that follow each other.
fn probe() -> f64 {
    const BATCHES: usize = 1_001;
    const STAMPS: u32 = 64;
    stamp::choose(&[Stage::Program]);
    let batch = |_| {
        let start = stamp::now();
        for _ in 0..STAMPS {
            stamp::stamp(Stage::Program);
        }
        stamp::now().wrapping_sub(start) as f64 / f64::from(STAMPS + 1)
    };
    let cost = Sample::new((0..BATCHES).map(batch).collect()).median();
    stamp::choose(&[]);
    let _ = stamp::take();
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_with_stages_of_their_own_are_measured_elsewhere() {
        for (device, wanted) in [
            ("sim:model", "bench hw anatomy --device model"),
            ("sim:rtl", "bench hw anatomy`"),
            ("vfio-user:nics/nic0.sock", "bench hw anatomy`"),
        ] {
            let why = check(device).expect_err("it is hardware").to_string();
            assert!(why.contains(wanted), "{why}");
        }
        for device in ["shm:", "kernel:udp"] {
            assert_eq!(check(device).is_ok(), stamp::BUILT_IN);
        }
        let why = check("kernel:ftp").expect_err("there is none").to_string();
        assert!(why.contains("kernel:udp or kernel:tcp"), "{why}");
    }

    #[test]
    fn only_critical_stages_are_summed() {
        let mut stages = [Some(10.0); Stage::COUNT];
        stages[Stage::Match as usize] = None;
        let anatomy = Anatomy {
            size: 4,
            stages,
            one_way: 100.0,
            probe: 1.0,
            offset: 0.0,
            frequency: 2.5,
            messages: 1,
            lacks: None,
        };
        assert_eq!(anatomy.sum(), 10.0 * (Stage::COUNT - 4) as f64);
        assert!((anatomy.difference() - 0.1).abs() < 1e-9, "{}", anatomy.difference());
        assert!(!Anatomy { one_way: 99.0, ..anatomy.clone() }.adds_up());
        assert!(Anatomy { one_way: 105.0, ..anatomy }.adds_up());
    }
}
