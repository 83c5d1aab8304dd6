//! One way of a message: half of a round trip.

use super::{
    Clock, Failure, Kind, Options, Place, Point, Sweep, axis, installed, processes, rounds,
    simulated,
};

/// Bytes of messages: those of table 1 of the CLAN paper, a cache line, and more.
pub(crate) const SIZES: [usize; 9] = [0, 4, 40, 64, 256, 1024, 4096, 16_384, 32_768];

/// Rounds by which it is seen how fast a transport is.
const FIRST: u32 = 16;

/// Measures every size.
pub(crate) fn measure(options: &Options) -> Result<Vec<Point>, Failure> {
    let mut sweep = Sweep::start(options, "latency")?;
    let mut kinds = options.kinds();
    if options.references && options.wall().any(|device| device.starts_with("shm:")) {
        kinds.insert(0, Kind::Queue);
    }
    if options.references {
        kinds.extend([Kind::Udp, Kind::Word { blocking: false }]);
        kinds.extend(options.blocking.then_some(Kind::Word { blocking: true }));
    }
    for &size in options.sizes.iter().filter(|_| options.wall().next().is_some()) {
        let kinds: Vec<&Kind> = kinds.iter().filter(|kind| kind.carries(size)).collect();
        one_size(&mut sweep, "latency", size, &kinds)?;
        if options.references {
            let count = if options.quick { 2_000 } else { 10_000 };
            installed::measure(&mut sweep, installed::Task::Latency, size, count)?;
        }
    }
    for device in options.simulated() {
        simulated::latency(&mut sweep, device)?;
    }
    sweep.end()
}

/// Measures one size of all kinds in turn.
pub(super) fn one_size(
    sweep: &mut Sweep<'_>,
    figure: &str,
    size: usize,
    kinds: &[&Kind],
) -> Result<(), Failure> {
    let options = sweep.options;
    let mut processes = processes(options)?;
    let mut transports = Vec::new();
    for kind in kinds {
        let number = processes.open(kind, size)?;
        let each = 2.0 * processes.one_way(number, size, FIRST)?;
        transports.push((number, each, Vec::new()));
    }
    for turn in 0..options.turns() {
        sweep.progress.tick(|| format!("{size} B, turn {turn} of {}", options.turns()));
        for (number, each, times) in &mut transports {
            let rounds = rounds(options.turn_time(), *each, (FIRST, 20_000));
            times.push(processes.one_way(*number, size, rounds)? / 1e3);
        }
    }
    for ((number, each, times), kind) in transports.iter().zip(kinds) {
        let rounds = rounds(20.0 * options.turn_time(), *each, (100, 10_000));
        let singles: Vec<f64> =
            processes.one_ways(*number, size, rounds)?.iter().map(|time| time / 1e3).collect();
        let transport = &kind.to_string();
        let place = Place { figure, transport, x: axis(size), x_unit: "B", unit: "us" };
        sweep.point(place, times, &singles, Clock::Wall);
    }
    Ok(())
}
