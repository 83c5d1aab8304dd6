//! Doorbells: one domain's page in BAR2.

use std::sync::Arc;

use nic_regs::doorbell::{EVENT_OFFSET, EventDoorbell, PAGE_BYTES, TOKEN_OFFSET, Token};

use crate::bus::{Bus, DOORBELL_BAR};

/// One domain's doorbell page.
#[derive(Clone)]
pub struct DoorbellPage {
    bus: Arc<dyn Bus>,
    base: u64,
}

impl core::fmt::Debug for DoorbellPage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "DoorbellPage({})", self.base / PAGE_BYTES)
    }
}

impl DoorbellPage {
    /// The page of `domain`.
    #[must_use]
    pub fn new(bus: Arc<dyn Bus>, domain: u8) -> Self {
        Self { bus, base: u64::from(domain) * PAGE_BYTES }
    }

    /// Posts one descriptor. What was stored before is visible to the device
    /// ([`crate::bus::Bar::write64`]).
    pub fn ring(&self, token: Token) {
        self.bus.write64(DOORBELL_BAR, self.base + TOKEN_OFFSET, token.to_bits());
    }

    /// Tells an event queue's progress.
    pub fn consume(&self, doorbell: EventDoorbell) {
        self.bus.write64(DOORBELL_BAR, self.base + EVENT_OFFSET, doorbell.to_bits());
    }
}
