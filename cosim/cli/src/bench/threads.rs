//! One exchange on each of many transports at once, with a thread for each in both processes.
//!
//! Thread `i` of one process has processor `2 i`, its partner in the other process processor `2 i + 1`,
//! of those that there are: so with two processors all threads of a process share one.

use std::sync::Barrier;
use std::time::Instant;

use super::affinity::Allowed;
use super::exchange::{Exchange, nanoseconds};
use super::transport::Transport;
use crate::Failure;

/// Rounds or messages before the time begins, so that both threads of each pair are there: whole
/// windows.
pub(super) const WARM: u32 = 16;

/// The end that measures; the time from the first that begins to the last that ends, in nanoseconds.
pub(super) fn first(
    transports: Vec<&mut dyn Transport>,
    allowed: &Allowed,
    job: Exchange,
) -> Result<f64, Failure> {
    let barrier = Barrier::new(transports.len());
    let times = each(transports, |number, transport| {
        let warm = allowed.pin(2 * number).and_then(|_| job.with_count(WARM).first(transport));
        // Whatever happened: the others wait.
        barrier.wait();
        warm?;
        let start = Instant::now();
        job.first(transport)?;
        Ok((start, Instant::now()))
    })?;
    let start = times.iter().map(|time| time.0).min().ok_or("no thread")?;
    let end = times.iter().map(|time| time.1).max().ok_or("no thread")?;
    Ok(nanoseconds(end - start))
}

/// The other end.
pub(super) fn second(
    transports: &mut [Box<dyn Transport>],
    allowed: &Allowed,
    job: Exchange,
) -> Result<(), Failure> {
    let transports = transports.iter_mut().map(|transport| &mut **transport as _).collect();
    each(transports, |number, transport| {
        allowed.pin(2 * number + 1)?;
        job.with_count(WARM).second(transport)?;
        job.second(transport)
    })?;
    Ok(())
}

/// Runs each transport in a thread of its own, and waits for all.
fn each<T: Send>(
    transports: Vec<&mut dyn Transport>,
    run: impl Fn(usize, &mut dyn Transport) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let run = &run;
    std::thread::scope(|scope| {
        let start = |(number, transport)| {
            // A failure may be of a kind that does not leave its thread.
            scope.spawn(move || run(number, transport).map_err(|why| why.to_string()))
        };
        let threads: Vec<_> = transports.into_iter().enumerate().map(start).collect();
        let ends = threads.into_iter().map(|thread| match thread.join() {
            Ok(end) => end.map_err(Failure::from),
            Err(_) => Err("a thread has panicked".into()),
        });
        ends.collect()
    })
}
