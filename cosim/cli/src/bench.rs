//! The measurements of `viaduct bench hw`; those of `viaduct bench vipl` are in `vipl`, those of
//! `viaduct bench soft` in `soft`, and of `viaduct bench sockets` in `sockets`: both on two `processes`
//! and the `transport`s between them, which those of `viaduct bench anatomy` in `stages` and of
//! `viaduct bench latency` and its like in `sweep` use too.
//!
//! | module | rows |
//! |---|---|
//! | `latency` | push_to_wire, token_to_wire_net, wire_to_* |
//! | `rate` | rate_*, many_vis |
//! | `stream` | stream_* |
//! | `speed` | sim_cycles_per_s |
//! | `fmax` | fmax_ecp5 |
//!
//! Each measurement has a simulation of its own (`pair`), so a figure does not depend on the filter.

mod affinity;
pub(crate) mod anatomy;
mod calls;
mod daemons;
mod exchange;
mod file;
mod fmax;
pub(crate) mod group;
pub(crate) mod kills;
pub(crate) mod latency;
pub(crate) mod lead;
mod load;
mod machine;
mod pair;
mod pins;
mod policies;
pub(crate) mod processes;
mod rate;
pub(crate) mod report;
pub(crate) mod series;
pub(crate) mod sockets;
pub(crate) mod soft;
mod sovia_cycles;
mod speed;
pub(crate) mod stages;
mod stamped;
mod statistics;
mod stream;
pub(crate) mod sweep;
mod threads;
mod transport;
pub(crate) mod vipl;

use crate::Failure;
use crate::demo::DeviceKind;
use crate::progress::Progress;
use std::path::PathBuf;

/// What is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// What the NICs are.
    pub(crate) device: DeviceKind,
    /// Short runs.
    pub(crate) quick: bool,
    /// Folder of the synthesis report.
    pub(crate) synth: PathBuf,
    /// Part of the names of the rows that are wanted.
    pub(crate) filter: String,
}

impl Job {
    /// Whether a row is wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        name.contains(&self.filter)
    }

    /// A count for long runs, and one for short ones.
    fn count(&self, long: usize, short: usize) -> usize {
        if self.quick { short } else { long }
    }
}

/// What a value is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

impl Bar {
    pub(crate) const fn value(self) -> f64 {
        match self {
            Self::AtMost(value) | Self::AtLeast(value) => value,
        }
    }

    pub(crate) fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(bar) => value <= bar,
            Self::AtLeast(bar) => value >= bar,
        }
    }
}

/// A row of the table, before it is measured.
struct Spec {
    name: &'static str,
    unit: &'static str,
    bar: Bar,
}

const fn spec(name: &'static str, unit: &'static str, bar: Bar) -> Spec {
    Spec { name, unit, bar }
}

const SPECS: [Spec; 13] = [
    spec("push_to_wire", "cycles", Bar::AtMost(20.0)),
    spec("token_to_wire_net", "cycles", Bar::AtMost(45.0)),
    spec("wire_to_payload", "cycles", Bar::AtMost(30.0)),
    spec("wire_to_status", "cycles", Bar::AtMost(45.0)),
    spec("wire_to_event", "cycles", Bar::AtMost(60.0)),
    spec("rate_one_vi", "cycles/message", Bar::AtMost(16.0)),
    spec("rate_eight_vi", "cycles/message", Bar::AtMost(12.0)),
    spec("stream_4k", "%", Bar::AtLeast(95.0)),
    spec("stream_4k_both", "%", Bar::AtLeast(90.0)),
    spec("stream_4k_500ns", "%", Bar::AtLeast(95.0)),
    spec("many_vis", "ratio", Bar::AtLeast(0.9)),
    spec("sim_cycles_per_s", "cycles/s", Bar::AtLeast(250_000.0)),
    spec("fmax_ecp5", "MHz", Bar::AtLeast(100.0)),
];

/// What the row of a name is held against.
pub(crate) fn bar_of(name: &str) -> Option<Bar> {
    SPECS.iter().find(|spec| spec.name == name).map(|spec| spec.bar)
}

/// What was measured for one row.
#[derive(Clone, Debug)]
struct Value {
    name: &'static str,
    value: Option<f64>,
    note: String,
}

impl Value {
    fn new(name: &'static str, value: f64, note: impl Into<String>) -> Self {
        Self { name, value: Some(value), note: note.into() }
    }

    /// A row without a value, and why.
    fn none(name: &'static str, why: impl Into<String>) -> Self {
        Self { name, value: None, note: why.into() }
    }
}

/// A row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) value: Option<f64>,
    pub(crate) unit: &'static str,
    pub(crate) bar: Bar,
    /// Whether the bar is held; None where it does not apply.
    pub(crate) ok: Option<bool>,
    pub(crate) note: String,
}

type Measure = fn(&Job, &Progress) -> Result<Vec<Value>, Failure>;

/// Each measurement with the rows that it gives.
const MEASURES: [(&[&str], Measure); 9] = [
    (&["push_to_wire"], latency::push_to_wire),
    (&["token_to_wire_net"], latency::token_to_wire),
    (&["wire_to_payload", "wire_to_status", "wire_to_event"], latency::wire_to_host),
    (&["rate_one_vi"], rate::one_vi),
    (&["rate_eight_vi"], rate::eight_vis),
    (&["stream_4k", "stream_4k_both", "stream_4k_500ns"], stream::all),
    (&["many_vis"], rate::many_vis),
    (&["sim_cycles_per_s"], speed::cycles_per_second),
    (&["fmax_ecp5"], fmax::read),
];

/// Measures the rows that the job wants, in the order of the table.
pub(crate) fn measure(job: &Job) -> Result<Vec<Row>, Failure> {
    if !SPECS.iter().any(|spec| job.wants(spec.name)) && !job.wants("anatomy") {
        let names: Vec<_> = SPECS.iter().map(|spec| spec.name).collect();
        return Err(format!("no row contains '{}': {}", job.filter, names.join(", ")).into());
    }
    let progress = Progress::default();
    let mut rows = Vec::new();
    for (names, measure) in MEASURES {
        if !names.iter().any(|name| job.wants(name)) {
            continue;
        }
        progress.start(names[0]);
        let values = measure(job, &progress)?;
        rows.extend(values.into_iter().filter(|value| job.wants(value.name)).map(|v| row(job, v)));
    }
    Ok(rows)
}

fn row(job: &Job, value: Value) -> Row {
    let Value { name, value, note } = value;
    let spec = SPECS.iter().find(|spec| spec.name == name).unwrap_or_else(|| {
        unreachable!("a measurement gives a row without a bar: {name}");
    });
    // The model's cycles and its speed are not the hardware's.
    let applies = job.device == DeviceKind::Rtl || name == "fmax_ecp5" || value.is_none();
    let ok = applies.then(|| value.is_some_and(|value| spec.bar.holds(value)));
    Row { name, value, unit: spec.unit, bar: spec.bar, ok, note }
}
