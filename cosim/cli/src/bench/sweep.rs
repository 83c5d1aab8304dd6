//! The sweeps of `viaduct bench`: devices and references of the same run, at many sizes.
//!
//! | module | figures |
//! |---|---|
//! | `latency` | `latency` |
//! | `bandwidth` | `bandwidth` or `bandwidth_both`, `cycles_per_byte` |
//! | `cq` | `cq_latency`, `cq_throughput`, `cq_load` |
//! | `threads` | `bandwidth_threads`, `round_trips_threads` |
//! | `connect` | `connect`, `connect_rate` |
//! | `register` | `register` |
//! | `streams` | `stream_latency`, `stream_bandwidth`, `stream_both`, `stream_cycles`, `stream_threads`, `file_copy` |
//! | `calls` | `call`, `call_echo`, `call_cycles`, `call_threads` |
//! | `installed` | points of other programs in `latency` and `bandwidth` |
//! | `simulated` | `latency`, `transmit`, `receive`, `bandwidth` of `sim:` devices, by their own clock |
//!
//! At each size the transports are measured in turn, again and again, so that what the machine does
//! meanwhile hits all of them; a point is the median of the turns.

pub(crate) mod bandwidth;
pub(crate) mod calls;
pub(crate) mod connect;
pub(crate) mod cq;
mod installed;
pub(crate) mod latency;
pub(crate) mod register;
mod simulated;
pub(crate) mod streams;
pub(crate) mod threads;

use super::exchange::Exchange;
use super::load::Load;
use super::machine;
use super::processes::Processes;
use super::series::{Clock, Machine, Point};
use super::statistics::Sample;
use super::transport::Kind;
use crate::Failure;
use crate::progress::Progress;

/// Processors that others may keep busy.
const BUSY_MAX: f64 = 0.15;

/// What every sweep is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// URLs.
    pub(crate) devices: Vec<String>,
    /// Sizes of messages, or numbers of VIs.
    pub(crate) sizes: Vec<usize>,
    /// Also transports that sleep.
    pub(crate) blocking: bool,
    /// Also what devices are compared with.
    pub(crate) references: bool,
    /// Fewer and shorter turns.
    pub(crate) quick: bool,
    /// Reports however busy the machine is.
    pub(crate) anyway: bool,
}

impl Options {
    fn turns(&self) -> usize {
        if self.quick { 3 } else { 15 }
    }

    /// How long a turn of one transport is, in nanoseconds.
    fn turn_time(&self) -> f64 {
        if self.quick { 1e6 } else { 10e6 }
    }

    /// Devices with a clock of their own, and others.
    fn is_simulated(device: &str) -> bool {
        device.starts_with("sim:")
    }

    fn wall(&self) -> impl Iterator<Item = &String> {
        self.devices.iter().filter(|device| !Self::is_simulated(device))
    }

    fn simulated(&self) -> impl Iterator<Item = &String> {
        self.devices.iter().filter(|device| Self::is_simulated(device))
    }

    /// That none of the devices has a clock of its own.
    fn no_simulated(&self, what: &str) -> Result<(), Failure> {
        match self.simulated().next() {
            Some(device) => {
                Err(format!("{device} is not measured with {what}: leave it out").into())
            }
            None => Ok(()),
        }
    }

    /// The transports of a ping-pong or a stream.
    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = Vec::new();
        let both: &[bool] = if self.blocking { &[false, true] } else { &[false] };
        for device in self.wall() {
            let device = || device.clone();
            kinds.extend(both.iter().map(|&blocking| Kind::Vipl { device: device(), blocking }));
        }
        if !self.references {
            return kinds;
        }
        kinds.push(Kind::Ring);
        kinds.extend(both.iter().map(|&blocking| Kind::Unix { blocking }));
        kinds.extend(both.iter().map(|&blocking| Kind::Tcp { blocking }));
        kinds
    }
}

