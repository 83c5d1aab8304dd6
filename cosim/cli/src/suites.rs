//! The co-simulation suites: each runs one seed and says what it saw, or where it failed.

use cosim::simulation::SimulatedDevice;
use std::path::{Path, PathBuf};

/// One suite.
pub(crate) struct Suite {
    /// Name, for the filter.
    pub(crate) name: &'static str,
    /// One line.
    pub(crate) about: &'static str,
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

#[cfg(not(feature = "rtl"))]
pub(crate) const SUITES: &[Suite] = &[Suite {
    name: "model",
    about: "random programs on the model twice, with different link delays",
    run: |seed, _| {
        use cosim::lockstep::{Settings, compare};
        let settings = Settings { seed, loss: 0.0, corrupt: 0.0, latency: seed % 100 };
        compare(&settings, model, model)
            .map(|records| format!("{records} records"))
            .map_err(|divergence| divergence.to_string())
    },
}];

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

#[cfg(feature = "rtl")]
pub(crate) use rtl::SUITES;

#[cfg(feature = "rtl")]
mod rtl {
    use super::{Suite, model, waveforms};
    use cosim::lockstep::{Settings, compare};
    use cosim::root_complex::HostSettings;
    use cosim::rtl::RtlNic;
    use nic_model::device::Device;
    use std::path::Path;

    fn lockstep(
        settings: &Settings,
        host: &HostSettings,
        prefix: Option<&Path>,
    ) -> Result<String, String> {
        let rtl = |node: usize| -> SimulatedDevice {
            let seed = host.seed.wrapping_mul(2) + node as u64;
            let mut nic = RtlNic::new(HostSettings { seed, ..host.clone() });
            if let Some(prefix) = prefix {
                let path = waveforms(prefix)[node].clone();
                if let Err(error) = nic.open_trace(&path) {
                    eprintln!("no waveform {}: {error}", path.display());
                }
            }
            Box::new(nic)
        };
        compare(settings, model, rtl)
            .map(|records| format!("{records} records"))
            .map_err(|divergence| divergence.to_string())
    }

    fn host(seed: u64) -> HostSettings {
        HostSettings {
            seed,
            latency: seed % 7 * 40,
            jitter: seed % 5 * 30,
            split: true,
            reorder: true,
            stall: 0.2,
            ..HostSettings::default()
        }
    }

    /// Every suite, in the order of the list.
    pub(crate) const SUITES: &[Suite] = &[
        Suite {
            name: "lockstep",
            about: "random programs on model and RTL: memory, statuses, events, frames",
            run: |seed, prefix| {
                let settings = Settings { seed, loss: 0.0, corrupt: 0.0, latency: seed % 100 };
                lockstep(&settings, &HostSettings::default(), prefix)
            },
        },
        Suite {
            name: "lockstep-host",
            about: "the same, with a slow host that splits and reorders completions",
            run: |seed, prefix| {
                let settings = Settings { seed, loss: 0.0, corrupt: 0.0, latency: seed % 100 };
                lockstep(&settings, &host(seed), prefix)
            },
        },
        Suite {
            name: "lockstep-lossy",
            about: "the same, with 3 % of frames lost and 3 % corrupted, on reliable VIs",
            run: |seed, prefix| {
                let settings = Settings { seed, loss: 0.03, corrupt: 0.03, latency: seed % 100 };
                lockstep(&settings, &host(seed), prefix)
            },
        },
    ];
}
