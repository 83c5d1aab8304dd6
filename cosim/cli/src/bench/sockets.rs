//! The measurements of `viaduct bench sockets`: SOVIA's streams against VIPL and TCP, and calls of
//! `via-rpc` against both.

use sovia::Policy;

use super::calls::{self, How};
use super::exchange::Exchange;
use super::group::{self, Group, Job, Named};
use super::lead::Preloaded;
use super::transport::Kind;
use super::{Bar, Row, Spec, daemons, kills, policies, sovia_cycles, spec};
use crate::Failure;
use crate::progress::Progress;

const SPECS: [Spec; 17] = [
    spec("sovia.over_vipl", "ratio", Bar::AtMost(1.10)),
    spec("sovia.preload_over_vipl", "ratio", Bar::AtMost(1.35)),
    spec("sovia.tcp_over", "ratio", Bar::AtLeast(10.0)),
    spec("sovia.block_over_tcp", "ratio", Bar::AtLeast(1.2)),
    spec("sovia.passive", "ratio", Bar::AtMost(1.03)),
    spec("sovia.bw_over_vipl", "ratio", Bar::AtLeast(0.97)),
    spec("sovia.bw_over_tcp", "ratio", Bar::AtLeast(2.5)),
    spec("sovia.combine", "ratio", Bar::AtLeast(2.0)),
    spec(policies::NAME, "comparisons", Bar::AtLeast(policies::count())),
    spec(sovia_cycles::NAME, "ratio", Bar::AtLeast(0.95)),
    spec(kills::NAME, "rounds", kills::BAR),
    spec(daemons::HTTP, "ratio", Bar::AtLeast(1.3)),
    spec(daemons::FTP, "ratio", Bar::AtLeast(0.95)),
    spec("rpc.direct", "ratio", Bar::AtMost(2.0)),
    spec("rpc.tcp_over", "ratio", Bar::AtLeast(4.0)),
    spec("rpc.null", "ratio", Bar::AtLeast(8.0)),
    spec("rpc.direct_null", "ratio", Bar::AtMost(0.9)),
];

/// Groups with the rows that they give.
const GROUPS: [Named; 11] = [
    (&["sovia.over_vipl", "sovia.preload_over_vipl", "sovia.tcp_over"], latency),
    (&["sovia.block_over_tcp", "sovia.passive"], blocking),
    (&["sovia.bw_over_vipl", "sovia.bw_over_tcp"], bandwidth),
    (&["sovia.combine"], combine),
    (&[policies::NAME], |job, progress| policies::measure(&SPECS, job, progress)),
    (&[sovia_cycles::NAME], |_, progress| sovia_cycles::measure(&SPECS, progress)),
    (&[kills::NAME], |job, progress| kills::measure(&SPECS, job, progress)),
    (&[daemons::HTTP], |job, progress| daemons::http(&SPECS, job, progress)),
    (&[daemons::FTP], |job, progress| daemons::ftp(&SPECS, job, progress)),
    (&["rpc.direct", "rpc.tcp_over"], call),
    (&["rpc.null", "rpc.direct_null"], null_call),
];

/// Measures the rows whose names contain the filter.
pub(crate) fn measure(job: &Job) -> Result<Vec<Row>, Failure> {
    group::measure(&SPECS, &GROUPS, job)
}

fn sovia(policy: &str) -> Kind {
    debug_assert!(Policy::ALL.iter().any(|(name, _)| *name == policy));
    Kind::Sovia { device: "shm:".to_owned(), policy: policy.to_owned(), blocking: false }
}

fn vipl() -> Kind {
    Kind::Vipl { device: "shm:".to_owned(), blocking: false }
}

