//! What all programs show at one moment, and what was added since the moment before.

use crate::Failure;
use sovia::preload::Process;
use sovia::preload::status::{self, ConnectionStatus, ProcessStatus};
use std::collections::HashMap;
use std::time::{Instant, SystemTime};

/// Bytes a second, of what is sent and what is received.
pub(super) type Rates = [u64; 2];

/// See the module.
#[derive(Debug)]
pub(super) struct Reading {
    at: Instant,
    /// Seconds since 1970.
    pub(super) time: u64,
    /// Those with the most bytes first.
    pub(super) processes: Vec<ProcessStatus>,
    rates: HashMap<(Process, u64), Rates>,
}

fn bytes(connection: &ConnectionStatus) -> u64 {
    connection.sent + connection.received
}

impl Reading {
    /// Reads them now.
    pub(super) fn take(before: Option<&Self>) -> Result<Self, Failure> {
        let folder = status::folder();
        let processes =
            status::living().map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self::new(Instant::now(), processes, before))
    }

    pub(super) fn new(
        at: Instant,
        mut processes: Vec<ProcessStatus>,
        before: Option<&Self>,
    ) -> Self {
        for process in &mut processes {
            process.connections.sort_by_key(|it| (u64::MAX - bytes(it), it.serial));
        }
        let total = |it: &ProcessStatus| it.totals.sent + it.totals.received;
        processes.sort_by_key(|it| (u64::MAX - total(it), it.process.id));
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let time = time.map_or(0, |time| time.as_secs());
        let mut reading = Self { at, time, processes, rates: HashMap::new() };
        reading.rates = before.map(|before| reading.rates_since(before)).unwrap_or_default();
        reading
    }

    fn rates_since(&self, before: &Self) -> HashMap<(Process, u64), Rates> {
        let seconds = self.at.saturating_duration_since(before.at).as_secs_f64();
        let old: HashMap<_, _> =
            before.connections().map(|(process, it)| ((process.process, it.serial), it)).collect();
        let rate = |(process, now): (&ProcessStatus, &ConnectionStatus)| {
            let key = (process.process, now.serial);
            // A connection that was not there has no rate yet, rather than all at once.
            let old = old.get(&key)?;
            let added =
                [now.sent.saturating_sub(old.sent), now.received.saturating_sub(old.received)];
            Some((key, added.map(|bytes| per_second(bytes, seconds))))
        };
        self.connections().filter_map(rate).collect()
    }

    /// All connections, in the order of the processes.
    fn connections(&self) -> impl Iterator<Item = (&ProcessStatus, &ConnectionStatus)> {
        let of = |process| move |connection| (process, connection);
        self.processes.iter().flat_map(move |it| it.connections.iter().map(of(it)))
    }

    /// All connections, those with the most bytes first.
    pub(super) fn sorted(&self) -> Vec<(&ProcessStatus, &ConnectionStatus)> {
        let mut all: Vec<_> = self.connections().collect();
        // Equal ones stay in order.
        all.sort_by_key(|(_, connection)| u64::MAX - bytes(connection));
        all
    }

    /// The rates of a connection that was there before.
    pub(super) fn rates(&self, of: &ProcessStatus, connection: &ConnectionStatus) -> Option<Rates> {
        self.rates.get(&(of.process, connection.serial)).copied()
    }

    /// The sum of all rates; None in the first reading.
    pub(super) fn all_rates(&self) -> Option<Rates> {
        let add = |sum: Rates, rates: &Rates| [sum[0] + rates[0], sum[1] + rates[1]];
        (!self.rates.is_empty()).then(|| self.rates.values().fold([0, 0], add))
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures for people"
)]
fn per_second(bytes: u64, seconds: f64) -> u64 {
    if seconds > 0.0 { (bytes as f64 / seconds) as u64 } else { 0 }
}
