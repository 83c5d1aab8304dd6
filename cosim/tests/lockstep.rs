//! Lockstep of the model with itself (the programs do not depend on timing), with a mutant (a
//! difference is found), and, with the feature `rtl`, with the RTL.

use cosim::lockstep::{FEATURES, Settings, compare, shrink};
use cosim::simulation::SimulatedDevice;
use cosim::testbench::host::BUS_BASE;
use nic_model::Model;
use nic_model::device::{Device, HostBus, HostReadError, Link};
use std::collections::VecDeque;

const fn settings(seed: u64) -> Settings {
    Settings::new(seed, 0.0)
}

fn model(_node: usize) -> SimulatedDevice {
    Box::new(Model::with_features(FEATURES))
}

/// What is wrong with the writes of a [`Mutant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoilt {
    /// A bit of payload of a length that is rare enough to pass for a corner case.
    Bit,
    /// Long payload of traffic that a fence ends is late: in the end all is as it should be.
    Time,
    /// A status is written behind the event that reports it.
    Status,
    /// A status goes before the last bytes of its message.
    Overtakes,
    /// A write has one byte more than it should, which happens to be what is there.
    Extent,
}

/// Where the memory of traffic is that a fence ends.
const FENCED: u64 = BUS_BASE + (6 << 20);

struct Mutant {
    inner: Model,
    spoilt: Spoilt,
    /// Writes that are late: when they come, and where.
    late: VecDeque<(u64, u64, Vec<u8>)>,
}

impl Mutant {
    fn boxed(spoilt: Spoilt) -> SimulatedDevice {
        let inner = Model::with_features(FEATURES);
        Box::new(Self { inner, spoilt, late: VecDeque::new() })
    }
}

struct MutantHost<'a> {
    now: u64,
    inner: &'a mut dyn HostBus,
    spoilt: Spoilt,
    late: &'a mut VecDeque<(u64, u64, Vec<u8>)>,
}

/// Whether a write ends where a descriptor's control segment does.
fn is_status(address: u64, data: &[u8]) -> bool {
    (address + data.len() as u64).is_multiple_of(32) && matches!(data.len(), 8 | 12)
}

impl HostBus for MutantHost<'_> {
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        self.inner.read(address, data)
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        let mut data = data.to_vec();
        match self.spoilt {
            Spoilt::Time if address >= FENCED && data.len() >= 100 => {
                return self.late.push_back((self.now + 500, address, data));
            }
            Spoilt::Bit if data.len() % 8 == 5 => data[0] ^= 1,
            // Of a status at the end of a descriptor's control segment.
            Spoilt::Status if is_status(address, &data) => {
                return self.late.push_back((self.now + 100, address, data));
            }
            Spoilt::Overtakes if !is_status(address, &data) && data.len() > 16 => {
                return self.late.push_back((self.now + 1, address, data));
            }
            Spoilt::Extent if data.len() % 4 == 3 => {
                let mut behind = [0];
                if self.inner.read(address + data.len() as u64, &mut behind).is_ok() {
                    data.push(behind[0]);
                }
            }
            _ => {}
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
        while self.late.front().is_some_and(|&(due, ..)| due <= now) {
            let (_, address, data) = self.late.pop_front().expect("looked at");
            host.write(address, &data);
        }
        let Self { inner, spoilt, late } = self;
        inner.step(now, &mut MutantHost { now, inner: host, spoilt: *spoilt, late }, link);
    }

    fn busy(&self) -> bool {
        self.inner.busy() || !self.late.is_empty()
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
    let late = |_| Mutant::boxed(Spoilt::Time);
    let found = (0..80).filter_map(|seed| compare(&settings(seed), model, late).err());
    let behind = found
        .filter(|d| d.second.as_ref().is_some_and(|r| r.is_failure && r.value.contains("behind")));
    let behind = behind.count();
    assert!(behind > 7, "{behind} of 80");
}

/// A program that finds a mutant has a small part that finds it, too.
#[test]
fn a_failing_program_shrinks() {
    let mutant = |_| Mutant::boxed(Spoilt::Bit);
    // By a message that is compared, and not by one of those that a fence ends.
    let found = (0..40).find_map(|seed| {
        let mut tries = 0;
        let smaller = shrink(&settings(seed), model, mutant, |_| tries += 1)?;
        (!smaller.divergence.messages.is_empty()).then_some((seed, tries, smaller))
    });
    let (seed, tries, smaller) = found.expect("a seed that finds it");
    let settings = settings(seed);
    let [left, whole] = smaller.messages;
    assert!(left <= 2 && whole > 5 && tries < 300, "{left} of {whole}, {tries} tries");
    assert_eq!(smaller.program.matches(": Message").count(), left, "{}", smaller.program);
    assert_eq!(smaller.divergence.settings.seed, settings.seed);
    assert!(smaller.divergence.to_string().contains(": Message"), "{}", smaller.divergence);
    let trail = &smaller.divergence.trail;
    let differs: Vec<_> = trail.iter().filter(|line| line.starts_with('>')).collect();
    assert!(!differs.is_empty() && differs.iter().all(|line| line.contains(" | ")), "{trail:#?}");
    let second = differs[0].split(" | ").nth(1).and_then(|line| line.split_whitespace().next());
    let cycle = second.and_then(|cycle| cycle.parse().ok()).expect("a cycle");
    let window = &smaller.divergence.window;
    assert!(window.contains(&cycle) && window.end - window.start <= 5_000, "{cycle}, {window:?}");
    let again = |second: fn(usize) -> SimulatedDevice| smaller.divergence.again(model, second);
    assert!(again(|_| Mutant::boxed(Spoilt::Bit)).is_err() && again(model).is_ok());
    assert!(smaller.divergence.is_repeatable);
    assert!(shrink(&settings, model, model, |_| ()).is_none());
}