fn latency(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(&SPECS, job, progress)?;
    let stream = group.latency(&sovia("DACKS"), 4, 20_000)?;
    let vipl = group.latency(&vipl(), 4, 20_000)?;
    let tcp = group.latency(&Kind::Tcp { blocking: false }, 4, 2_000)?;
    let exchange = Exchange::Pong { length: 4, rounds: 20_000 };
    let preload = group.preloaded(Preloaded::Both, &Kind::Tcp { blocking: false }, exchange)?;
    group.ratio("sovia.over_vipl", stream, vipl);
    group.ratio("sovia.preload_over_vipl", preload, vipl);
    group.ratio("sovia.tcp_over", tcp, preload);
    group.rows()
}

fn blocking(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(&SPECS, job, progress)?;
    let (kind, exchange) =
        (Kind::Tcp { blocking: true }, Exchange::Pong { length: 4, rounds: 2_000 });
    let tcp = group.latency(&kind, 4, 2_000)?;
    let preload = group.preloaded(Preloaded::Both, &kind, exchange)?;
    let passive = group.preloaded(Preloaded::One, &kind, exchange)?;
    group.ratio("sovia.block_over_tcp", tcp, preload);
    let mut pairs = vec![(passive, tcp)];
    for length in FILE_ACCESSES {
        let exchange = Exchange::Pong { length, rounds: 5_000 };
        let files = group.latency(&Kind::Scratch, length, 5_000)?;
        pairs.push((group.preloaded(Preloaded::One, &Kind::Scratch, exchange)?, files));
    }
    group.worst("sovia.passive", &pairs);
    group.rows()
}

/// Bytes that are written into a file and read again by a program that has the library, and one without.
const FILE_ACCESSES: [usize; 2] = [4, 4096];

fn bandwidth(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(&SPECS, job, progress)?;
    const LENGTH: usize = 32 << 10;
    let stream = group.stream(&sovia("DACKS"), LENGTH, (2_048, 32))?;
    let vipl = group.stream(&vipl(), LENGTH, (2_048, 32))?;
    let tcp = group.stream(&Kind::Tcp { blocking: false }, LENGTH, (1_024, 32))?;
    let exchange = Exchange::Sink { length: LENGTH, count: 2_048, window: 32 };
    let preload = group.preloaded(Preloaded::Both, &Kind::Tcp { blocking: false }, exchange)?;
    // Times of a message: the ratio of bandwidths is the other way round.
    group.ratio("sovia.bw_over_vipl", vipl, stream);
    group.ratio("sovia.bw_over_tcp", tcp, preload);
    group.rows()
}

fn combine(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(&SPECS, job, progress)?;
    let combined = group.stream(&sovia("COMBINE"), 64, (65_536, 65_536))?;
    let single = group.stream(&sovia("DACKS"), 64, (65_536, 65_536))?;
    group.ratio("sovia.combine", single, combined);
    group.rows()
}

/// A call of 4 bytes that is answered with 4, against as many there and back on a stream.
fn call(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(&SPECS, job, progress)?;
    let rpc = Kind::Rpc { device: "shm:".to_owned(), blocking: false };
    let call = group.latency(&rpc, 4, 20_000)?;
    let stream = group.latency(&sovia("DACKS"), 4, 20_000)?;
    let tcp = group.latency(&Kind::Tcp { blocking: false }, 4, 2_000)?;
    group.ratio("rpc.direct", call, stream);
    group.ratio("rpc.tcp_over", tcp, call);
    group.rows()
}

/// A null call of SunRPC's programs with libtirpc: by TCP, by the same over VIA, and directly by VIA.
fn null_call(job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    const NAMES: [&str; 2] = ["rpc.null", "rpc.direct_null"];
    if let Some(lack) = calls::lack() {
        return Ok(NAMES.map(|name| group::missing(&SPECS, name, &lack)).into());
    }
    let program = calls::program()?;
    let mut group = Group::new(&SPECS, job, progress)?;
    let tcp = group.null_call(&program, How::Tcp, 1_000)?;
    let sovia = group.null_call(&program, How::Sovia, 5_000)?;
    let direct = group.null_call(&program, How::Via, 10_000)?;
    group.ratio(NAMES[0], tcp, sovia);
    group.ratio(NAMES[1], direct, sovia);
    group.rows()
}
