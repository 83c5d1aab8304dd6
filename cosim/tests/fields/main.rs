//! A method's test: a device that takes one bit of one field wrongly, of each format that devices share with
//! their hosts and with each other, is found by lockstep.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "offsets in a small memory"
)]

mod device;
mod table;

use cosim::lockstep::{FEATURES, Settings, compare};
use cosim::simulation::SimulatedDevice;
use device::{Fault, Faulty};
use nic_model::Model;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Seeds within which a wrong bit has to be found.
const SEEDS: u64 = 200;

fn right(_node: usize) -> SimulatedDevice {
    Box::new(Model::with_features(FEATURES))
}

/// The first seed that finds a device.
fn found(fault: &Fault) -> Option<u64> {
    let faulty = |_| -> SimulatedDevice { Box::new(Faulty::new(fault.clone())) };
    (0..SEEDS).find(|&seed| compare(&Settings::new(seed, 0.0), right, faulty).is_err())
}

#[test]
fn a_wrong_bit_of_any_field_is_found() {
    let faults = table::faults();
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if found(fault).is_none() {
                        missed.lock().expect("no panic").push(fault.name.clone());
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().expect("no panic");
    assert!(missed.is_empty(), "not found: {missed:#?}");
}
