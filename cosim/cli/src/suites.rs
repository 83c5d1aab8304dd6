//! The co-simulation suites: each runs one seed and says what it saw, or where it failed.

use cosim::lockstep::{Divergence, Settings, Smaller, compare, shrink};
use cosim::simulation::SimulatedDevice;
use std::fs;
use std::path::{Path, PathBuf};

/// Is called with the number of each try.
pub(crate) type EachTry<'a> = &'a mut dyn FnMut(usize);

/// One suite.
pub(crate) struct Suite {
    /// Name, for the filter.
    pub(crate) name: &'static str,
    /// One line.
    pub(crate) about: &'static str,
    /// Whether it needs a build with the Verilated RTL.
    pub(crate) rtl: bool,
    /// Runs a seed; the text says how much was compared. If it fails, the RTL runs again, with waveforms of where
    /// it fails into `PREFIX-a` and `PREFIX-b` (plus [`WAVEFORM`]) if asked for.
    pub(crate) run: fn(seed: u64, prefix: Option<&Path>) -> Result<String, String>,
    /// Looks for a smaller program than that of a seed that fails: see [`shrink`]. Its waveforms go
    /// where `run` puts those of the whole one.
    pub(crate) shrink: fn(seed: u64, prefix: Option<&Path>, each: EachTry<'_>) -> Option<Smaller>,
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
            compare(&Settings::new(seed, 0.0), model, model)
                .map(|records| format!("{records} records"))
                .map_err(|divergence| divergence.to_string())
        },
        shrink: |seed, _, each| shrink(&Settings::new(seed, 0.0), model, model, each),
    },
    Suite {
        name: "lockstep",
        about: "random programs on model and RTL: memory, statuses, events, frames",
        rtl: true,
        run: |seed, prefix| lockstep(seed, false, 0.0, prefix),
        shrink: |seed, prefix, each| shrink_lockstep(seed, false, 0.0, prefix, each),
    },
    Suite {
        name: "lockstep-host",
        about: "the same, with a slow host that splits and reorders completions",
        rtl: true,
        run: |seed, prefix| lockstep(seed, true, 0.0, prefix),
        shrink: |seed, prefix, each| shrink_lockstep(seed, true, 0.0, prefix, each),
    },
    Suite {
        name: "lockstep-lossy",
        about: "slow hosts, with 3 % of frames lost and 3 % corrupted, on reliable VIs",
        rtl: true,
        run: |seed, prefix| lockstep(seed, true, 0.03, prefix),
        shrink: |seed, prefix, each| shrink_lockstep(seed, true, 0.03, prefix, each),
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

/// Runs a seed on the model and on the RTL.
fn lockstep(
    seed: u64,
    slow_host: bool,
    faults: f64,
    prefix: Option<&Path>,
) -> Result<String, String> {
    if !cfg!(feature = "rtl") {
        return Err(
            "this build has no RTL; `cargo viaduct cosim run` builds one that has it".to_owned()
        );
    }
    match compare(&Settings::new(seed, faults), model, rtl(seed, slow_host, None)) {
        Ok(records) => Ok(format!("{records} records")),
        Err(divergence) => {
            trace(seed, slow_host, &divergence, prefix);
            Err(divergence.to_string())
        }
    }
}

fn shrink_lockstep(
    seed: u64,
    slow_host: bool,
    faults: f64,
    prefix: Option<&Path>,
    each: EachTry<'_>,
) -> Option<Smaller> {
    let smaller = shrink(&Settings::new(seed, faults), model, rtl(seed, slow_host, None), each)?;
    trace(seed, slow_host, &smaller.divergence, prefix);
    Some(smaller)
}

/// Waveforms of where the RTL fails, which a run on it alone takes the same way to.
fn trace(seed: u64, slow_host: bool, divergence: &Divergence, prefix: Option<&Path>) {
    if let Some(prefix) = prefix {
        if let Some(folder) = prefix.parent()
            && let Err(error) = fs::create_dir_all(folder)
        {
            return eprintln!("no waveforms: {}: {error}", folder.display());
        }
        divergence.replay(rtl(seed, slow_host, Some((prefix, divergence.window.start))));
    }
}

/// Builds the RTL of each node, in a host that splits and reorders completions if it is slow, with waveforms that
/// begin in a cycle.
#[cfg(feature = "rtl")]
fn rtl(
    seed: u64,
    slow_host: bool,
    waves: Option<(&Path, u64)>,
) -> impl Fn(usize) -> SimulatedDevice {
    use cosim::root_complex::HostSettings;
    let host = if slow_host { HostSettings::slow(seed) } else { HostSettings::default() };
    move |node: usize| -> SimulatedDevice {
        let seed = host.seed.wrapping_mul(2) + node as u64;
        let mut nic = cosim::rtl::RtlNic::new(HostSettings { seed, ..host.clone() });
        if let Some((prefix, cycle)) = waves {
            let path = waveforms(prefix)[node].clone();
            if let Err(error) = nic.trace_from(cycle, &path) {
                eprintln!("no waveform {}: {error}", path.display());
            }
        }
        Box::new(nic)
    }
}

#[cfg(not(feature = "rtl"))]
fn rtl(_: u64, _slow_host: bool, _: Option<(&Path, u64)>) -> impl Fn(usize) -> SimulatedDevice {
    model
}
