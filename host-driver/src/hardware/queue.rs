//! Completion queues of a port: rings of event records.

use std::sync::Arc;

use nic_regs::doorbell::Queue;
use nic_regs::event::Kind;

use super::HardwarePort;
use crate::admin::EventSetup;
use crate::dma::DmaMemory;
use crate::error::Result;
use crate::event::{EventRing, LOG2_MAX};
use crate::nic::CONTROL_VECTOR;
use crate::sync::lock;
use port::{Completed, CompletionQueue};

#[derive(Debug)]
struct HardwareQueue(EventRing);

impl CompletionQueue for HardwareQueue {
    fn number(&self) -> u16 {
        self.0.index()
    }

    fn poll(&self) -> Option<Completed> {
        loop {
            let event = self.0.take()?;
            let queue = match Kind::from_bits(event.kind.into()) {
                Some(Kind::SendComplete) => Queue::Send,
                Some(Kind::RecvComplete) => Queue::Recv,
                _ => continue,
            };
            return Some(Completed { vi: event.index, queue, count: event.word1 });
        }
    }

    fn arm(&self) {
        self.0.publish(true);
    }

    fn retire(&self, retired: bool) {
        self.0.retire(retired);
    }
}

/// A ring that the device can reach but does not know yet.
struct Ring {
    memory: DmaMemory,
    base: u64,
    log2: u8,
}

impl Ring {
    /// # Errors
    /// Too many entries; no memory.
    fn new(port: &HardwarePort, entries: u32) -> Result<Self> {
        let log2 = entries.max(4).checked_next_power_of_two().map_or(32, u32::trailing_zeros);
        let bad = port::Error::BadArgument {
            what: "entries of a completion queue",
            value: entries.into(),
        };
        let log2 = u8::try_from(log2).ok().filter(|n| *n <= LOG2_MAX).ok_or(bad)?;
        let memory = DmaMemory::new(EventRing::bytes(log2, false))?;
        let base = port.nic.bus.map(&memory)?;
        Ok(Self { memory, base, log2 })
    }

    /// Has the device fill the ring as queue `number`.
    fn start(self, port: &HardwarePort, number: u16) -> Result<Arc<dyn CompletionQueue>> {
        let setup = EventSetup {
            base: self.base,
            log2: self.log2,
            wide: false,
            domain: port.domain,
            vector: CONTROL_VECTOR,
        };
        let created = port.nic.admin.event_create(number, setup);
        created.inspect_err(|_| port.nic.bus.unmap(self.base))?;
        lock(&port.rings).insert(number, (self.base, self.memory.clone()));
        let (doorbell, presence) = (port.doorbell.clone(), Arc::clone(&port.nic.presence));
        let ring = EventRing::new(number, self.memory, self.log2, false, doorbell, presence);
        Ok(Arc::new(HardwareQueue(ring)))
    }
}

/// See [`port::CompletionOps::create_queue`].
pub(super) fn create(port: &HardwarePort, entries: u32) -> Result<Arc<dyn CompletionQueue>> {
    let _changing = port.change();
    let ring = Ring::new(port, entries)?;
    let taken = port.nic.queues.take(port.domain);
    let number = taken.inspect_err(|_| port.nic.bus.unmap(ring.base))?;
    ring.start(port, number).inspect_err(|_| port.nic.queues.give(number))
}

/// See [`port::CompletionOps::resize_queue`].
pub(super) fn resize(
    port: &HardwarePort,
    number: u16,
    entries: u32,
) -> Result<Arc<dyn CompletionQueue>> {
    let _changing = port.change();
    port.nic.queues.check(number, port.domain)?;
    let ring = Ring::new(port, entries)?;
    forget(port, number).inspect_err(|_| port.nic.bus.unmap(ring.base))?;
    ring.start(port, number)
}

/// See [`port::CompletionOps::destroy_queue`].
pub(super) fn destroy(port: &HardwarePort, number: u16) -> Result<()> {
    let _changing = port.change();
    port.nic.queues.check(number, port.domain)?;
    forget(port, number)?;
    port.nic.queues.give(number);
    Ok(())
}

/// Has the device forget the ring of queue `number`, which keeps its number.
fn forget(port: &HardwarePort, number: u16) -> Result<()> {
    // A queue whose ring could not be set again after a resize has none.
    if !lock(&port.rings).contains_key(&number) {
        return Ok(());
    }
    port.nic.admin.event_destroy(number)?;
    let removed = lock(&port.rings).remove(&number);
    if let Some((base, _memory)) = removed {
        port.nic.bus.unmap(base);
    }
    Ok(())
}
