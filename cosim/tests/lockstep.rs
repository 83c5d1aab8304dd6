//! Lockstep of the model with itself (the programs do not depend on timing), with a mutant (a
//! difference is found), and, with the feature `rtl`, with the RTL.

use cosim::lockstep::{FEATURES, Settings, compare};
use nic_model::Model;
use nic_model::device::{Device, HostBus, HostReadError, Link};
use std::collections::VecDeque;

fn settings(seed: u64) -> Settings {
    Settings { seed, loss: 0.0, corrupt: 0.0, latency: seed % 40 }
}

fn model(_node: usize) -> Box<dyn Device> {
    Box::new(Model::with_features(FEATURES))
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

/// Writes long payload late: in the end all is as it should be.
struct Late {
    inner: Model,
    waiting: VecDeque<(u64, u64, Vec<u8>)>,
}

struct LateHost<'a> {
    now: u64,
    inner: &'a mut dyn HostBus,
    waiting: &'a mut VecDeque<(u64, u64, Vec<u8>)>,
}

impl HostBus for LateHost<'_> {
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        self.inner.read(address, data)
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        if data.len() < 100 {
            return self.inner.write(address, data);
        }
        self.waiting.push_back((self.now + 500, address, data.to_vec()));
    }
}

impl Device for Late {
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
        while self.waiting.front().is_some_and(|&(due, ..)| due <= now) {
            let (_, address, data) = self.waiting.pop_front().expect("looked at");
            host.write(address, &data);
        }
        let waiting = &mut self.waiting;
        self.inner.step(now, &mut LateHost { now, inner: host, waiting }, link);
    }

    fn busy(&self) -> bool {
        self.inner.busy() || !self.waiting.is_empty()
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
fn a_write_behind_a_fence_is_found() {
    let late = |_| -> Box<dyn Device> {
        let inner = Model::with_features(FEATURES);
        Box::new(Late { inner, waiting: VecDeque::new() })
    };
    let found = (0..40).filter_map(|seed| compare(&settings(seed), model, late).err());
    let behind = found
        .filter(|d| d.second.as_ref().is_some_and(|r| r.is_failure && r.value.contains("behind")));
    assert!(behind.count() > 3);
}

#[test]
fn a_mutant_is_found() {
    let found = (0..40)
        .filter(|&seed| {
            let mutant = |_| -> Box<dyn Device> {
                Box::new(Mutant { inner: Model::with_features(FEATURES) })
            };
            compare(&settings(seed), model, mutant).is_err()
        })
        .count();
    assert!(found > 20, "only {found} of 40 programs find the mutant");
}

#[cfg(feature = "rtl")]
mod rtl {
    use super::{compare, model, settings};
    use cosim::lockstep::Settings;
    use cosim::root_complex::HostSettings;
    use cosim::rtl::RtlNic;
    use nic_model::device::Device;

    fn agrees(settings: &Settings, host: &HostSettings) {
        let rtl = |node: usize| -> Box<dyn Device> {
            let seed = host.seed * 2 + node as u64;
            Box::new(RtlNic::new(HostSettings { seed, ..host.clone() }))
        };
        compare(settings, model, rtl).unwrap_or_else(|divergence| panic!("{divergence}"));
    }

    fn slow_host(seed: u64) -> HostSettings {
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

    #[test]
    fn rtl_agrees_with_the_model() {
        (100..110).for_each(|seed| agrees(&settings(seed), &HostSettings::default()));
    }

    #[test]
    fn rtl_in_a_slow_host_agrees_with_the_model() {
        (200..210).for_each(|seed| agrees(&settings(seed), &slow_host(seed)));
    }

    #[test]
    fn rtl_on_a_lossy_link_agrees_with_the_model() {
        for seed in 300..308 {
            let settings = Settings { loss: 0.03, corrupt: 0.03, ..settings(seed) };
            agrees(&settings, &slow_host(seed));
        }
    }
}
