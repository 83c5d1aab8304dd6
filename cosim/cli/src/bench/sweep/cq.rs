//! A server with many VIs on a completion queue, and requests on VIs by chance, of which each VI has at
//! most one under way (CLAN paper, section 4.3).

use super::{Clock, Failure, Kind, Options, Place, Point, Sweep, axis, processes, rounds};

/// Numbers of VIs.
pub(crate) const SIZES: [usize; 6] = [1, 4, 16, 64, 256, 1024];
/// Bytes of a request and of its answer.
const LENGTH: usize = 40;
/// VIs of the sweep over offered loads, at most.
const LOAD_VIS: usize = 64;
/// Requests of the bare queue that are under way at most.
const QUEUED: u32 = 64;
/// Offered loads, as parts of what the server does at most.
const LOADS: [f64; 8] = [0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.25, 1.5];

/// Measures every number of VIs, and then offered loads.
pub(crate) fn measure(options: &Options) -> Result<Vec<Point>, Failure> {
    let mut sweep = Sweep::start(options, "cq")?;
    for device in options.wall() {
        for &vis in options.sizes.iter().filter(|vis| **vis > 0) {
            let kind = Kind::Cq { device: device.clone(), vis };
            many(&mut sweep, &kind, axis(vis), u32::try_from(vis)?)?;
        }
        let most = options.sizes.iter().copied().max().unwrap_or(0).clamp(1, LOAD_VIS);
        loads(&mut sweep, &Kind::Cq { device: device.clone(), vis: most }, most)?;
    }
    if options.references && options.wall().any(|device| device.starts_with("shm:")) {
        many(&mut sweep, &Kind::Queue, 1.0, QUEUED)?;
    }
    sweep.end()
}

/// The device or the queue: the number of VIs is on the axis.
fn name(kind: &Kind) -> String {
    match kind {
        Kind::Cq { device, .. } => format!("cq {device}"),
        other => other.to_string(),
    }
}

fn many(sweep: &mut Sweep<'_>, kind: &Kind, x: f64, outstanding: u32) -> Result<(), Failure> {
    let options = sweep.options;
    let mut processes = processes(options)?;
    let number = processes.open(kind, LENGTH)?;
    let alone = 2.0 * processes.one_way(number, LENGTH, 16)?;
    let each = processes.requests(number, LENGTH, 4 * outstanding, outstanding)?;
    let (mut times, mut rates) = (Vec::new(), Vec::new());
    for turn in 0..options.turns() {
        sweep.progress.tick(|| format!("{kind}, turn {turn} of {}", options.turns()));
        let count = rounds(options.turn_time(), alone, (16, 20_000));
        times.push(processes.one_way(number, LENGTH, count)? / 1e3);
        let count = rounds(options.turn_time(), each, (2 * outstanding, 100_000));
        rates.push(1e9 / processes.requests(number, LENGTH, count, outstanding)?);
    }
    let singles = rounds(20.0 * options.turn_time(), alone, (100, 10_000));
    let singles: Vec<f64> =
        processes.one_ways(number, LENGTH, singles)?.iter().map(|time| time / 1e3).collect();
    let (transport, x_unit) = (&*name(kind), "VIs");
    let place = Place { figure: "cq_latency", transport, x, x_unit, unit: "us" };
    sweep.point(place, &times, &singles, Clock::Wall);
    let place = Place { figure: "cq_throughput", unit: "requests/s", ..place };
    sweep.point(place, &rates, &rates, Clock::Wall);
    Ok(())
}

fn loads(sweep: &mut Sweep<'_>, kind: &Kind, vis: usize) -> Result<(), Failure> {
    let options = sweep.options;
    let mut processes = processes(options)?;
    let number = processes.open(kind, LENGTH)?;
    let most = u32::try_from(vis)?;
    let full = processes.requests(number, LENGTH, 8 * most, most)?;
    let count = rounds(options.turn_time(), full, (4 * most, 100_000));
    let full = processes.requests(number, LENGTH, count, most)?;
    for load in LOADS {
        let interval = full / load;
        let count = rounds(options.turn_time(), interval, (4 * most, 100_000));
        let mut rates = Vec::new();
        for turn in 0..options.turns() {
            sweep.progress.tick(|| format!("load {load}, turn {turn} of {}", options.turns()));
            rates.push(1e9 / processes.offered(number, LENGTH, count, (interval, most))?);
        }
        let (x, x_unit) = (1e9 / interval, "requests/s");
        let transport = &*format!("{}, {vis} VIs", name(kind));
        let place = Place { figure: "cq_load", transport, x, x_unit, unit: "requests/s" };
        sweep.point(place, &rates, &rates, Clock::Wall);
    }
    Ok(())
}
