//! Descriptors and receive buffers of a connection, registered once.
//!
//! ```text
//!   descriptors: receives, sends │ buffers of receives
//! ```
//!
//! Sends have no buffers here: they are posted from those in which messages were marshalled.

use std::collections::VecDeque;
use std::time::Duration;

use vipl::memory::stride;
use vipl::{Descriptor, Queue, Region, Segment, Vi, VipReturn};

use crate::buffers::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::header::Header;

/// Bytes of a descriptor of one segment.
const DESCRIPTOR: usize = Descriptor::bytes(1);
/// Receives beside those for data: an RTS and a CTS, and one for the last packet of the negotiation.
const SPARE_RECEIVES: usize = 3;
/// Sends that are kept for RTS and CTS.
const SPARE_SENDS: usize = 2;
/// How long a send may take: a NIC gives a silent peer up earlier.
const COMPLETION: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(crate) struct Slots {
    device: Device,
    region: Region,
    buffer: u32,
    receives: Vec<Descriptor>,
    /// Receives in the order in which they were posted, which is that of their completion.
    posted: VecDeque<usize>,
    sends: Vec<Descriptor>,
    next: usize,
    /// Sends that are not done, the oldest first; with the message whose last packet they are.
    in_flight: VecDeque<Option<Buffer>>,
}

impl Slots {
    /// Memory for `credits` packets of data of at most `mtu` bytes.
    ///
    /// # Errors
    /// The NIC cannot register more memory.
    pub(crate) fn new(device: &Device, credits: u8, mtu: u32) -> Result<Self> {
        let receives = usize::from(credits) + SPARE_RECEIVES;
        let sends = usize::from(credits) + SPARE_SENDS;
        let descriptors = (receives + sends) * DESCRIPTOR;
        let region = device.register(descriptors + receives * stride(mtu as usize))?;
        let descriptor = |at: usize| region.descriptor(at * DESCRIPTOR, 1);
        let all: vipl::Result<Vec<_>> = (0..receives + sends).map(descriptor).collect();
        let mut receives = all?;
        let sends = receives.split_off(receives.len() - sends);
        let (posted, in_flight) =
            (VecDeque::with_capacity(receives.len()), VecDeque::with_capacity(sends.len()));
        let device = device.clone();
        Ok(Self { device, region, buffer: mtu, receives, posted, sends, next: 0, in_flight })
    }

    fn offset(&self, slot: usize) -> usize {
        let descriptors = (self.receives.len() + self.sends.len()) * DESCRIPTOR;
        descriptors + slot * stride(self.buffer as usize)
    }

    /// Posts all receives of a new connection.
    pub(crate) fn post_all(&mut self, vi: &Vi) -> Result<()> {
        (0..self.receives.len()).try_for_each(|slot| self.post_receive(vi, slot))
    }

    /// Posts a receive.
    pub(crate) fn post_receive(&mut self, vi: &Vi, slot: usize) -> Result<()> {
        let segment = self.region.segment(self.offset(slot), self.buffer);
        let descriptor = &self.receives[slot];
        descriptor.prepare(&[segment], None)?;
        vi.post_recv(descriptor)?;
        self.posted.push_back(slot);
        Ok(())
    }

    /// The slot of the oldest receive, which is done.
    pub(crate) fn completed(&mut self) -> Option<usize> {
        self.posted.pop_front()
    }

    /// Copies bytes of a packet that has come in a slot.
    pub(crate) fn read(&self, slot: usize, at: usize, out: &mut [u8]) {
        self.region.memory().copy_to(self.offset(slot) + at, out);
    }

    /// Forgets sends that are done; their buffers go back to the cache.
    pub(crate) fn reap(&mut self, vi: &Vi) -> Result<()> {
        while !self.in_flight.is_empty() {
            match vi.poll(Queue::Send) {
                Ok(_) => drop(self.in_flight.pop_front()),
                Err(error) if error.code == VipReturn::NotDone => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until the oldest send is done. Its credit means that it finds a receive, so this does not
    /// depend on the other program.
    ///
    /// # Errors
    /// [`Error::Lost`] if it takes a second all the same.
    fn reap_one(&mut self, vi: &Vi) -> Result<()> {
        vi.send_wait(COMPLETION).map_err(|_| Error::Lost)?;
        drop(self.in_flight.pop_front());
        Ok(())
    }

    /// Waits until all sends are done, so that what was sent arrives although the connection ends.
    pub(crate) fn drain(&mut self, vi: &Vi) -> Result<()> {
        while !self.in_flight.is_empty() {
            self.reap_one(vi)?;
        }
        Ok(())
    }

    /// Posts a send without bytes.
    pub(crate) fn send_control(&mut self, vi: &Vi, header: Header) -> Result<()> {
        self.send(vi, header, &[], None, 0)
    }

    /// Posts a send of a part of a message. The last part takes the message along.
    pub(crate) fn send_data(
        &mut self,
        vi: &Vi,
        header: Header,
        segment: Segment,
        message: Option<Buffer>,
    ) -> Result<()> {
        self.send(vi, header, &[segment], message, SPARE_SENDS)
    }

    fn send(
        &mut self,
        vi: &Vi,
        header: Header,
        segments: &[Segment],
        message: Option<Buffer>,
        spare: usize,
    ) -> Result<()> {
        if self.in_flight.len() + spare >= self.sends.len() {
            self.reap(vi)?;
        }
        while self.in_flight.len() + spare >= self.sends.len() {
            self.reap_one(vi)?;
        }
        let descriptor = &self.sends[self.next];
        descriptor.prepare(segments, Some(header.to_bits()))?;
        vi.post_send(descriptor)?;
        self.next = (self.next + 1) % self.sends.len();
        self.in_flight.push_back(message);
        Ok(())
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        self.device.deregister(&self.region);
    }
}
