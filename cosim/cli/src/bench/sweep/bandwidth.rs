//! A stream of messages, with credits in the other direction; or one in each direction.

use super::super::machine;
use super::{
    Clock, Failure, Kind, Options, Place, Point, Sweep, axis, installed, processes, rounds,
    simulated,
};

/// Bytes of messages.
pub(crate) const SIZES: [usize; 8] = [64, 256, 1024, 4096, 16_384, 32_768, 65_536, 262_144];
/// Bytes of a turn, as in section 4.2 of the CLAN paper.
const TOTAL: usize = 10_000_000;
/// Messages under way, as there.
const WINDOW: u32 = 4;
/// Most messages of a turn, so that small ones do not take for ever.
const MOST: u32 = 65_536;
/// Fewest messages of programs that have no turns, which a start would count in otherwise.
const INSTALLED: u32 = 1_000;
/// Longest turn of a slow transport, in nanoseconds.
const LONGEST: f64 = 0.5e9;
/// Largest message where both ends send before they receive: of two, sockets and ring must take all.
pub(crate) const LARGEST_BOTH: usize = 32_768;

/// Measures every size. `both`: each end sends and receives.
pub(crate) fn measure(options: &Options, both: bool) -> Result<Vec<Point>, Failure> {
    let mut sweep = Sweep::start(options, "bandwidth")?;
    let kinds = options.kinds();
    for &size in options.sizes.iter().filter(|_| options.wall().next().is_some()) {
        let fits =
            |kind: &&Kind| matches!(kind, Kind::Vipl { .. }) || !both || size <= LARGEST_BOTH;
        let kinds: Vec<&Kind> =
            kinds.iter().filter(|kind| size > 0 && kind.carries(size)).filter(fits).collect();
        one_size(&mut sweep, size, &kinds, both)?;
        if options.references && size > 0 && !both {
            memcpy(&mut sweep, size);
            let count = messages(options, size)?.max(INSTALLED);
            installed::measure(&mut sweep, installed::Task::Bandwidth, size, count)?;
        }
    }
    if !both {
        for device in options.simulated() {
            simulated::bandwidth(&mut sweep, device)?;
        }
    }
    sweep.end()
}

/// Messages of a turn.
fn messages(options: &Options, size: usize) -> Result<u32, Failure> {
    let all = u32::try_from(TOTAL.div_ceil(size))?.min(MOST);
    Ok(if options.quick { all / 16 } else { all })
}

fn figure(both: bool) -> &'static str {
    if both { "bandwidth_both" } else { "bandwidth" }
}

fn one_size(
    sweep: &mut Sweep<'_>,
    size: usize,
    kinds: &[&Kind],
    both: bool,
) -> Result<(), Failure> {
    struct Turns {
        number: usize,
        count: u32,
        rates: Vec<f64>,
        cycles: Vec<f64>,
    }
    let options = sweep.options;
    let mut processes = processes(options)?;
    let mut transports = Vec::new();
    let all = messages(options, size)?;
    for kind in kinds {
        let number = processes.open(kind, size)?;
        let each = processes.stream(number, size, 4 * WINDOW, WINDOW)?;
        let count = rounds(LONGEST, each, (4 * WINDOW, all.max(4 * WINDOW))) / WINDOW * WINDOW;
        transports.push(Turns { number, count, rates: Vec::new(), cycles: Vec::new() });
    }
    let (streams, clock) = (if both { 2.0 } else { 1.0 }, machine::cycles_a_nanosecond());
    for turn in 0..options.turns() {
        sweep.progress.tick(|| format!("{size} B, turn {turn} of {}", options.turns()));
        for of in &mut transports {
            let time = if both {
                processes.both(of.number, size, of.count, WINDOW)?
            } else {
                processes.stream(of.number, size, of.count, WINDOW)?
            };
            of.rates.push(1e3 * streams * axis(size) / time);
            let bytes = streams * axis(size) * f64::from(of.count);
            of.cycles.extend(clock.map(|clock| processes.processor_time * clock / bytes));
        }
    }
    for (of, kind) in transports.iter().zip(kinds) {
        let (transport, x, x_unit) = (&*kind.to_string(), axis(size), "B");
        let place = Place { figure: figure(both), transport, x, x_unit, unit: "MB/s" };
        sweep.point(place, &of.rates, &of.rates, Clock::Wall);
        if !of.cycles.is_empty() {
            let place = Place { figure: "cycles_per_byte", unit: "cycles/B", ..place };
            sweep.point(place, &of.cycles, &of.cycles, Clock::Wall);
        }
    }
    Ok(())
}

/// Copies within one process, for comparison.
fn memcpy(sweep: &mut Sweep<'_>, size: usize) {
    let copies = rounds(2e6, axis(size) / 50.0, (4, 10_000));
    let turns = 0..sweep.options.turns();
    let rates: Vec<f64> = turns.map(|_| 1e3 * axis(size) / machine::memcpy(size, copies)).collect();
    let (transport, x, x_unit) = ("memcpy", axis(size), "B");
    let place = Place { figure: "bandwidth", transport, x, x_unit, unit: "MB/s" };
    sweep.point(place, &rates, &rates, Clock::Wall);
}
