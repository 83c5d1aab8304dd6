//! `viaduct device`: the devices that programs can open here, and cards that the kernel gives to them.

use crate::{Failure, devinfo};
use clap::{Args, Subcommand};
use device::{Availability, list};
use host_driver::bus::vfio::{Card, Sysfs};
use serde_json::json;

/// The devices that programs can open here.
#[derive(Debug, Subcommand)]
pub(crate) enum Arguments {
    List(ListArguments),
    Info(devinfo::Arguments),
    Bind(CardArguments),
    /// Give a card back to the kernel.
    Unbind(CardArguments),
}

/// Have the kernel give a card to programs.
///
/// The card, or any function of its IOMMU group, gets the driver vfio-pci until it is given back
/// (`unbind`) or the machine starts anew. Only root may do this.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct device bind 0000:03:00.0    the card at this address, with or without 0000:
  viaduct device bind ''              the only card
  viaduct device unbind 03:00.0       back to the driver that the kernel has for it")]
pub(crate) struct CardArguments {
    /// PCI address, as `viaduct device list` and `lspci -D` show it.
    address: String,
    /// Also a function that is no Viaduct NIC, such as a neighbour in its IOMMU group. Whatever uses
    /// it loses it.
    #[arg(long)]
    any: bool,
}

impl CardArguments {
    fn card(&self) -> Result<Card, Failure> {
        let sysfs = Sysfs::default();
        let found =
            if self.any { sysfs.function(&self.address) } else { sysfs.find(&self.address) };
        Ok(found?)
    }
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
    match arguments {
        Arguments::List(arguments) => show(arguments.json),
        Arguments::Info(arguments) => devinfo::run(arguments)?,
        Arguments::Bind(arguments) => {
            let card = arguments.card()?;
            card.bind()?;
            match card.obstacle() {
                Some(obstacle) => println!("{} is bound; but {obstacle}", card.address),
                None => println!("programs can open vfio:{}", card.address),
            }
        }
        Arguments::Unbind(arguments) => {
            let card = arguments.card()?;
            card.unbind()?;
            let driver = card.driver().unwrap_or_else(|| "no driver".to_owned());
            println!("{} has {driver}", card.address);
        }
    }
    Ok(())
}

fn show(json: bool) {
    let devices = list();
    let width = devices.iter().map(|device| device.url.len()).max().unwrap_or(0);
    for device in devices {
        let state = match device.availability {
            Availability::Free => "free",
            Availability::Busy => "busy",
            Availability::Unavailable => "no",
        };
        let (url, note) = (device.url, device.note);
        if json {
            println!("{}", json!({ "url": url, "state": state, "note": note }));
        } else {
            println!("{url:<width$}  {state:<4}  {note}");
        }
    }
}
