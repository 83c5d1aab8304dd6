//! The co-simulation suites: each runs one seed and says what it saw, or where it failed.

use cosim::lockstep::{Settings, compare};
use cosim::simulation::SimulatedDevice;
use std::path::{Path, PathBuf};

/// One suite.
pub(crate) struct Suite {
    /// Name, for the filter.
    pub(crate) name: &'static str,
    /// One line.
    pub(crate) about: &'static str,
    /// Whether it needs a build with the Verilated RTL.
    pub(crate) rtl: bool,
    /// Runs a seed, with waveforms of the RTL into `PREFIX-a` and `PREFIX-b` (plus
    /// [`WAVEFORM`]) if asked for; the text says how much was compared.
    pub(crate) run: fn(seed: u64, prefix: Option<&Path>) -> Result<String, String>,
}

/// The ending of the waveforms that this build writes, if it does.
pub(crate) const WAVEFORM: Option<&str> = if cfg!(feature = "fst") {
    Some("fst")
} else if cfg!(feature = "trace") {
    Some("vcd")
} else {
    None
};

/// Every suite, in the order of the list.
pub(crate) const SUITES: &[Suite] = &[
    Suite {
        name: "model",
        about: "random programs on the model twice, with different link delays",
        rtl: false,
        run: |seed, _| {
            let settings = Settings { seed, loss: 0.0, corrupt: 0.0, latency: seed % 100 };
            compare(&settings, model, model)
                .map(|records| format!("{records} records"))
                .map_err(|divergence| divergence.to_string())
        },
    },
    Suite {
        name: "lockstep",
        about: "random programs on model and RTL: memory, statuses, events, frames",
        rtl: true,
        run: |seed, prefix| lockstep(seed, false, 0.0, prefix),
    },
    Suite {
        name: "lockstep-host",
        about: "the same, with a slow host that splits and reorders completions",
        rtl: true,
        run: |seed, prefix| lockstep(seed, true, 0.0, prefix),
    },
    Suite {
        name: "lockstep-lossy",
        about: "the same, with 3 % of frames lost and 3 % corrupted, on reliable VIs",
        rtl: true,
        run: |seed, prefix| lockstep(seed, false, 0.03, prefix),
    },
];

/// The waveforms of both nodes for a prefix.
pub(crate) fn waveforms(prefix: &Path) -> [PathBuf; 2] {
    ["a", "b"].map(|node| {
        let mut name = prefix.as_os_str().to_owned();
        name.push(format!("-{node}.{}", WAVEFORM.unwrap_or("vcd")));
        PathBuf::from(name)
    })
}

// With what the RTL has.
fn model(_node: usize) -> SimulatedDevice {
    Box::new(nic_model::Model::with_features(cosim::lockstep::FEATURES))
}

#[cfg(not(feature = "rtl"))]
fn lockstep(_: u64, _slow_host: bool, _faults: f64, _: Option<&Path>) -> Result<String, String> {
    Err("this build has no RTL; `cargo viaduct cosim run` builds one that has it".to_owned())
}

/// Runs a seed on the model and on the RTL; `faults` is the fraction of frames that are lost, and of
/// those that are corrupted.
#[cfg(feature = "rtl")]
fn lockstep(
    seed: u64,
    slow_host: bool,
    faults: f64,
    prefix: Option<&Path>,
) -> Result<String, String> {
    use cosim::root_complex::HostSettings;
    let settings = Settings { seed, loss: faults, corrupt: faults, latency: seed % 100 };
    let host = if slow_host { host(seed) } else { HostSettings::default() };
    let rtl = |node: usize| -> SimulatedDevice {
        let seed = host.seed.wrapping_mul(2) + node as u64;
        let mut nic = cosim::rtl::RtlNic::new(HostSettings { seed, ..host.clone() });
        if let Some(prefix) = prefix {
            let path = waveforms(prefix)[node].clone();
            if let Err(error) = nic.open_trace(&path) {
                eprintln!("no waveform {}: {error}", path.display());
            }
        }
        Box::new(nic)
    };
    compare(&settings, model, rtl)
        .map(|records| format!("{records} records"))
        .map_err(|divergence| divergence.to_string())
}

#[cfg(feature = "rtl")]
fn host(seed: u64) -> cosim::root_complex::HostSettings {
    cosim::root_complex::HostSettings {
        seed,
        latency: seed % 7 * 40,
        jitter: seed % 5 * 30,
        split: true,
        reorder: true,
        stall: 0.2,
        ..Default::default()
    }
}
