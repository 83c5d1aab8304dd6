//! Memory of a connection: descriptors and buffers, registered once.
//!
//! ```text
//!   of this process alone   descriptors: receives, sends │ buffers of sends
//!   of a memory file        buffers of receives
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use vipl::memory::stride;
use vipl::{Descriptor, Region, Vi};

use crate::device::Device;
use crate::error::Result;
use crate::packet::Header;
use crate::policy::Policy;

/// Bytes of a descriptor of one segment.
const DESCRIPTOR: usize = Descriptor::bytes(1);
/// Sends of packets without data that may be under way beside those of data.
const SPARE_SENDS: usize = 8;

/// See the module.
#[derive(Debug)]
pub(crate) struct Slots {
    memory: Region,
    buffers: Region,
    receives: Vec<Descriptor>,
    /// Receives in the order in which they were posted, which is that of their completion.
    posted: VecDeque<usize>,
    sends: Vec<Descriptor>,
    /// The next send, and how many before it are under way.
    next: usize,
    busy: usize,
    /// The buffer of the next send of data; there is one for each send.
    filling: usize,
    mtu: u32,
    /// Some sends were posted, and the NIC reads them when it comes to it.
    has_posted: bool,
}

impl Slots {
    /// Memory for a connection.
    ///
    /// # Errors
    /// The NIC has no room for it.
    pub(crate) fn new(device: &Device, policy: &Policy) -> Result<Self> {
        let receives = policy.receives(policy.window);
        let sends = usize::from(policy.window) + SPARE_SENDS;
        let mtu = policy.mtu;
        let descriptors = (receives + sends) * DESCRIPTOR;
        let memory = device.allocate(descriptors + sends * stride(mtu as usize))?;
        let descriptor = |at: usize| memory.descriptor(at * DESCRIPTOR, 1);
        let all: vipl::Result<Vec<_>> = (0..receives + sends).map(descriptor).collect();
        let mut receives_of = all?;
        let sends = receives_of.split_off(receives);
        let posted = VecDeque::with_capacity(receives);
        let buffers = device.take_receives()?;
        Ok(Self {
            memory,
            buffers,
            receives: receives_of,
            posted,
            sends,
            next: 0,
            busy: 0,
            filling: 0,
            mtu,
            has_posted: false,
        })
    }

    /// Gives the memory back.
    pub(crate) fn release(&self, device: &Device) {
        device.release(&self.memory, &self.buffers);
    }

    /// Where the buffer of the next send of data is.
    fn filling(&self) -> usize {
        let descriptors = (self.receives.len() + self.sends.len()) * DESCRIPTOR;
        descriptors + self.filling * stride(self.mtu as usize)
    }

    /// Posts all receives of a new connection.
    ///
    /// # Errors
    /// The VI is of no use any more; so for the others.
    pub(crate) fn post_all(&mut self, vi: &Vi) -> Result<()> {
        for (slot, descriptor) in self.receives.iter().enumerate() {
            let segment = self.buffers.segment(slot * stride(self.mtu as usize), self.mtu);
            descriptor.prepare(&[segment], None)?;
        }
        (0..self.receives.len()).try_for_each(|slot| self.post_receive(vi, slot))
    }

    /// Posts a receive, once more if its bytes were read.
    pub(crate) fn post_receive(&mut self, vi: &Vi, slot: usize) -> Result<()> {
        let descriptor = &self.receives[slot];
        descriptor.renew(self.mtu);
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
        self.buffers.memory().copy_to(slot * stride(self.mtu as usize) + at as usize, out);
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

    /// Sends a packet of bytes of the program: straight from where they are if the NIC can do that now,
    /// or copied into a buffer.
    pub(crate) fn send_bytes(&mut self, vi: &Vi, header: Header, bytes: &[u8]) -> Result<()> {
        if vi.send_now(bytes, Some(header.to_bits())) {
            return Ok(());
        }
        self.write(0, bytes);
        self.send(vi, header, u32::try_from(bytes.len()).unwrap_or(u32::MAX))
    }

    /// Writes bytes into the buffer of the next send of data.
    pub(crate) fn write(&self, at: u32, bytes: &[u8]) {
        self.memory.memory().copy_from(self.filling() + at as usize, bytes);
    }

    /// Posts the next send, of so many bytes of its buffer.
    pub(crate) fn send(&mut self, vi: &Vi, header: Header, length: u32) -> Result<()> {
        self.has_posted = true;
        let segment = self.memory.segment(self.filling(), length);
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

    /// Whether some sends were posted, so that they may leave after the call.
    pub(crate) const fn has_posted(&self) -> bool {
        self.has_posted
    }

    /// Sends that are under way.
    pub(crate) const fn busy(&self) -> usize {
        self.busy
    }
}
