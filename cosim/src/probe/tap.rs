//! A probe of a device without pins, such as the behavioural model: the same records, with what has
//! no beats (a TLP) in one cycle.

use super::{LinkStreams, Probe, Record, What};
use nic_model::device::{Beat, Device, HostBus, HostReadError, Link};
use std::collections::VecDeque;

#[derive(Debug)]
enum Access {
    Write(u8, u64, Vec<u8>),
    Read(u8, u64, usize),
}

/// A device, and a probe around it. The device gets one BAR access a cycle.
pub struct Tap<D> {
    inner: D,
    probe: Probe,
    accesses: VecDeque<Access>,
    link: LinkStreams,
    tag: u8,
}

impl<D> std::fmt::Debug for Tap<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tap").field("waiting", &self.accesses.len()).finish_non_exhaustive()
    }
}

impl<D: Device> Tap<D> {
    /// Puts a probe around a device.
    #[must_use]
    pub fn new(inner: D) -> Self {
        let (probe, link) = (Probe::default(), LinkStreams::default());
        Self { inner, probe, accesses: VecDeque::new(), link, tag: 0 }
    }

    /// The probe.
    #[must_use]
    pub fn probe(&self) -> Probe {
        self.probe.clone()
    }
}

struct TapHost<'a> {
    inner: &'a mut dyn HostBus,
    probe: &'a Probe,
    now: u64,
    tag: &'a mut u8,
}

impl TapHost<'_> {
    fn add(&self, what: What) {
        self.probe.add(Record { first: self.now, last: self.now, what });
    }
}

impl HostBus for TapHost<'_> {
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        *self.tag = self.tag.wrapping_add(1);
        self.add(What::Read { tag: *self.tag, bytes: data.len() as u64 });
        self.add(What::Completion { tag: *self.tag, end: true });
        self.inner.read(address, data)
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        self.add(What::Write { address, bytes: data.len() as u64 });
        self.inner.write(address, data);
    }
}

struct TapLink<'a> {
    inner: &'a mut dyn Link,
    probe: &'a Probe,
    streams: &'a mut LinkStreams,
}

impl Link for TapLink<'_> {
    fn ready(&self, now: u64) -> bool {
        self.inner.ready(now)
    }

    fn send(&mut self, now: u64, beat: Beat) {
        self.streams.sent(self.probe, now, beat);
        self.inner.send(now, beat);
    }

    fn receive(&mut self, now: u64) -> Option<Beat> {
        let beat = self.inner.receive(now)?;
        self.streams.received(self.probe, now, beat);
        Some(beat)
    }
}

impl<D: Device> Device for Tap<D> {
    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) {
        self.accesses.push_back(Access::Write(bar, offset, data.to_vec()));
    }

    fn bar_read(&mut self, bar: u8, offset: u64, length: usize) {
        self.accesses.push_back(Access::Read(bar, offset, length));
    }

    fn bar_response(&mut self) -> Option<u64> {
        self.inner.bar_response()
    }

    fn step(&mut self, now: u64, host: &mut dyn HostBus, link: &mut dyn Link) {
        let what = match self.accesses.pop_front() {
            Some(Access::Write(bar, offset, data)) => {
                self.inner.bar_write(bar, offset, &data);
                Some(What::BarWrite { bar, offset })
            }
            Some(Access::Read(bar, offset, length)) => {
                self.inner.bar_read(bar, offset, length);
                Some(What::BarRead)
            }
            None => None,
        };
        if let Some(what) = what {
            self.probe.add(Record { first: now, last: now, what });
        }
        let mut host = TapHost { inner: host, probe: &self.probe, now, tag: &mut self.tag };
        let mut link = TapLink { inner: link, probe: &self.probe, streams: &mut self.link };
        self.inner.step(now, &mut host, &mut link);
    }

    fn busy(&self) -> bool {
        !self.accesses.is_empty() || self.inner.busy()
    }
}
