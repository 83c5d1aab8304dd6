//! How fast the simulation runs while the NICs are busy.

use super::pair::{Form, Pair, Setup};
use super::stream::MESSAGE_BYTES;
use super::{Job, Value};
use crate::Failure;
use crate::progress::Progress;
use host_driver::bus::Wait;
use nic_regs::doorbell::Queue;
use port::WaitOps;
use std::time::{Duration, Instant};

/// Messages under way in each direction.
const WINDOW: usize = 16;
/// Cycles that each NIC runs on its own thread before the two meet; so long is the wire.
const STRETCH: u64 = 32;
/// Wall time of the measurement.
const WALL: Duration = Duration::from_secs(3);
/// Wall time of a short one.
const QUICK_WALL: Duration = Duration::from_millis(200);

/// Both nodes send and receive 4 KiB messages all the time; the program posts again what is done.
#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
pub(super) fn cycles_per_second(job: &Job, progress: &Progress) -> Result<Vec<Value>, Failure> {
    let setup =
        Setup { probed: false, wire_latency: STRETCH, stretch: STRETCH, ..Setup::default() };
    let mut pair = Pair::new(job, progress, &setup)?;
    for node in 0..2 {
        for _ in 0..2 * WINDOW {
            pair.ends[node].receive(0, MESSAGE_BYTES)?;
        }
    }
    for node in 0..2 {
        for _ in 0..WINDOW {
            pair.ends[node].send(0, MESSAGE_BYTES, Form::Token)?;
        }
    }
    let limit = if job.quick { QUICK_WALL } else { WALL };
    let (wall, start, mut messages) = (Instant::now(), pair.simulation.now(), 0_usize);
    let processor = processor_seconds();
    while wall.elapsed() < limit {
        for node in 0..2 {
            let end = &mut pair.ends[node];
            for _ in 0..end.reap(0, Queue::Recv)? {
                end.receive(0, MESSAGE_BYTES)?;
                messages += 1;
            }
            for _ in 0..end.reap(0, Queue::Send)? {
                end.send(0, MESSAGE_BYTES, Form::Token)?;
            }
        }
        pair.ends[0].port.relax(Wait::bounded("messages", 0));
        progress.tick(|| format!("{messages} messages"));
    }
    let cycles = pair.simulation.now() - start;
    let busy = messages as f64 * MESSAGE_BYTES as f64 / 2.0 / cycles as f64;
    let rate = cycles as f64 / wall.elapsed().as_secs_f64();
    let mut note = format!("while each NIC receives {busy:.2} bytes a cycle");
    if let (Some(before), Some(after)) = (processor, processor_seconds()) {
        let rate = cycles as f64 / (after - before).max(1e-6);
        note.push_str(&format!("; {rate:.0} a second that its thread had a processor"));
    }
    // What is under way ends before the NICs are closed.
    pair.settle()?;
    Ok(vec![Value::new("sim_cycles_per_s", rate.round(), note)])
}

/// Time that this thread had a processor, where the system reports it; it gives the speed on a machine
/// that others use too.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}
