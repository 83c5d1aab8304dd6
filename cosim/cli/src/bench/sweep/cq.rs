//! A server with many VIs on a completion queue, and requests on VIs by chance, of which each VI has at
//! most one under way (CLAN paper, section 4.3). Beside it a server of as many connections directly on
//! `ClanPort`, which the paper has too.

use super::{Clock, Failure, Kind, Options, Place, Point, Sweep, axis, processes, rounds};

/// Numbers of VIs.
pub(crate) const SIZES: [usize; 6] = [1, 4, 16, 64, 256, 1024];
/// Bytes of a request and of its answer.
const LENGTH: usize = 40;
/// VIs of the sweep over offered loads, at most.
const LOAD_VIS: usize = 64;
/// Offered loads, as parts of what the server does at most.
const LOADS: [f64; 8] = [0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.25, 1.5];

/// Measures every number of VIs, and then offered loads.
pub(crate) fn measure(options: &Options) -> Result<Vec<Point>, Failure> {
    let mut sweep = Sweep::start(options, "cq")?;
    if options.wall().next().is_some() {
        for &vis in options.sizes.iter().filter(|vis| **vis > 0) {
            many(&mut sweep, &kinds(options, vis), vis)?;
        }
        let most = options.sizes.iter().copied().max().unwrap_or(0).clamp(1, LOAD_VIS);
        for kind in kinds(options, most) {
            loads(&mut sweep, &kind, most)?;
        }
    }
    sweep.end()
}

/// Servers with so many VIs, or connections.
fn kinds(options: &Options, vis: usize) -> Vec<Kind> {
    let devices = options.wall().map(|device| Kind::Cq { device: device.clone(), vis });
    let has_clan = options.references && options.wall().any(|device| device.starts_with("shm:"));
    devices.chain(has_clan.then_some(Kind::Clan { connections: vis })).collect()
}

/// The device or the reference: the number of VIs is on the axis.
fn name(kind: &Kind) -> String {
    match kind {
        Kind::Cq { device, .. } => format!("cq {device}"),
        Kind::Clan { .. } => "clan".to_owned(),
        other => other.to_string(),
    }
}

fn many(sweep: &mut Sweep<'_>, kinds: &[Kind], vis: usize) -> Result<(), Failure> {
    struct Turns {
        number: usize,
        /// Times of a request alone, and with the others under way, as first measured.
        alone: f64,
        each: f64,
        times: Vec<f64>,
        rates: Vec<f64>,
    }
    let options = sweep.options;
    let mut processes = processes(options)?;
    let mut transports = Vec::new();
    let outstanding = u32::try_from(vis)?;
    for kind in kinds {
        let number = processes.open(kind, LENGTH)?;
        let alone = 2.0 * processes.one_way(number, LENGTH, 16)?;
        let each = processes.requests(number, LENGTH, 4 * outstanding, outstanding)?;
        let (times, rates) = (Vec::new(), Vec::new());
        transports.push(Turns { number, alone, each, times, rates });
    }
    for turn in 0..options.turns() {
        sweep.progress.tick(|| format!("{vis} VIs, turn {turn} of {}", options.turns()));
        for of in &mut transports {
            let count = rounds(options.turn_time(), of.alone, (16, 20_000));
            of.times.push(processes.one_way(of.number, LENGTH, count)? / 1e3);
            let count = rounds(options.turn_time(), of.each, (2 * outstanding, 100_000));
            of.rates.push(1e9 / processes.requests(of.number, LENGTH, count, outstanding)?);
        }
    }
    for (of, kind) in transports.iter().zip(kinds) {
        let singles = rounds(20.0 * options.turn_time(), of.alone, (100, 10_000));
        let singles = processes.one_ways(of.number, LENGTH, singles)?;
        let singles: Vec<f64> = singles.iter().map(|time| time / 1e3).collect();
        let (transport, x, x_unit) = (&*name(kind), axis(vis), "VIs");
        let place = Place { figure: "cq_latency", transport, x, x_unit, unit: "us" };
        sweep.point(place, &of.times, &singles, Clock::Wall);
        let place = Place { figure: "cq_throughput", unit: "requests/s", ..place };
        sweep.point(place, &of.rates, &of.rates, Clock::Wall);
    }
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