/// Where a point stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    figure: &'a str,
    transport: &'a str,
    x: f64,
    x_unit: &'a str,
    unit: &'a str,
}

/// Whether less of a unit is better.
fn is_time(unit: &str) -> bool {
    matches!(unit, "us" | "cycles/B")
}

/// A sweep while it runs.
struct Sweep<'a> {
    options: &'a Options,
    progress: Progress,
    load: Load,
    /// Times of a cache line.
    lines: Vec<f64>,
    points: Vec<Point>,
}

/// Two processes, each of which must have a processor, unless any result will do.
fn processes(options: &Options) -> Result<Processes, Failure> {
    let processes = Processes::start()?;
    if !processes.are_apart && !options.anyway {
        return Err("two processors are needed, one for each process (or say --anyway)".into());
    }
    Ok(processes)
}

impl<'a> Sweep<'a> {
    fn start(options: &'a Options, name: &str) -> Result<Self, Failure> {
        let progress = Progress::default();
        progress.start(name);
        let (lines, points) = (Vec::new(), Vec::new());
        let mut sweep = Self { options, progress, load: Load::start()?, lines, points };
        sweep.line()?;
        Ok(sweep)
    }

    /// Measures what a cache line takes now.
    fn line(&mut self) -> Result<(), Failure> {
        if self.options.wall().next().is_some() {
            let mut processes = processes(self.options)?;
            let line = processes.open(&Kind::Word { blocking: false }, 4)?;
            for _ in 0..5 {
                self.lines.push(processes.one_way(line, 4, 500)?);
            }
        }
        Ok(())
    }

    /// Adds a point of the values of turns, and of those of which p99 is.
    fn point(&mut self, place: Place<'_>, turns: &[f64], singles: &[f64], clock: Clock) {
        let turns = Sample::new(turns.to_vec());
        let part = if is_time(place.unit) { 0.99 } else { 0.01 };
        let p99 = Sample::new(singles.to_vec()).quantile(part);
        let spread = if turns.median() > 0.0 { turns.spread() } else { 0.0 };
        self.points.push(Point {
            figure: place.figure.to_owned(),
            transport: place.transport.to_owned(),
            x: place.x,
            x_unit: place.x_unit.to_owned(),
            median: turns.median(),
            p99,
            spread,
            unit: place.unit.to_owned(),
            clock,
            samples: turns.len(),
            machine: Machine::default(),
        });
    }

    /// The points, with what the machine did meanwhile.
    fn end(mut self) -> Result<Vec<Point>, Failure> {
        self.line()?;
        let others_busy = self.load.of_others()?;
        let is_wall = self.options.wall().next().is_some();
        if is_wall && others_busy > BUSY_MAX && !self.options.anyway {
            return Err(format!(
                "other programs kept {others_busy:.2} processors busy meanwhile: end them, or say \
                 --anyway"
            )
            .into());
        }
        let (cpu, processors) = (machine::cpu(), machine::processors());
        let line_ns = Sample::new(self.lines).median();
        let machine = Machine { cpu, processors, line_ns, others_busy };
        for point in &mut self.points {
            point.machine = match point.clock {
                Clock::Wall => machine.clone(),
                Clock::Simulated => simulated::machine(),
            };
        }
        Ok(self.points)
    }
}

/// A size as an axis has it.
fn axis(size: usize) -> f64 {
    size as f64
}

/// A count of rounds that take about so long, within bounds.
fn rounds(time: f64, each: f64, (least, most): (u32, u32)) -> u32 {
    let wanted = (time / each.max(1.0)).clamp(f64::from(least), f64::from(most));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in bounds")]
    let wanted = wanted as u32;
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_keep_to_their_bounds() {
        assert_eq!(rounds(1e6, 1e3, (1, 5_000)), 1_000);
        assert_eq!(rounds(1e6, 0.0, (1, 5_000)), 5_000);
        assert_eq!(rounds(1e6, 1e9, (16, 5_000)), 16);
    }
}
