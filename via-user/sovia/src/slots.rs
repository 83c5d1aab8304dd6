//! Memory of a connection: descriptors and buffers, registered once.
//!
//! ```text
//!   descriptors: receives, sends │ buffers of receives │ buffers of sends
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use vipl::{Descriptor, Vi};

use crate::device::Device;
use crate::error::Result;
use crate::packet::Header;
use crate::policy::Policy;

/// Bytes between two descriptors of one segment: they begin at multiples of 64.
const DESCRIPTOR: usize = Descriptor::bytes(1).next_multiple_of(64);
/// Sends of packets without data that may be under way beside those of data.
const SPARE_SENDS: usize = 8;

/// Bytes between two buffers: one cache line more than they have, so that the first lines of buffers
/// whose size is a power of two do not all compete for the same places of a cache.
const fn stride(buffer: usize) -> usize {
    buffer.next_multiple_of(64) + 64
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Slots {
    region: vipl::Region,
    receives: Vec<Descriptor>,
    /// Receives in the order in which they were posted, which is that of their completion.
    posted: VecDeque<usize>,
    sends: Vec<Descriptor>,
    /// The next send, and how many before it are under way.
    next: usize,
    busy: usize,
    /// The buffer of the next send of data; there is one for each send.
    filling: usize,
    buffer: usize,
}

impl Slots {
    /// Memory for a connection.
    ///
    /// # Errors
    /// The NIC has no room for it.
    pub(crate) fn new(device: &Device, policy: &Policy) -> Result<Self> {
        let receives = policy.receives(policy.window);
        let sends = usize::from(policy.window) + SPARE_SENDS;
        let buffer = policy.mtu as usize;
        let region = device.register((receives + sends) * (DESCRIPTOR + stride(buffer)))?;
        let descriptor = |at: usize| region.descriptor(at * DESCRIPTOR, 1);
        let all: vipl::Result<Vec<_>> = (0..receives + sends).map(descriptor).collect();
        let mut receives_of = all?;
        let sends = receives_of.split_off(receives);
        let posted = VecDeque::with_capacity(receives);
        Ok(Self {
            region,
            receives: receives_of,
            posted,
            sends,
            next: 0,
            busy: 0,
            filling: 0,
            buffer,
        })
    }

    /// Gives the memory back.
    pub(crate) fn release(&self, device: &Device) {
        device.deregister(&self.region);
    }

    fn offset(&self, slot: usize) -> usize {
        let descriptors = (self.receives.len() + self.sends.len()) * DESCRIPTOR;
        descriptors + slot * stride(self.buffer)
    }

    /// Posts all receives of a new connection.
    ///
    /// # Errors
    /// The VI is of no use any more; so for the others.
    pub(crate) fn post_all(&mut self, vi: &Vi) -> Result<()> {
        (0..self.receives.len()).try_for_each(|slot| self.post_receive(vi, slot))
    }

    /// Posts a receive.
    pub(crate) fn post_receive(&mut self, vi: &Vi, slot: usize) -> Result<()> {
        let length = u32::try_from(self.buffer).unwrap_or(u32::MAX);
        let segment = self.region.segment(self.offset(slot), length);
        let descriptor = &self.receives[slot];
        descriptor.prepare(&[segment], None)?;
        vi.post_recv(descriptor)?;
        self.posted.push_back(slot);
        Ok(())
    }

    /// The oldest receive is done: which one it is.
    pub(crate) fn completed(&mut self) -> Option<usize> {
        self.posted.pop_front()
    }

    /// Copies bytes that have come in a receive.
    pub(crate) fn read(&self, slot: usize, at: u32, out: &mut [u8]) {
        self.region.memory().copy_to(self.offset(slot) + at as usize, out);
    }

    /// Forgets sends that are done.
    pub(crate) fn reap(&mut self, vi: &Vi) -> Result<()> {
        while self.busy > 0 {
            match vi.send_done() {
                Ok(_) => self.busy -= 1,
                Err(error) if error.code == vipl::VipReturn::NotDone => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits for the end of a send, if there is one; at most so long.
    pub(crate) fn reap_one(&mut self, vi: &Vi, bound: Duration) -> Result<()> {
        match vi.send_wait(bound) {
            Ok(_) => self.busy = self.busy.saturating_sub(1),
            Err(error) if error.code == vipl::VipReturn::Timeout => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Whether a send is free, one of a few that are kept for packets without data.
    pub(crate) fn has_send(&self, is_data: bool) -> bool {
        let kept = if is_data { SPARE_SENDS / 2 } else { 0 };
        self.busy + kept < self.sends.len()
    }

    /// Writes bytes into the buffer of the next send of data.
    pub(crate) fn write(&self, at: u32, bytes: &[u8]) {
        let slot = self.receives.len() + self.filling;
        self.region.memory().copy_from(self.offset(slot) + at as usize, bytes);
    }

    /// Posts the next send, of so many bytes of its buffer.
    pub(crate) fn send(&mut self, vi: &Vi, header: Header, length: u32) -> Result<()> {
        let slot = self.receives.len() + self.filling;
        let segment = self.region.segment(self.offset(slot), length);
        let segments = if length == 0 { &[][..] } else { &[segment][..] };
        let descriptor = &self.sends[self.next];
        descriptor.prepare(segments, Some(header.to_bits()))?;
        vi.post_send(descriptor)?;
        if length > 0 {
            self.filling = (self.filling + 1) % self.sends.len();
        }
        self.next = (self.next + 1) % self.sends.len();
        self.busy += 1;
        Ok(())
    }

    /// Sends that are under way.
    pub(crate) const fn busy(&self) -> usize {
        self.busy
    }
}
