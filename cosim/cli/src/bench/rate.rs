//! How often a message goes through.

use super::pair::{Form, Pair, Setup};
use super::pins::is_status;
use super::{Job, Value};
use crate::Failure;
use crate::progress::Progress;

/// Bytes of a message.
const MESSAGE_BYTES: usize = 8;

/// Cycles a message in a run of `count` messages on each VI, all posted at once.
fn cycles(
    job: &Job,
    progress: &Progress,
    setup: &Setup,
    count: usize,
) -> Result<(f64, Form), Failure> {
    let mut pair = Pair::new(job, progress, setup)?;
    let form = Form::fastest(pair.capabilities());
    let vis = pair.ends[0].vis.len();
    for _ in 0..count {
        for vi in 0..vis {
            pair.ends[1].receive(vi, MESSAGE_BYTES)?;
        }
    }
    pair.settle()?;
    pair.records();
    for _ in 0..count {
        for vi in 0..vis {
            pair.ends[0].send(vi, MESSAGE_BYTES, form)?;
        }
    }
    pair.settle()?;
    pair.check(0, count)?;
    let [_, receiver] = pair.records();
    let done = receiver.iter().filter(|record| is_status(record)).map(|record| record.last);
    Ok((pace(&done.collect::<Vec<_>>())?, form))
}

/// Cycles from one completion to the next, without the first quarter: until then pipes fill.
#[allow(clippy::cast_precision_loss, reason = "cycles of a run")]
fn pace(done: &[u64]) -> Result<f64, Failure> {
    let warm = &done[done.len() / 4..];
    match warm {
        [first, .., last] => Ok((last - first) as f64 / (warm.len() - 1) as f64),
        _ => Err("too few messages for a rate".into()),
    }
}

/// A rate row; the figure with a completion queue stands beside it.
fn row(
    job: &Job,
    progress: &Progress,
    name: &'static str,
    vis: usize,
    count: usize,
) -> Result<Vec<Value>, Failure> {
    let setup = Setup { vis, ..Setup::default() };
    let (plain, form) = cycles(job, progress, &setup, count)?;
    let queued = Setup { completion_queue: true, ..setup };
    let (queued, _) = cycles(job, progress, &queued, count)?;
    let note = format!("by {} doorbell; {queued:.2} with one completion queue", form.name());
    Ok(vec![Value::new(name, plain, note)])
}

pub(super) fn one_vi(job: &Job, progress: &Progress) -> Result<Vec<Value>, Failure> {
    row(job, progress, "rate_one_vi", 1, job.count(512, 64))
}

pub(super) fn eight_vis(job: &Job, progress: &Progress) -> Result<Vec<Value>, Failure> {
    row(job, progress, "rate_eight_vi", 8, job.count(128, 16))
}

pub(super) fn many_vis(job: &Job, progress: &Progress) -> Result<Vec<Value>, Failure> {
    let count = job.count(4, 1);
    let (eight, form) =
        cycles(job, progress, &Setup { vis: 8, ..Setup::default() }, job.count(128, 16))?;
    let all = Setup { vis: usize::MAX, ..Setup::default() };
    let (many, _) = cycles(job, progress, &all, count)?;
    let note = format!("{many:.2} cycles a message with all VIs, by {} doorbell", form.name());
    Ok(vec![Value::new("many_vis", eight / many, note)])
}
