//! Rows that are ratios of two measurements on the same machine in the same minutes.
//!
//! Each group opens its transports, and then measures all of them in turn, again and again; a row is
//! the median of the ratios of the turns. So what the machine does meanwhile hits all of them.

use std::path::Path;

use super::calls::{Calls, How};
use super::exchange::Exchange;
use super::lead::{Lead, Preloaded};
use super::load::{BUSY_MAX, Load};
use super::processes::Processes;
use super::statistics::Sample;
use super::transport::Kind;
use super::{Row, Spec};
use crate::Failure;
use crate::progress::Progress;

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

/// Who measures.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// This process.
    Here,
    /// One of the others.
    Lead(usize),
    /// A program in C.
    Calls(usize),
}

/// A measurement of one turn: by whom, on which of its transports.
#[derive(Clone, Copy, Debug)]
struct Measure {
    place: Place,
    transport: usize,
    exchange: Exchange,
}

/// A row as a ratio of two of a group's measurements, or the largest one of several.
struct Ratio {
    name: &'static str,
    /// Over, and under.
    pairs: Vec<(usize, usize)>,
}

/// A comparison of two of a group's measurements: which one is to take longer.
#[derive(Clone, Debug)]
pub(super) struct Slower {
    pub(super) name: String,
    pub(super) slower: usize,
    pub(super) faster: usize,
}

/// A row that counts which comparisons hold.
struct Order {
    name: &'static str,
    comparisons: Vec<Slower>,
}

pub(super) struct Group<'a> {
    specs: &'a [Spec],
    job: &'a Job,
    progress: &'a Progress,
    processes: Processes,
    leads: Vec<(Preloaded, Lead)>,
    calls: Vec<Calls>,
    names: Vec<String>,
    measures: Vec<Measure>,
    ratios: Vec<Ratio>,
    orders: Vec<Order>,
}

impl<'a> Group<'a> {
    pub(super) fn new(
        specs: &'a [Spec],
        job: &'a Job,
        progress: &'a Progress,
    ) -> Result<Self, Failure> {
        let processes = Processes::start()?;
        if !processes.are_apart {
            return Err("two processors are needed, one for each process".into());
        }
        let (names, measures, ratios) = (Vec::new(), Vec::new(), Vec::new());
        let (leads, calls, orders) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { specs, job, progress, processes, leads, calls, names, measures, ratios, orders })
    }

    pub(super) fn latency(
        &mut self,
        kind: &Kind,
        length: usize,
        rounds: u32,
    ) -> Result<usize, Failure> {
        self.own(kind, Exchange::Pong { length, rounds })
    }

    pub(super) fn stream(
        &mut self,
        kind: &Kind,
        length: usize,
        (count, window): (u32, u32),
    ) -> Result<usize, Failure> {
        self.own(kind, Exchange::Sink { length, count, window })
    }

    fn own(&mut self, kind: &Kind, exchange: Exchange) -> Result<usize, Failure> {
        let transport = self.processes.open(kind, exchange.length())?;
        Ok(self.add(Place::Here, transport, exchange, kind.to_string()))
    }

    /// The same by a pair of processes whose sockets go by `libsovia.so`.
    pub(super) fn preloaded(
        &mut self,
        preloaded: Preloaded,
        kind: &Kind,
        exchange: Exchange,
    ) -> Result<usize, Failure> {
        let known = self.leads.iter().position(|(which, _)| *which == preloaded);
        let at = known.unwrap_or(self.leads.len());
        if known.is_none() {
            let lead = self.processes.unpinned(|| Lead::start(preloaded))?;
            self.leads.push((preloaded, lead));
        }
        let transport = self.leads[at].1.open(kind, exchange.length())?;
        let how = if preloaded == Preloaded::Both { "preloaded" } else { "one end preloaded" };
        Ok(self.add(Place::Lead(at), transport, exchange, format!("{kind}, {how}")))
    }

    /// Null calls of SunRPC by the program in C, so many in a turn.
    pub(super) fn null_call(
        &mut self,
        program: &Path,
        how: How,
        rounds: u32,
    ) -> Result<usize, Failure> {
        let calls = self.processes.unpinned(|| Calls::start(program, how))?;
        self.calls.push(calls);
        let place = Place::Calls(self.calls.len() - 1);
        let exchange = Exchange::Pong { length: 0, rounds };
        Ok(self.add(place, 0, exchange, how.name().to_owned()))
    }

    fn add(&mut self, place: Place, transport: usize, exchange: Exchange, name: String) -> usize {
        self.names.push(format!("{name}, {} B", exchange.length()));
        self.measures.push(Measure { place, transport, exchange });
        self.measures.len() - 1
    }

    fn measure(&mut self, at: usize) -> Result<f64, Failure> {
        let Measure { place, transport, exchange } = self.measures[at];
        match place {
            Place::Here => self.processes.measure(transport, exchange),
            Place::Lead(lead) => self.leads[lead].1.measure(transport, exchange),
            Place::Calls(calls) => self.calls[calls].measure(exchange.count()),
        }
    }

    pub(super) fn ratio(&mut self, name: &'static str, over: usize, under: usize) {
        self.worst(name, &[(over, under)]);
    }

    /// A row whose value is the largest of several ratios, each one measurement over another.
    pub(super) fn worst(&mut self, name: &'static str, pairs: &[(usize, usize)]) {
        self.ratios.push(Ratio { name, pairs: pairs.to_vec() });
    }

    /// A row whose value is the number of comparisons that hold.
    pub(super) fn order(&mut self, name: &'static str, comparisons: Vec<Slower>) {
        self.orders.push(Order { name, comparisons });
    }

    /// Measures in turns.
    pub(super) fn rows(mut self) -> Result<Vec<Row>, Failure> {
        let turns = if self.job.quick { 5 } else { 21 };
        let load = Load::start()?;
        let mut times = vec![Vec::new(); self.measures.len()];
        for turn in 0..turns {
            self.progress.tick(|| format!("turn {turn} of {turns}"));
            for (at, times) in times.iter_mut().enumerate() {
                times.push(self.measure(at)?);
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
            let (mut worst, mut notes) = (f64::NEG_INFINITY, Vec::new());
            for &(over, under) in &ratio.pairs {
                let pairs = times[over].iter().zip(&times[under]);
                let sample = Sample::new(pairs.map(|(over, under)| over / under).collect());
                worst = worst.max(sample.median());
                // Which of several it is can be seen.
                let value = format!("{:.3}: ", sample.median());
                notes.push(format!(
                    "{}{}: {:.3} us, {}: {:.3} us; spread {:.0} %",
                    if ratio.pairs.len() > 1 { &value } else { "" },
                    self.names[over],
                    median(over) / 1e3,
                    self.names[under],
                    median(under) / 1e3,
                    100.0 * sample.spread(),
                ));
            }
            let note = format!("{}, others {busy:.2}", notes.join("; "));
            row(self.specs, ratio.name, worst, note)
        });
        let orders = self.orders.iter().map(|order| {
            let (held, note) = held(&order.comparisons, &times);
            row(self.specs, order.name, held, format!("{note}; others {busy:.2}"))
        });
        Ok(rows.chain(orders).collect())
    }
}

