//! `viaduct stats`: the counters of a device.

use crate::Failure;
use clap::Args;
use device::Observed;
use serde_json::{Map, Value};
use std::time::Duration;

/// Show the counters of a device, by cause.
///
/// The counters of a NIC are those of `nic_regs::counter`, and begin at 0 with each program that
/// opens it. A NIC that a simulator serves is only looked at, while another program uses it. A
/// device of a sim: URL is this command's own, and counts no more than its own bring-up.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct stats vfio-user:nics/nic0.sock
  viaduct stats vfio-user:nics/nic0.sock --watch            what was added, each second
  viaduct stats vfio-user:nics/nic0.sock --watch 0.1 --count 50 --json

With --watch the counters come first, then what was added since; the lines leave out what was not,
the JSON objects have every counter.")]
pub(crate) struct Arguments {
    /// URL of the device, as VipOpenNic takes it; without it, the default device.
    #[arg(value_name = "URL", default_value = "", hide_default_value = true)]
    device: String,
    /// Go on and print differences, each second or as often as this says.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
          value_parser = period)]
    watch: Option<Duration>,
    /// End after so many differences.
    #[arg(long, value_name = "N", requires = "watch")]
    count: Option<u64>,
    /// Print a JSON object for each look instead of the lines.
    #[arg(long)]
    json: bool,
}

/// A time in seconds on the command line.
pub(crate) fn period(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0.0 && *seconds <= 86_400.0);
    seconds.map(Duration::from_secs_f64).ok_or("seconds above 0, for example 0.5".to_owned())
}

type Counters = Vec<(&'static str, u64)>;

fn read(device: &Observed) -> Result<Counters, Failure> {
    counted(&device.attributes().name, device.counters()?)
}

/// The counters of a device that has some.
fn counted(name: &str, counters: Counters) -> Result<Counters, Failure> {
    if counters.is_empty() {
        return Err(format!("the device `{name}` has no counters").into());
    }
    Ok(counters)
}

/// What was added to a counter. One that is lower than before began again with another program, or
/// has wrapped: those of NICs have 32 bits.
fn added(before: u64, now: u64) -> u64 {
    const HALF: u64 = 1 << 31;
    match now.checked_sub(before) {
        Some(added) => added,
        None if (HALF..2 * HALF).contains(&before) && now < HALF => now + 2 * HALF - before,
        None => now,
    }
}

fn print(counters: &Counters, json: bool, all: bool) {
    if json {
        let object = counters.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
        println!("{}", Value::Object(object.collect::<Map<_, _>>()));
        return;
    }
    for (name, value) in counters.iter().filter(|(_, value)| all || *value > 0) {
        println!("{name:<24}{value:>12}");
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let device = device::observe(&arguments.device)?;
    let mut before = read(&device)?;
    print(&before, arguments.json, true);
    let Some(period) = arguments.watch else { return Ok(()) };
    for _ in 0..arguments.count.unwrap_or(u64::MAX) {
        std::thread::sleep(period);
        let now = read(&device)?;
        let pairs = before.iter().zip(&now);
        let changes = pairs.map(|((_, before), (name, now))| (*name, added(*before, *now)));
        let changes = changes.collect();
        if !arguments.json {
            println!("after {} s:", period.as_secs_f64());
        }
        print(&changes, arguments.json, false);
        before = now;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_counters_is_an_error() {
        let error = counted("loopback", Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "the device `loopback` has no counters");
    }

    #[test]
    fn counters_that_wrap_or_begin_again_give_what_was_added() {
        assert_eq!(added(5, 7), 2);
        assert_eq!(added(0xffff_fffe, 3), 5, "wrapped");
        assert_eq!(added(1000, 3), 3, "began again");
        assert_eq!(added(1 << 40, 3), 3, "wider ones do not wrap");
    }
}
