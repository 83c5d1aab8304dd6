//! The measurements of `viaduct bench soft`: the software NIC against what the machine can do.

use super::group::{self, Group, Job, Named, row};
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

fn shm(blocking: bool) -> Kind {
    Kind::Vipl { device: "shm:".to_owned(), blocking }
}

/// Groups with the rows that they give.
const GROUPS: [Named; 8] = [
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
    group::measure(&SPECS, &GROUPS, job)
}

fn latency(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(&SPECS, job, progress)?;
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
    let mut group = Group::new(&SPECS, job, progress)?;
    let vipl = group.latency(&shm(true), 4, 2_000)?;
    let futex = group.latency(&Kind::Word { blocking: true }, 4, 2_000)?;
    group.ratio("shm.block_over_futex", vipl, futex);
    group.rows()
}

fn bandwidth(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(&SPECS, job, progress)?;
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
    let mut group = Group::new(&SPECS, job, progress)?;
    const LENGTH: usize = 1 << 20;
    let vipl = group.stream(&shm(false), LENGTH, (64, 4))?;
    let ring = group.stream(&Kind::Ring, LENGTH, (64, 4))?;
    group.ratio("shm.bw_over_ring_1m", ring, vipl);
    group.rows()
}

fn rate(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(&SPECS, job, progress)?;
    let vipl = group.stream(&shm(false), 64, (65_536, 32))?;
    let ring = group.stream(&Kind::Ring, 64, (65_536, 32))?;
    group.ratio("shm.rate_over_ring", ring, vipl);
    group.rows()
}

fn udp() -> Kind {
    Kind::Vipl { device: "udp:".to_owned(), blocking: false }
}

fn udp_latency(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(&SPECS, job, progress)?;
    let vipl = group.latency(&udp(), 4, 2_000)?;
    let raw = group.latency(&Kind::Udp, 4, 2_000)?;
    group.ratio("udp.lat_over_raw", vipl, raw);
    group.rows()
}

/// Datagrams of the same size, one for each message, of which the receiver's socket has room for few.
fn udp_bandwidth(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(&SPECS, job, progress)?;
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
    let mut group = Group::new(&SPECS, job, progress)?;
    let one = group.latency(&Kind::Cq { device: device(), vis: 1 }, 64, 20_000)?;
    let before = memory()?;
    let many = group.latency(&Kind::Cq { device: device(), vis: MANY }, 64, 20_000)?;
    let each = (memory()? - before) / MANY as f64;
    group.ratio("cq.scale", many, one);
    let mut rows = group.rows()?;
    let note = "of this process, before any message; a buffer of 64 B each way included".to_owned();
    rows.push(row(&SPECS, "shm.idle_vi_kib", each, note));
    Ok(rows)
}
