//! A PCIe slot without a card.

use nic_model::device::{Device, HostBus, Link};

/// Answers reads with all ones, and drops everything else.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EmptySlot {
    asked: bool,
}

impl Device for EmptySlot {
    fn bar_write(&mut self, _bar: u8, _offset: u64, _data: &[u8]) {}

    fn bar_read(&mut self, _bar: u8, _offset: u64, _length: usize) {
        self.asked = true;
    }

    fn bar_response(&mut self) -> Option<u64> {
        core::mem::take(&mut self.asked).then_some(u64::MAX)
    }

    fn step(&mut self, _now: u64, _host: &mut dyn HostBus, _link: &mut dyn Link) {}

    fn busy(&self) -> bool {
        false
    }
}
