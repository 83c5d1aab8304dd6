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
/// Messages by which it is seen how fast a transport is, and of which a turn has a multiple: whole windows.
const FIRST: u32 = 32;
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
        let of = if both { &BOTH_WAYS } else { &ONE_WAY };
        one_size(&mut sweep, of, size, &kinds)?;
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

/// What is measured of a stream, and how.
pub(super) struct Form {
    /// Figures of the rate and of the cycles a byte.
    pub(super) figure: &'static str,
    pub(super) cycles: &'static str,
    /// Each end sends and receives.
    pub(super) both: bool,
    /// How many of so many messages are under way.
    pub(super) window: fn(&Kind, u32) -> u32,
}

const ONE_WAY: Form =
    Form { figure: "bandwidth", cycles: "cycles_per_byte", both: false, window: |_, _| WINDOW };
const BOTH_WAYS: Form = Form { figure: "bandwidth_both", both: true, ..ONE_WAY };

/// Measures one size of all kinds in turn.
pub(super) fn one_size(
    sweep: &mut Sweep<'_>,
    of: &Form,
    size: usize,
    kinds: &[&Kind],
) -> Result<(), Failure> {
    struct Turns<'a> {
        kind: &'a Kind,
        number: usize,
        count: u32,
        rates: Vec<f64>,
        cycles: Vec<f64>,
    }
    let options = sweep.options;
    let both = of.both;
    let mut processes = processes(options)?;
    let mut transports = Vec::new();
    let all = messages(options, size)?.max(FIRST);
    for &kind in kinds {
        let number = processes.open(kind, size)?;
        let each = processes.stream(number, size, FIRST, (of.window)(kind, FIRST))?;
        let count = rounds(LONGEST, each, (FIRST, all)) / FIRST * FIRST;
        let (rates, cycles) = (Vec::new(), Vec::new());
        transports.push(Turns { kind, number, count, rates, cycles });
    }
    let (streams, clock) = (if both { 2.0 } else { 1.0 }, machine::cycles_a_nanosecond());
    for turn in 0..options.turns() {
        sweep.progress.tick(|| format!("{size} B, turn {turn} of {}", options.turns()));
        for turns in &mut transports {
            let (number, count) = (turns.number, turns.count);
            let window = (of.window)(turns.kind, count);
            let time = if both {
                processes.both(number, size, count, window)?
            } else {
                processes.stream(number, size, count, window)?
            };
            turns.rates.push(1e3 * streams * axis(size) / time);
            let bytes = streams * axis(size) * f64::from(count);
            turns.cycles.extend(clock.map(|clock| processes.processor_time * clock / bytes));
        }
    }
    for turns in &transports {
        let (transport, x, x_unit) = (&*turns.kind.to_string(), axis(size), "B");
        let place = Place { figure: of.figure, transport, x, x_unit, unit: "MB/s" };
        sweep.point(place, &turns.rates, &turns.rates, Clock::Wall);
        if !turns.cycles.is_empty() {
            let place = Place { figure: of.cycles, unit: "cycles/B", ..place };
            sweep.point(place, &turns.cycles, &turns.cycles, Clock::Wall);
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
