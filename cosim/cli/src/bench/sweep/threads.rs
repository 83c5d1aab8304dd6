//! Several pairs of threads, each with a VI or socket of its own, at the same time: what they do together
//! (Stream Sockets paper, Figures 4 and 11).

use super::{
    Clock, Exchange, Failure, Kind, Options, Place, Point, Sweep, axis, processes, rounds,
};

/// Most pairs.
pub(crate) const MOST: usize = 64;
/// Numbers of threads of the report.
pub(crate) const COUNTS: [usize; 3] = [1, 2, 4];
/// Bytes of messages.
pub(crate) const STREAM_SIZES: [usize; 1] = [32_768];
pub(crate) const PING_PONG_SIZES: [usize; 1] = [64];
/// Bytes of a turn of all threads together.
const TOTAL: f64 = 10e6;
/// Messages under way in each pair.
const WINDOW: u32 = 4;

/// What each pair of threads does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Stream,
    PingPong,
}

impl Task {
    fn exchange(self, length: usize, count: u32) -> Exchange {
        match self {
            Self::Stream => Exchange::Sink { length, count, window: WINDOW },
            Self::PingPong => Exchange::Pong { length, rounds: count },
        }
    }

    const fn figure(self) -> (&'static str, &'static str) {
        match self {
            Self::Stream => ("bandwidth_threads", "MB/s"),
            Self::PingPong => ("round_trips_threads", "round trips/s"),
        }
    }

    /// What so many rounds or messages in so many nanoseconds are, in the unit of the figure.
    fn rate(self, size: usize, count: f64, time: f64) -> f64 {
        match self {
            Self::Stream => 1e3 * axis(size) * count / time,
            Self::PingPong => 1e9 * count / time,
        }
    }
}

/// Measures every number of threads with messages of every size.
///
/// # Errors
/// A simulated device, whose clock no thread has.
pub(crate) fn measure(
    options: &Options,
    threads: &[usize],
    task: Task,
) -> Result<Vec<Point>, Failure> {
    options.no_simulated("several threads")?;
    let mut sweep = Sweep::start(options, "threads")?;
    let kinds = options.kinds();
    for &size in options.sizes.iter().filter(|size| **size > 0 || task == Task::PingPong) {
        let kinds: Vec<&Kind> = kinds.iter().filter(|kind| kind.carries(size)).collect();
        for &threads in threads {
            one(&mut sweep, task.figure(), task, (size, threads), &kinds)?;
        }
    }
    sweep.end()
}

/// Measures so many threads with messages of one size, of all kinds in turn.
pub(super) fn one(
    sweep: &mut Sweep<'_>,
    (figure, unit): (&str, &str),
    task: Task,
    (size, threads): (usize, usize),
    kinds: &[&Kind],
) -> Result<(), Failure> {
    let options = sweep.options;
    let mut processes = processes(options)?;
    let mut transports = Vec::new();
    let pairs = f64::from(u32::try_from(threads)?);
    for kind in kinds {
        let first = processes.open(kind, size)?;
        for _ in 1..threads {
            processes.open(kind, size)?;
        }
        let all = first..first + threads;
        // One round of all, which shows how fast they are where they share processors.
        let least = 4 * WINDOW;
        let time = processes.together(all.clone(), task.exchange(size, least))?;
        let most = match task {
            Task::Stream => TOTAL / axis(size) / pairs,
            Task::PingPong => 20_000.0,
        };
        let count = rounds(10.0 * options.turn_time(), time / f64::from(least), (least, 65_536));
        let count = count.min(rounds(most, 1.0, (least, 65_536))) / WINDOW * WINDOW;
        transports.push((all, count, Vec::new()));
    }
    for turn in 0..options.turns() {
        sweep.progress.tick(|| format!("{threads} threads, turn {turn} of {}", options.turns()));
        for (all, count, rates) in &mut transports {
            let time = processes.together(all.clone(), task.exchange(size, *count))?;
            rates.push(task.rate(size, pairs * f64::from(*count), time));
        }
    }
    for ((_, _, rates), kind) in transports.iter().zip(kinds) {
        let transport = &*format!("{kind}, {}", super::super::series::size(axis(size)));
        let place = Place { figure, transport, x: axis(threads), x_unit: "threads", unit };
        sweep.point(place, rates, rates, Clock::Wall);
    }
    Ok(())
}
