//! What the demo prints at its end.

use std::sync::Mutex;
use std::time::Duration;

use super::transfer::Outcome;
use super::{DeviceKind, Drivers, Failure};
use host_driver::sync::lock;
use nic_model::link::{Side, Wire};
use nic_regs::counter::Counter;
use nic_regs::csr::{self, Stamp};
use nic_regs::limits::{CLOCK_KHZ, LINK_PAYLOAD_BYTES};

/// What is known of a run.
pub(crate) struct Run<'a> {
    /// What the NICs are.
    pub(crate) device: DeviceKind,
    /// Sender and receiver.
    pub(crate) drivers: &'a Drivers,
    /// The wire.
    pub(crate) wire: &'a Mutex<Wire>,
    /// Of the transfer.
    pub(crate) outcome: &'a Outcome,
    /// Bytes of the file.
    pub(crate) bytes: usize,
    /// Bytes of a message.
    pub(crate) message_bytes: usize,
    /// Cycles of the run after bring-up, connection and end included.
    pub(crate) cycles: u64,
    /// Wall time of the same.
    pub(crate) wall: Duration,
}

/// Beats that a message of `bytes` takes on the link: payload, 3 header beats and a CRC beat a
/// frame.
fn link_beats(bytes: usize) -> usize {
    let frames = bytes.div_ceil(LINK_PAYLOAD_BYTES).max(1);
    bytes.div_ceil(8) + 4 * frames
}

/// Beats that the host port of the receiver needs: 2 header beats for each 512 bytes, and 3 for the
/// status.
fn host_beats(bytes: usize) -> usize {
    bytes.div_ceil(8) + 2 * bytes.div_ceil(512) + 3
}

/// What there is to say of a run on devices.
#[allow(clippy::cast_precision_loss, reason = "figures for people")]
pub(crate) fn print_devices(outcome: &Outcome, bytes: usize) {
    let (first, last) = outcome.time;
    let seconds = last.saturating_sub(first).max(1) as f64 / 1e9;
    let rate = bytes as f64 / 1e6 / seconds;
    println!("time              {:.1} ms, {rate:.1} MB/s", seconds * 1e3);
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
pub(crate) fn print(run: &Run<'_>) -> Result<(), Failure> {
    let (first, last) = run.outcome.time;
    let cycles = last.saturating_sub(first).max(1) as f64;
    let clock_hz = f64::from(CLOCK_KHZ) * 1000.0;
    let bits_per_cycle = run.bytes as f64 * 8.0 / cycles;
    let message = run.message_bytes.min(run.bytes.max(1));
    let share = |beats: usize| {
        let limit = message as f64 * 8.0 / beats as f64;
        100.0 * bits_per_cycle / limit
    };
    println!(
        "simulated time    {:.1} us ({cycles:.0} cycles of {} MHz)",
        cycles / clock_hz * 1e6,
        CLOCK_KHZ / 1000
    );
    // The model's host port takes any amount in a cycle: it has no limit to compare with.
    let host = match run.device {
        DeviceKind::Rtl => format!(", {:.1} % of the host port's", share(host_beats(message))),
        DeviceKind::Model => String::new(),
    };
    println!(
        "payload           {:.2} Gb/s: {:.1} % of the link's limit{host}",
        bits_per_cycle * clock_hz / 1e9,
        share(link_beats(message)),
    );
    let mut retransmitted = 0;
    for driver in run.drivers {
        retransmitted += driver.counter(Counter::FramesRetransmitted)?;
    }
    println!("retransmissions   {retransmitted} frames");
    for (side, name) in [(Side::A, "a to b"), (Side::B, "b to a")] {
        let faults = lock(run.wire).fault_counts(side);
        if faults.lost + faults.corrupted > 0 {
            println!(
                "link {name}       {} frames, {} lost, {} corrupted",
                faults.frames, faults.lost, faults.corrupted
            );
        }
    }
    stages(run.drivers)?;
    println!(
        "simulation        {:.0} cycles a second of wall time ({} cycles, {:.1} s)",
        run.cycles as f64 / run.wall.as_secs_f64(),
        run.cycles,
        run.wall.as_secs_f64()
    );
    Ok(())
}

const SENDER: [(Stamp, &str); 5] = [
    (Stamp::Doorbell, "doorbell seen"),
    (Stamp::Descriptor, "send descriptor resolved"),
    (Stamp::Data, "payload on the chip"),
    (Stamp::FirstBeatOut, "first beat out"),
    (Stamp::LastBeatOut, "last beat out"),
];
const RECEIVER: [(Stamp, &str); 4] = [
    (Stamp::FirstBeatIn, "first beat in"),
    (Stamp::Matched, "receive descriptor matched"),
    (Stamp::DataWritten, "payload written"),
    (Stamp::StatusWritten, "status written"),
];

/// Cycles between the stages of the first message, on each node's own clock.
fn stages(drivers: &Drivers) -> Result<(), Failure> {
    for (driver, stages, name) in
        [(&drivers[0], &SENDER[..], "sender"), (&drivers[1], &RECEIVER[..], "receiver")]
    {
        let mask = driver.register(csr::SAMPLED::OFFSET)?;
        let mut before = None;
        println!("first message, {name}:");
        for &(stage, text) in stages {
            if mask & (1 << stage as u32) == 0 {
                println!("  {text:<28}  not stamped");
                continue;
            }
            let offset = csr::STAMP0::OFFSET + 4 * stage as u32;
            let stamp = driver.register(offset)?;
            let delta = stamp.wrapping_sub(before.unwrap_or(stamp));
            println!("  {text:<28}  +{delta} cycles");
            before = Some(stamp);
        }
    }
    Ok(())
}
