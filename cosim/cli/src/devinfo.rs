//! `viaduct devinfo`: what a device says of itself.

use crate::Failure;
use clap::Args;
use host_driver::bus::vfio::Sysfs;
use port::PortAttributes;
use serde_json::{Map, Value, json};

/// Show a device: identity, address, limits, features and state.
///
/// A device that a simulator serves is only looked at, and may be another program's. Any other is
/// opened for a moment.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct devinfo                             the default device
  viaduct devinfo sim:model
  viaduct devinfo vfio-user:nics/nic0.sock --json
  viaduct devinfo vfio:03:00.0                a card, also what its link and IOMMU group are

Exit code 0: the device answered, whatever its state.")]
pub(crate) struct Arguments {
    /// URL of the device, as VipOpenNic takes it; without it, the default device.
    #[arg(value_name = "URL", default_value = "", hide_default_value = true)]
    device: String,
    /// Print a JSON object instead of the lines.
    #[arg(long)]
    json: bool,
}

/// The limits of a device, each with its name.
fn limits(attributes: &PortAttributes) -> Vec<(&'static str, u64)> {
    let common = [
        ("vis", attributes.vis),
        ("regions", attributes.regions),
        ("completion_queues", attributes.queues),
        ("completion_queue_entries", attributes.queue_entries),
        ("segments", attributes.segments),
        ("max_transfer", attributes.max_transfer),
        ("native_mtu", attributes.native_mtu),
        ("protection_tags", attributes.tags),
    ];
    let common = common.map(|(name, value)| (name, value.into()));
    common.into_iter().chain(attributes.more.iter().copied()).collect()
}

/// What a device may lack, and whether it has it.
fn features(attributes: &PortAttributes) -> [(&'static str, bool); 4] {
    [
        ("push", attributes.push),
        ("rdma_write", attributes.rdma_write),
        ("rdma_read", attributes.rdma_read),
        ("extensions", attributes.extensions),
    ]
}

fn object<T: Into<Value>>(pairs: impl IntoIterator<Item = (&'static str, T)>) -> Value {
    let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.into()));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// What the kernel says of a card, which is known also while another program has it.
fn facts(device: &str) -> Vec<(&'static str, String)> {
    match device::parse(device) {
        Ok(device::Place::Vfio(address)) => {
            Sysfs::default().find(&address).map(|card| card.facts()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let facts = facts(&arguments.device);
    let device = device::observe(&arguments.device)?;
    let url = match (device.url(), arguments.device.as_str()) {
        (Some(url), _) => url,
        (None, "") => "the default device".to_owned(),
        (None, url) => url.to_owned(),
    };
    let attributes = device.attributes();
    let (state, owner) = (device.state()?, device.owner());
    let bytes = attributes.host_address.iter();
    let address = bytes.map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
    let (limits, features) = (limits(attributes), features(attributes));
    if arguments.json {
        let shown = json!({
            "device": url,
            "name": attributes.name,
            "state": state,
            "owner": owner,
            "abi": attributes.hardware_version,
            "host_address": address,
            "limits": object(limits),
            "features": object(features),
            "card": object(facts),
        });
        println!("{shown}");
        return Ok(());
    }
    let has = features.iter().filter(|(_, has)| *has).map(|(name, _)| *name);
    let mut lines = vec![
        ("name", attributes.name.clone()),
        ("state", state.to_owned()),
        ("abi", attributes.hardware_version.to_string()),
        ("host_address", address),
        ("features", has.collect::<Vec<_>>().join(" ")),
    ];
    lines.extend(facts);
    lines.extend(owner.map(|process| ("used_by", format!("process {process}"))));
    lines.extend(limits.into_iter().map(|(name, value)| (name, value.to_string())));
    println!("{url}");
    for (name, value) in lines {
        println!("  {name:<26}{value}");
    }
    Ok(())
}