/// How many comparisons hold by the times of the turns, and each with the median of its ratios. One does
/// where most of the turns agree: what hits a few turns changes nothing.
fn held(comparisons: &[Slower], times: &[Vec<f64>]) -> (f64, String) {
    let (mut held, mut notes) = (0.0, Vec::new());
    for Slower { name, slower, faster } in comparisons {
        let pairs = times[*slower].iter().zip(&times[*faster]);
        let ratio = Sample::new(pairs.map(|(slower, faster)| slower / faster).collect()).median();
        held += f64::from(u8::from(ratio > 1.0));
        notes.push(format!("{name} {ratio:.2}{}", if ratio > 1.0 { "" } else { " NOT" }));
    }
    (held, notes.join(", "))
}

/// A row of a table of bars.
pub(super) fn row(specs: &[Spec], name: &'static str, value: f64, note: String) -> Row {
    let spec = specs.iter().find(|spec| spec.name == name).unwrap_or_else(|| {
        unreachable!("a measurement gives a row without a bar: {name}");
    });
    let ok = Some(spec.bar.holds(value));
    Row { name, value: Some(value), unit: spec.unit, bar: spec.bar, ok, note }
}

/// A row that this machine cannot measure, and why.
pub(super) fn missing(specs: &[Spec], name: &'static str, why: &str) -> Row {
    let row = row(specs, name, f64::NAN, why.to_owned());
    Row { value: None, ok: None, ..row }
}

/// Measures a group.
pub(super) type Rows = fn(&Job, &Progress) -> Result<Vec<Row>, Failure>;

/// A group with the rows that it gives.
pub(super) type Named = (&'static [&'static str], Rows);

/// Measures the rows of a table whose names contain the filter.
pub(super) fn measure(specs: &[Spec], groups: &[Named], job: &Job) -> Result<Vec<Row>, Failure> {
    let wants = |name: &str| name.contains(&job.filter);
    if !specs.iter().any(|spec| wants(spec.name)) {
        let names: Vec<_> = specs.iter().map(|spec| spec.name).collect();
        return Err(format!("no row contains '{}': {}", job.filter, names.join(", ")).into());
    }
    let progress = Progress::default();
    let mut rows = Vec::new();
    for (names, measure) in groups {
        if names.iter().any(|name| wants(name)) {
            progress.start(names[0]);
            let all = measure(job, &progress)?;
            rows.extend(all.into_iter().filter(|row| wants(row.name)));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slower(slower: usize, faster: usize) -> Slower {
        Slower { name: format!("{slower} after {faster}"), slower, faster }
    }

    #[test]
    fn a_comparison_holds_where_most_turns_agree() {
        // The last turn was disturbed.
        let times = [vec![2.0, 2.0, 2.0, 9.0], vec![1.0, 1.5, 1.0, 90.0], vec![3.0; 4]];
        let (held, note) = held(&[slower(0, 1), slower(1, 0), slower(2, 1)], &times);
        assert!((held - 2.0).abs() < 1e-9, "{note}");
        assert!(note.contains("0 after 1 2.00,") && note.contains("1 after 0 0.75 NOT"), "{note}");
    }
}