/// Seeds of 40 whose programs find a mutant, and what they say.
fn found(spoilt: Spoilt) -> Vec<String> {
    let mutant = |_| Mutant::boxed(spoilt);
    let divergences = (0..40).filter_map(|seed| compare(&settings(seed), model, mutant).err());
    divergences.map(|divergence| divergence.to_string()).collect()
}

/// Most of 40 seeds must find a mutant by what says `how`.
fn must_find(spoilt: Spoilt, how: &str) {
    let found = found(spoilt);
    let by = found.iter().filter(|why| why.contains(how)).count();
    assert!(by > 20, "{spoilt:?}: {by} of {} by `{how}`: {found:#?}", found.len());
}

#[test]
fn the_order_of_writes_is_compared() {
    must_find(Spoilt::Status, "an event reports");
    must_find(Spoilt::Overtakes, " write ");
    must_find(Spoilt::Extent, "data 0x");
}

#[test]
fn a_mutant_is_found() {
    let found = (0..40)
        .filter(|&seed| compare(&settings(seed), model, |_| Mutant::boxed(Spoilt::Bit)).is_err())
        .count();
    assert!(found > 20, "only {found} of 40 programs find the mutant");
}

#[cfg(feature = "rtl")]
mod rtl {
    #[cfg(all(feature = "trace", not(feature = "fst")))]
    use super::{Mutant, Spoilt};
    use super::{compare, model, settings};
    use cosim::lockstep::Settings;
    use cosim::root_complex::HostSettings;
    use cosim::rtl::RtlNic;
    use cosim::simulation::SimulatedDevice;
    use std::ops::Range;

    fn agrees(settings: &Settings, host: &HostSettings) {
        let rtl = |node: usize| -> SimulatedDevice {
            let seed = host.seed * 2 + node as u64;
            Box::new(RtlNic::new(HostSettings { seed, ..host.clone() }))
        };
        compare(settings, model, rtl).unwrap_or_else(|divergence| panic!("{divergence}"));
    }

    /// The seeds of every run of a suite, those that failed once, and one that no run had before: a failure
    /// names its seed.
    fn seeds(suite: &str, fixed: Range<u64>, fresh: u64) -> impl Iterator<Item = u64> {
        let failed = include_str!("lockstep-failed.txt").lines().filter_map(move |line| {
            let (of, seed) = line.split_once(' ')?;
            (of == suite).then(|| seed.parse().expect("a seed"))
        });
        let first = cosim::random::fresh();
        fixed.chain(failed.collect::<Vec<_>>()).chain(first..first + fresh)
    }

    #[test]
    fn rtl_agrees_with_the_model() {
        seeds("lockstep", 100..109, 1)
            .for_each(|seed| agrees(&settings(seed), &HostSettings::default()));
    }

    #[test]
    fn rtl_in_a_slow_host_agrees_with_the_model() {
        seeds("lockstep-host", 200..209, 1)
            .for_each(|seed| agrees(&settings(seed), &HostSettings::slow(seed)));
    }

    #[test]
    fn rtl_on_a_lossy_link_agrees_with_the_model() {
        seeds("lockstep-lossy", 300..305, 1)
            .for_each(|seed| agrees(&Settings::new(seed, 0.03), &HostSettings::slow(seed)));
    }

    /// Waveforms have the cycles around a difference, and no more.
    #[cfg(all(feature = "trace", not(feature = "fst")))]
    #[test]
    fn waveforms_are_of_where_devices_differ() {
        let folder = std::env::temp_dir().join(format!("viaduct-window-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = |node: usize| folder.join(format!("{node}.vcd"));
        let rtl = |window: Option<u64>| {
            move |node: usize| -> SimulatedDevice {
                let mut nic = RtlNic::new(HostSettings::default());
                if let Some(from) = window {
                    nic.trace_from(from, &path(node)).expect("a file");
                }
                Box::new(nic)
            }
        };
        let mutant = |_| Mutant::boxed(Spoilt::Bit);
        let found = (0..20).find_map(|seed| compare(&settings(seed), mutant, rtl(None)).err());
        let divergence = found.expect("a seed that finds it");
        divergence.replay(rtl(Some(divergence.window.start)));
        for node in 0..2 {
            let text = std::fs::read_to_string(path(node)).expect("a waveform");
            let edges = text.lines().filter(|line| line.starts_with('#')).count() as u64;
            let cycles = divergence.window.end - divergence.window.start;
            // A run may go on to its next wait.
            assert!((cycles..4 * cycles).contains(&(edges / 2)), "{edges} edges, {cycles} cycles");
        }
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
