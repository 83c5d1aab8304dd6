//! Long messages, one after the other, as a share of what the ports can carry.

use super::pair::{Form, Pair, Setup};
use super::pins::is_payload;
use super::{Job, Value};
use crate::Failure;
use crate::progress::Progress;
use cosim::probe::{Record, What};
use nic_regs::frame::{BEAT_BYTES, HEADER_BEATS};
use nic_regs::limits::CLOCK_KHZ;

/// Bytes of a message.
pub(crate) const MESSAGE_BYTES: usize = 4096;
/// Largest payload and read request.
const TLP_BYTES: usize = 512;
/// Beats of a TLP's header.
const TLP_HEADER_BEATS: usize = 2;
/// Beats of a frame's CRC.
const CRC_BEATS: usize = 1;

/// Cycles that a message takes at least on the slower of link and host port: its payload, and the
/// headers that the payload needs there.
#[allow(clippy::cast_precision_loss, reason = "beats of a message")]
const fn floor() -> f64 {
    let payload = MESSAGE_BYTES / BEAT_BYTES;
    let link = payload + HEADER_BEATS + CRC_BEATS;
    let host = payload + MESSAGE_BYTES / TLP_BYTES * TLP_HEADER_BEATS;
    if link > host { link as f64 } else { host as f64 }
}

/// Percent of the limit in the slower of the directions.
fn share(
    job: &Job,
    progress: &Progress,
    setup: &Setup,
    senders: &[usize],
) -> Result<(f64, f64), Failure> {
    let count = job.count(128, 12);
    let mut pair = Pair::new(job, progress, setup)?;
    let form = Form::Token;
    for &node in senders {
        for _ in 0..count {
            pair.ends[1 - node].receive(0, MESSAGE_BYTES)?;
        }
    }
    pair.settle()?;
    pair.records();
    for _ in 0..count {
        for &node in senders {
            pair.ends[node].send(0, MESSAGE_BYTES, form)?;
        }
    }
    pair.settle()?;
    let records = pair.records();
    let mut slowest = 0.0_f64;
    for &node in senders {
        pair.check(node, count)?;
        slowest = slowest.max(cycles_a_message(&records[1 - node])?);
    }
    Ok((100.0 * floor() / slowest, slowest))
}

/// Cycles that a message's bytes of payload take on their way to host memory, without the first
/// quarter of the run: until then pipes fill.
#[allow(clippy::cast_precision_loss, reason = "cycles and bytes of a run")]
fn cycles_a_message(records: &[Record]) -> Result<f64, Failure> {
    let writes = records.iter().filter(|record| is_payload(record));
    let writes: Vec<(u64, u64)> = writes
        .filter_map(|record| match record.what {
            What::Write { bytes, .. } => Some((record.last, bytes)),
            _ => None,
        })
        .collect();
    let [first, rest @ .., last] = &writes[writes.len() / 4..] else {
        return Err("too few messages for a rate".into());
    };
    let bytes = rest.iter().map(|write| write.1).sum::<u64>() + last.1;
    Ok((last.0 - first.0) as f64 * MESSAGE_BYTES as f64 / bytes as f64)
}

pub(super) fn all(job: &Job, progress: &Progress) -> Result<Vec<Value>, Failure> {
    let late = Setup { host_latency: u64::from(CLOCK_KHZ) / 2_000, ..Setup::default() };
    let rows: [(&'static str, Setup, &[usize]); 3] = [
        ("stream_4k", Setup::default(), &[0]),
        ("stream_4k_both", Setup::default(), &[0, 1]),
        ("stream_4k_500ns", late, &[0]),
    ];
    let mut values = Vec::new();
    for (name, setup, senders) in rows {
        if !job.wants(name) {
            continue;
        }
        progress.start(name);
        let (percent, cycles) = share(job, progress, &setup, senders)?;
        let note = format!("{cycles:.1} cycles a message, {} at the limit", floor());
        values.push(Value::new(name, percent, note));
    }
    Ok(values)
}
