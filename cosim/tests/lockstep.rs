//! Lockstep of the model with itself (the programs do not depend on timing), with a mutant (a
//! difference is found), and, with the feature `rtl`, with the RTL.

use cosim::lockstep::{Settings, compare};
use nic_model::Model;
use nic_model::device::{Device, HostBus, HostReadError, Link};

fn settings(seed: u64) -> Settings {
    Settings { seed, loss: 0.0, corrupt: 0.0, latency: seed % 40 }
}

fn model(_node: usize) -> Box<dyn Device> {
    Box::new(Model::new())
}

/// Forgets the phase of every thousandth 8-byte write.
struct Mutant {
    inner: Model,
}

struct MutantHost<'a> {
    inner: &'a mut dyn HostBus,
}

impl HostBus for MutantHost<'_> {
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        self.inner.read(address, data)
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        let mut data = data.to_vec();
        // A payload of a length that is rare enough to pass for a corner case.
        if data.len() % 8 == 5 {
            data[0] ^= 1;
        }
        self.inner.write(address, &data);
    }
}

impl Device for Mutant {
    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) {
        self.inner.bar_write(bar, offset, data);
    }

    fn bar_read(&mut self, bar: u8, offset: u64, length: usize) {
        self.inner.bar_read(bar, offset, length);
    }

    fn bar_response(&mut self) -> Option<u64> {
        self.inner.bar_response()
    }

    fn step(&mut self, now: u64, host: &mut dyn HostBus, link: &mut dyn Link) {
        self.inner.step(now, &mut MutantHost { inner: host }, link);
    }

    fn busy(&self) -> bool {
        self.inner.busy()
    }
}

#[test]
fn model_agrees_with_itself() {
    for seed in 0..40 {
        let records = compare(&settings(seed), model, model).unwrap_or_else(|d| panic!("{d}"));
        assert!(records > 50, "seed {seed} observes only {records} things");
    }
}

#[test]
fn a_mutant_is_found() {
    let found = (0..40)
        .filter(|&seed| {
            let mutant = |_| -> Box<dyn Device> { Box::new(Mutant { inner: Model::new() }) };
            compare(&settings(seed), model, mutant).is_err()
        })
        .count();
    assert!(found > 20, "only {found} of 40 programs find the mutant");
}
