//! The measurements of `viaduct bench soft`: the software NIC against what the machine can do.
//!
//! Each group opens its transports, and then measures all of them in turn, again and again; a row is
//! the median of the ratios of the turns. So what the machine does meanwhile hits all of them.

use super::load::{BUSY_MAX, Load};
use super::processes::Processes;
use super::statistics::Sample;
use super::transport::Kind;
use super::{Bar, Row, Spec, spec};
use crate::Failure;
use crate::progress::Progress;

/// VIs of the large completion queue.
const MANY: usize = 1024;

const SPECS: [Spec; 12] = [
    spec("shm.lat_over_ring", "ratio", Bar::AtMost(2.0)),
    spec("shm.tcp_over_lat", "ratio", Bar::AtLeast(15.0)),
    spec("clan.provider_over_queue", "ratio", Bar::AtMost(1.25)),
    spec("shm.block_over_futex", "ratio", Bar::AtMost(1.3)),
    spec("shm.bw_over_ring", "ratio", Bar::AtLeast(1.0)),
    spec("shm.bw_over_ring_1m", "ratio", Bar::AtLeast(1.0)),
    spec("shm.bw_over_tcp", "ratio", Bar::AtLeast(3.0)),
    spec("shm.rate_over_ring", "ratio", Bar::AtLeast(0.6)),
    spec("udp.lat_over_raw", "ratio", Bar::AtMost(1.25)),
    spec("udp.bw_over_raw", "ratio", Bar::AtLeast(0.9)),
    spec("cq.scale", "ratio", Bar::AtMost(1.3)),
    spec("shm.idle_vi_kib", "KiB", Bar::AtMost(16.0)),
];

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    /// Part of the names of the rows that are wanted.
    pub(crate) filter: String,
    /// Fewer turns.
    pub(crate) quick: bool,
    /// Reports however busy the machine is.
    pub(crate) anyway: bool,
}

/// A measurement of one turn, in nanoseconds.
type Measure = Box<dyn Fn(&mut Processes) -> Result<f64, Failure>>;

/// A row as a ratio of two of a group's measurements.
struct Ratio {
    name: &'static str,
    over: usize,
    under: usize,
}

struct Group<'a> {
    job: &'a Job,
    progress: &'a Progress,
    processes: Processes,
    names: Vec<String>,
    measures: Vec<Measure>,
    ratios: Vec<Ratio>,
}

impl<'a> Group<'a> {
    fn new(job: &'a Job, progress: &'a Progress) -> Result<Self, Failure> {
        let processes = Processes::start()?;
        if !processes.are_apart {
            return Err("two processors are needed, one for each process".into());
        }
        let (names, measures, ratios) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { job, progress, processes, names, measures, ratios })
    }

    fn latency(&mut self, kind: &Kind, length: usize, rounds: u32) -> Result<usize, Failure> {
        let at = self.processes.open(kind, length)?;
        self.names.push(format!("{kind}, {length} B"));
        self.measures.push(Box::new(move |processes| processes.one_way(at, length, rounds)));
        Ok(self.measures.len() - 1)
    }

    fn stream(
        &mut self,
        kind: &Kind,
        length: usize,
        (count, window): (u32, u32),
    ) -> Result<usize, Failure> {
        let at = self.processes.open(kind, length)?;
        self.names.push(format!("{kind}, {length} B"));
        self.measures.push(Box::new(move |processes| processes.stream(at, length, count, window)));
        Ok(self.measures.len() - 1)
    }

    fn ratio(&mut self, name: &'static str, over: usize, under: usize) {
        self.ratios.push(Ratio { name, over, under });
    }

    /// Measures in turns.
    fn rows(mut self) -> Result<Vec<Row>, Failure> {
        let turns = if self.job.quick { 5 } else { 21 };
        let load = Load::start()?;
        let mut times = vec![Vec::new(); self.measures.len()];
        for turn in 0..turns {
            self.progress.tick(|| format!("turn {turn} of {turns}"));
            for (measure, times) in self.measures.iter().zip(&mut times) {
                times.push(measure(&mut self.processes)?);
            }
        }
        let busy = load.of_others()?;
        if busy > BUSY_MAX && !self.job.anyway {
            return Err(format!(
                "other programs kept {busy:.2} processors busy meanwhile: end them, or say --anyway"
            )
            .into());
        }
        let median = |at: usize| Sample::new(times[at].clone()).median();
        let rows = self.ratios.iter().map(|ratio| {
            let pairs = times[ratio.over].iter().zip(&times[ratio.under]);
            let sample = Sample::new(pairs.map(|(over, under)| over / under).collect());
            let (over, under) = (&self.names[ratio.over], &self.names[ratio.under]);
            let note = format!(
                "{over}: {:.3} us, {under}: {:.3} us; spread {:.0} %, others {busy:.2}",
                median(ratio.over) / 1e3,
                median(ratio.under) / 1e3,
                100.0 * sample.spread(),
            );
            row(ratio.name, sample.median(), note)
        });
        Ok(rows.collect())
    }
}

fn row(name: &'static str, value: f64, note: String) -> Row {
    let spec = SPECS.iter().find(|spec| spec.name == name).unwrap_or_else(|| {
        unreachable!("a measurement gives a row without a bar: {name}");
    });
    let ok = Some(spec.bar.holds(value));
    Row { name, value: Some(value), unit: spec.unit, bar: spec.bar, ok, note }
}

