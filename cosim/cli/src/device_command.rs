//! `viaduct device`: the devices that programs can open here.

use crate::Failure;
use clap::{Args, Subcommand};
use device::{Availability, list};
use serde_json::json;

/// The devices that programs can open here.
#[derive(Debug, Subcommand)]
pub(crate) enum Arguments {
    List(ListArguments),
}

/// List the devices that a program can open here, by URL, and why it cannot open others.
///
/// Those of simulators are found in their run-time folder and where VIADUCT_DEVICE says. Looking at
/// them takes them from nobody.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct device list
  viaduct device list --json          one JSON object a line: url, state, note

A state is free, busy (another program has the device), or no (it cannot be opened).")]
pub(crate) struct ListArguments {
    /// Print one JSON object a line instead of the table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments::List(ListArguments { json }) = arguments;
    let devices = list();
    let width = devices.iter().map(|device| device.url.len()).max().unwrap_or(0);
    for device in devices {
        let state = match device.availability {
            Availability::Free => "free",
            Availability::Busy => "busy",
            Availability::Unavailable => "no",
        };
        let (url, note) = (device.url, device.note);
        if *json {
            println!("{}", json!({ "url": url, "state": state, "note": note }));
        } else {
            println!("{url:<width$}  {state:<4}  {note}");
        }
    }
    Ok(())
}
