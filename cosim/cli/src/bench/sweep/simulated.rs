//! `sim:` devices by their own clock: two NICs on a wire without latency, whose hosts answer at once.
//! The times are those at the pins, in cycles of the nominal clock; what a program and its processor
//! add is not in them.

use std::path::PathBuf;

use nic_regs::limits::CLOCK_KHZ;

use super::super::latency::{find, one_message};
use super::super::pair::{Form, Pair, Setup};
use super::super::pins::{is_data_in, is_data_out, is_post, is_status};
use super::super::series::Machine;
use super::super::{Job, Progress};
use super::{Clock, Failure, Place, Sweep, axis};
use crate::demo::DeviceKind;

/// Messages of a size, at different phases of the NICs.
const MESSAGES: u64 = 4;
/// Extra cycles before each message.
const PHASE_STEP: u64 = 7;
/// Microseconds of a cycle.
const CYCLE_US: f64 = 1e3 / CLOCK_KHZ as f64;
/// Most bytes of a stream.
const STREAM_BYTES: usize = 128 << 10;

/// What the points say of their machine: the same wherever they are measured.
pub(super) fn machine() -> Machine {
    let cpu = format!("simulated NICs of {} MHz", CLOCK_KHZ / 1_000);
    Machine { cpu, ..Machine::default() }
}

fn job(device: &str, quick: bool) -> Result<Job, Failure> {
    let device = match device {
        "sim:model" => DeviceKind::Model,
        "sim:rtl" => DeviceKind::Rtl,
        _ => return Err(format!("{device}: say sim:model or sim:rtl").into()),
    };
    Ok(Job { device, quick, synth: PathBuf::new(), filter: String::new() })
}

/// A message from doorbell to status, and the parts before and behind the wire.
pub(super) fn latency(sweep: &mut Sweep<'_>, device: &str) -> Result<(), Failure> {
    let (job, progress) = (job(device, sweep.options.quick)?, Progress::default());
    progress.start(device);
    let mut pair = Pair::new(&job, &progress, &Setup::default())?;
    let fastest = Form::fastest(pair.capabilities());
    for &size in &sweep.options.sizes {
        let form = if size <= Form::Push.bytes() { fastest } else { Form::Token };
        let mut parts = [const { Vec::new() }; 3];
        for message in 0..MESSAGES {
            pair.simulation.run(PHASE_STEP * message);
            let [sender, receiver] = one_message(&mut pair, form, size)?;
            let post = find(&sender, 0, "doorbell", is_post)?.last;
            let out = find(&sender, post, "frame", is_data_out)?.first;
            let arrived = receiver.iter().rev().find(|record| is_data_in(record));
            let arrived = arrived.ok_or("no frame at the pins")?.last;
            let status = find(&receiver, post, "status write", is_status)?.last;
            let times = [status - post, out - post, status.saturating_sub(arrived)];
            for (part, cycles) in parts.iter_mut().zip(times) {
                part.push(f64::from(u32::try_from(cycles)?) * CYCLE_US);
            }
        }
        for (figure, part) in ["latency", "transmit", "receive"].into_iter().zip(&parts) {
            let (transport, x) = (device, axis(size));
            let place = Place { figure, transport, x, x_unit: "B", unit: "us" };
            sweep.point(place, part, part, Clock::Simulated);
        }
    }
    Ok(())
}

/// A stream of messages whose receives are all posted.
pub(super) fn bandwidth(sweep: &mut Sweep<'_>, device: &str) -> Result<(), Failure> {
    let (job, progress) = (job(device, sweep.options.quick)?, Progress::default());
    progress.start(device);
    for &size in sweep.options.sizes.iter().filter(|size| **size > 0) {
        let count = (STREAM_BYTES / size).clamp(8, if job.quick { 16 } else { 256 });
        let mut pair = Pair::new(&job, &progress, &Setup::default())?;
        for _ in 0..count {
            pair.ends[1].receive(0, size)?;
        }
        pair.settle()?;
        pair.records();
        for _ in 0..count {
            pair.ends[0].send(0, size, Form::Token)?;
        }
        pair.settle()?;
        let [_, receiver] = pair.records();
        pair.check(0, count)?;
        let done: Vec<u64> =
            receiver.iter().filter(|r| is_status(r)).map(|record| record.last).collect();
        // Until the first quarter is there, pipes fill.
        let [first, .., last] = done[done.len() / 4..] else {
            return Err("too few messages for a rate".into());
        };
        let messages = done.len() - done.len() / 4 - 1;
        let time = f64::from(u32::try_from(last - first)?) * CYCLE_US;
        let rate = [axis(messages * size) / time];
        let place = Place {
            figure: "bandwidth",
            transport: device,
            x: axis(size),
            x_unit: "B",
            unit: "MB/s",
        };
        sweep.point(place, &rate, &rate, Clock::Simulated);
    }
    Ok(())
}