fn shm(blocking: bool) -> Kind {
    Kind::Vipl { device: "shm:".to_owned(), blocking }
}

type Rows = fn(&Job, &Progress) -> Result<Vec<Row>, Failure>;

/// Groups with the rows that they give.
const GROUPS: [(&[&str], Rows); 8] = [
    (&["shm.lat_over_ring", "shm.tcp_over_lat", "clan.provider_over_queue"], latency),
    (&["shm.block_over_futex"], blocking),
    (&["shm.bw_over_ring", "shm.bw_over_tcp"], bandwidth),
    (&["shm.bw_over_ring_1m"], bandwidth_large),
    (&["shm.rate_over_ring"], rate),
    (&["udp.lat_over_raw"], udp_latency),
    (&["udp.bw_over_raw"], udp_bandwidth),
    (&["cq.scale", "shm.idle_vi_kib"], completion_queue),
];

/// Measures the rows whose names contain the filter.
pub(crate) fn measure(job: &Job) -> Result<Vec<Row>, Failure> {
    let wants = |name: &str| name.contains(&job.filter);
    if !SPECS.iter().any(|spec| wants(spec.name)) {
        let names: Vec<_> = SPECS.iter().map(|spec| spec.name).collect();
        return Err(format!("no row contains '{}': {}", job.filter, names.join(", ")).into());
    }
    let progress = Progress::default();
    let mut rows = Vec::new();
    for (names, measure) in GROUPS {
        if names.iter().any(|name| wants(name)) {
            progress.start(names[0]);
            let all = measure(job, &progress)?;
            rows.extend(all.into_iter().filter(|row| wants(row.name)));
        }
    }
    Ok(rows)
}

fn latency(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(job, progress)?;
    let vipl = group.latency(&shm(false), 4, 20_000)?;
    let ring = group.latency(&Kind::Ring, 4, 20_000)?;
    let queue = group.latency(&Kind::Queue, 4, 20_000)?;
    let tcp = group.latency(&Kind::Tcp { blocking: false }, 4, 2_000)?;
    group.ratio("shm.lat_over_ring", vipl, ring);
    group.ratio("shm.tcp_over_lat", tcp, vipl);
    group.ratio("clan.provider_over_queue", vipl, queue);
    group.rows()
}

fn blocking(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(job, progress)?;
    let vipl = group.latency(&shm(true), 4, 2_000)?;
    let futex = group.latency(&Kind::Word { blocking: true }, 4, 2_000)?;
    group.ratio("shm.block_over_futex", vipl, futex);
    group.rows()
}

fn bandwidth(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(job, progress)?;
    const LENGTH: usize = 32 << 10;
    let vipl = group.stream(&shm(false), LENGTH, (2_048, 32))?;
    let ring = group.stream(&Kind::Ring, LENGTH, (2_048, 32))?;
    let tcp = group.stream(&Kind::Tcp { blocking: false }, LENGTH, (1_024, 32))?;
    // Times of a message: the ratio of bandwidths is the other way round.
    group.ratio("shm.bw_over_ring", ring, vipl);
    group.ratio("shm.bw_over_tcp", tcp, vipl);
    group.rows()
}

fn bandwidth_large(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(job, progress)?;
    const LENGTH: usize = 1 << 20;
    let vipl = group.stream(&shm(false), LENGTH, (64, 4))?;
    let ring = group.stream(&Kind::Ring, LENGTH, (64, 4))?;
    group.ratio("shm.bw_over_ring_1m", ring, vipl);
    group.rows()
}

fn rate(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(job, progress)?;
    let vipl = group.stream(&shm(false), 64, (65_536, 32))?;
    let ring = group.stream(&Kind::Ring, 64, (65_536, 32))?;
    group.ratio("shm.rate_over_ring", ring, vipl);
    group.rows()
}

fn udp() -> Kind {
    Kind::Vipl { device: "udp:".to_owned(), blocking: false }
}

fn udp_latency(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(job, progress)?;
    let vipl = group.latency(&udp(), 4, 2_000)?;
    let raw = group.latency(&Kind::Udp, 4, 2_000)?;
    group.ratio("udp.lat_over_raw", vipl, raw);
    group.rows()
}

/// Datagrams of the same size, one for each message, of which the receiver's socket has room for few.
fn udp_bandwidth(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(job, progress)?;
    const LENGTH: usize = 32 << 10;
    let vipl = group.stream(&udp(), LENGTH, (512, 4))?;
    let raw = group.stream(&Kind::Udp, LENGTH, (512, 4))?;
    group.ratio("udp.bw_over_raw", raw, vipl);
    group.rows()
}

/// Memory of this process and its share of what it has in common with the other one, in KiB.
fn memory() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no Pss in smaps_rollup")?.parse()?)
}

fn completion_queue(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let device = || "shm:".to_owned();
    let mut group = Group::new(job, progress)?;
    let one = group.latency(&Kind::Cq { device: device(), vis: 1 }, 64, 20_000)?;
    let before = memory()?;
    let many = group.latency(&Kind::Cq { device: device(), vis: MANY }, 64, 20_000)?;
    let each = (memory()? - before) / MANY as f64;
    group.ratio("cq.scale", many, one);
    let mut rows = group.rows()?;
    let note = "of this process, before any message; a buffer of 64 B each way included".to_owned();
    rows.push(row("shm.idle_vi_kib", each, note));
    Ok(rows)
}
