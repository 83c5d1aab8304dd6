//! Streams of SOVIA, with the policies of the papers, beside VIPL on the same device and TCP (SOVIA, Figure 9
//! and Table I; Stream Sockets, Figures 3 to 7 and Table 1).

use super::super::file;
use super::bandwidth::{self, Form, LARGEST_BOTH};
use super::threads::{self, Task};
use super::{Clock, Failure, Kind, Options, Place, Point, Sweep, axis, latency, processes};

/// Bytes of messages. Table 1 of Stream Sockets has 4 and 50,000.
pub(crate) const SIZES: [usize; 8] = [4, 64, 256, 1024, 4096, 16_384, 32_768, 50_000];
/// Largest message there and back, and smallest of a stream.
const LATENCY_MOST: usize = 32 << 10;
const STREAM_LEAST: usize = 64;
/// Files of SOVIA's Table I, in bytes, and how many of them a program reads and sends at once.
pub(crate) const FILES: [u32; 2] = [19_090_223, 145_864_380];
const BLOCK: usize = 32 << 10;
/// Messages of VIPL under way, which has no flow control of its own.
const VIPL_WINDOW: u32 = 32;
/// Message of several threads.
const THREADS_SIZES: [usize; 2] = [64, 4096];

/// Without credits of the measurement: a stream has a window itself. The end is answered (SOVIA, 5.1).
fn window(kind: &Kind, count: u32) -> u32 {
    if matches!(kind, Kind::Vipl { .. }) { count.min(VIPL_WINDOW) } else { count }
}

const ONE_WAY: Form =
    Form { figure: "stream_bandwidth", cycles: "stream_cycles", both: false, window };
/// Ends that send before they receive need room for what is under way.
const BOTH_WAYS: Form = Form {
    figure: "stream_both",
    cycles: "stream_both_cycles",
    both: true,
    window: |_, count| count.min(4),
};

/// Streams with these policies on each device, VIPL before them, and TCP.
fn kinds(options: &Options, blocking: bool, policies: &[&str]) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for device in options.wall() {
        kinds.push(Kind::Vipl { device: device.clone(), blocking });
        kinds.extend(policies.iter().map(|&policy| {
            // A thread that handles packets would keep its processor from all others if it polled.
            let (device, policy) = (device.clone(), policy.to_owned());
            let blocking = blocking || policy == "HANDLER";
            Kind::Sovia { device, policy, blocking }
        }));
    }
    kinds.extend(options.references.then_some(Kind::Tcp { blocking }));
    kinds
}

/// Measures everything.
///
/// # Errors
/// A simulated device, whose clock no stream has.
pub(crate) fn measure(options: &Options) -> Result<Vec<Point>, Failure> {
    options.no_simulated("streams")?;
    let mut sweep = Sweep::start(options, "streams")?;
    let all = kinds(
        options,
        false,
        &["HANDLER", "SINGLE", "FLOWCTRL", "DACKS", "COMBINE", "STREAM_SOCKETS"],
    );
    let is_handler =
        |kind: &&Kind| matches!(kind, Kind::Sovia { policy, .. } if policy == "HANDLER");
    let sizes = |least: usize, most: usize| {
        options.sizes.iter().copied().filter(move |size| (least..=most).contains(size))
    };
    for size in sizes(1, LATENCY_MOST) {
        latency::one_size(&mut sweep, "stream_latency", size, &all.iter().collect::<Vec<_>>())?;
    }
    let streams: Vec<&Kind> = all.iter().filter(|kind| !is_handler(kind)).collect();
    for size in sizes(STREAM_LEAST, usize::MAX) {
        bandwidth::one_size(&mut sweep, &ONE_WAY, size, &streams)?;
    }
    let both = kinds(options, false, &["DACKS", "STREAM_SOCKETS"]);
    for size in sizes(STREAM_LEAST, LARGEST_BOTH) {
        bandwidth::one_size(&mut sweep, &BOTH_WAYS, size, &both.iter().collect::<Vec<_>>())?;
    }
    let several = kinds(options, true, &["STREAM_SOCKETS"]);
    for size in sizes(1, LATENCY_MOST).filter(|size| THREADS_SIZES.contains(size)) {
        let figure = ("stream_threads", "round trips/s");
        for count in threads::COUNTS {
            let kinds: Vec<&Kind> = several.iter().collect();
            threads::one(&mut sweep, figure, Task::PingPong, (size, count), &kinds)?;
        }
    }
    let copies = kinds(options, false, &["DACKS"]);
    let copies: Vec<&Kind> =
        copies.iter().filter(|kind| !matches!(kind, Kind::Vipl { .. })).collect();
    for &bytes in FILES.iter().filter(|_| options.sizes.contains(&BLOCK)) {
        one_file(&mut sweep, bytes, &copies)?;
    }
    sweep.end()
}

/// A file from a program to another one, both in memory, beside a copy within one program.
fn one_file(sweep: &mut Sweep<'_>, bytes: u32, kinds: &[&Kind]) -> Result<(), Failure> {
    let options = sweep.options;
    let (mut processes, source) = (processes(options)?, file::source(bytes)?);
    let mut rates = vec![Vec::new(); kinds.len() + 1];
    for kind in kinds {
        processes.open(kind, BLOCK)?;
    }
    let rate = |time: f64| 1e3 * f64::from(bytes) / time;
    let turns = options.turns().min(5);
    for turn in 0..turns {
        sweep.progress.tick(|| format!("a file of {bytes} B, turn {turn} of {turns}"));
        for (number, rates) in rates[..kinds.len()].iter_mut().enumerate() {
            rates.push(rate(processes.copy(number, &source, (BLOCK, bytes))?));
        }
        rates[kinds.len()].push(rate(file::local(&source, BLOCK, bytes)?));
    }
    let names = kinds.iter().map(ToString::to_string).chain(["local copy".to_owned()]);
    for (transport, rates) in names.zip(&rates) {
        let (x, x_unit, unit) = (axis(usize::try_from(bytes)?), "B", "MB/s");
        let place = Place { figure: "file_copy", transport: &transport, x, x_unit, unit };
        sweep.point(place, rates, rates, Clock::Wall);
    }
    Ok(())
}
