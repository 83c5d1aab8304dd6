//! A connection with another node: a VI, the memory of its messages, and their order.
//!
//! ```text
//!   region: descriptors of receives, of sends │ buffers of receives │ buffers of sends
//! ```
//! Immediate data says whether a message is a hello or an IP packet. The VI is of the level Unreliable,
//! which is what IP asks of a network: a message that finds no receive is lost, and the connection goes
//! on.

use core::sync::atomic::{AtomicBool, Ordering};
use std::net::IpAddr;
use std::sync::{Mutex, OnceLock};

use port::sync::lock;
use vipl::memory::stride;
use vipl::{
    Completion, CompletionError, Cq, Descriptor, DmaMemory, MemAttributes, Nic, Ptag, Queue,
    Region, Reliability, Vi, ViAttributes, VipReturn,
};

use crate::counters::Drop;
use crate::error::Result;
use crate::hello;
use crate::sequence::Sequence;
use crate::table::Host;

/// Receives that are posted: messages that this side may be behind before some are lost. With 64, a side
/// that others keep from its processor for a moment loses some.
const RECEIVES: usize = 256;
/// Sends that may be under way.
const SENDS: usize = 64;
/// All of them.
const DEPTH: usize = RECEIVES + SENDS;
/// Bytes of a descriptor of one segment.
const DESCRIPTOR: usize = Descriptor::bytes(1);

/// What of a NIC all links of a lane share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) nic: Nic,
    pub(crate) tag: Ptag,
    /// Completions of receives, of every link.
    pub(crate) cq: Cq,
    /// The longest message, in bytes.
    pub(crate) mtu: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Link {
    number: u64,
    pub(crate) host: Host,
    shared: Shared,
    vi: Vi,
    region: Region,
    receives: Vec<Descriptor>,
    sends: Vec<Descriptor>,
    receiving: Mutex<Receiving>,
    sending: Mutex<Sending>,
    /// Those of the other side's hello.
    addresses: OnceLock<Vec<IpAddr>>,
    /// These addresses are the other side's by the table.
    is_up: AtomicBool,
}

#[derive(Debug, Default)]
struct Receiving {
    /// The receive that is done next.
    next: usize,
    packets: Sequence,
    closed: bool,
}

#[derive(Debug, Default)]
struct Sending {
    /// The descriptor of the next send, and how many before it are not done.
    next: usize,
    busy: usize,
    packets: Sequence,
    closed: bool,
}

/// Whether a descriptor was taken, however it ended.
fn is_taken(completion: &Completion) -> bool {
    completion.as_ref().err().is_none_or(|error| error.descriptor.is_some())
}

/// What has arrived; its bytes are in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// Nothing.
    Nothing,
    /// A packet of so many bytes, before which so many were lost.
    Packet(usize, u32),
    /// A hello of so many bytes.
    Hello(usize),
    /// A message of this connection that is neither.
    Unknown,
    /// A message that did not fit.
    Misplaced,
    /// The connection has ended.
    End,
}

/// The connection of a table is a link; two are the same if they are one object.
impl PartialEq for Link {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Link {
    /// A link that is not connected yet: its receives are posted. Its number is the user data of its
    /// VI.
    ///
    /// # Errors
    /// The NIC has no room for it.
    pub(crate) fn new(shared: &Shared, number: u64, host: Host) -> Result<Self> {
        let attributes = ViAttributes {
            max_transfer_size: shared.mtu,
            ..ViAttributes::new(Reliability::Unreliable, shared.tag)
        };
        let buffers = DEPTH * stride(shared.mtu as usize);
        let memory = DmaMemory::new(DEPTH * DESCRIPTOR + buffers).map_err(vipl::Error::from)?;
        let region = shared.nic.register_mem(&memory, MemAttributes::new(shared.tag))?;
        // Whatever fails from here on leaves no registration behind.
        let made = Self::make(shared, number, host, &region, attributes);
        if made.is_err() {
            let _ = shared.nic.deregister_mem(&region);
        }
        made
    }

    fn make(
        shared: &Shared,
        number: u64,
        host: Host,
        region: &Region,
        attributes: ViAttributes,
    ) -> Result<Self> {
        let vi = shared.nic.create_vi(attributes, None, Some(&shared.cq))?;
        vi.set_user_data(number);
        let all: vipl::Result<Vec<_>> =
            (0..DEPTH).map(|at| region.descriptor(at * DESCRIPTOR, 1)).collect();
        let mut receives = all?;
        let sends = receives.split_off(RECEIVES);
        for (slot, descriptor) in receives.iter().enumerate() {
            let segment = region.segment(Self::offset(shared.mtu, slot), shared.mtu);
            descriptor.prepare(&[segment], None)?;
            vi.post_recv(descriptor)?;
        }
        Ok(Self {
            number,
            host,
            shared: shared.clone(),
            vi,
            region: region.clone(),
            receives,
            sends,
            receiving: Mutex::default(),
            sending: Mutex::default(),
            addresses: OnceLock::new(),
            is_up: AtomicBool::new(false),
        })
    }

    const fn offset(mtu: u32, slot: usize) -> usize {
        DEPTH * DESCRIPTOR + slot * stride(mtu as usize)
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) const fn vi(&self) -> &Vi {
        &self.vi
    }

    /// The addresses of the other side's hello. None before it.
    pub(crate) fn addresses(&self) -> Option<&[IpAddr]> {
        self.addresses.get().map(Vec::as_slice)
    }

    /// Notes the other side's hello. A second one changes nothing.
    pub(crate) fn set_addresses(&self, addresses: Vec<IpAddr>) {
        let _ = self.addresses.set(addresses);
    }

    /// The table has the addresses of the hello.
    pub(crate) fn set_up(&self) {
        self.is_up.store(true, Ordering::Release);
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Acquire)
    }

    // --- sends ---

    /// Sends the hello of this side.
    ///
    /// # Errors
    /// As [`Link::send`].
    pub(crate) fn send_hello(&self, bytes: &[u8]) -> core::result::Result<(), Drop> {
        self.post(&mut lock(&self.sending), bytes, hello::KIND)
    }

    /// Sends a packet, of at most the MTU. It never waits.
    ///
    /// # Errors
    /// Why it is dropped.
    pub(crate) fn send(&self, bytes: &[u8]) -> core::result::Result<(), Drop> {
        let mut sending = lock(&self.sending);
        let number = sending.packets.number();
        self.post(&mut sending, bytes, number)?;
        sending.packets.advance();
        Ok(())
    }

    fn post(
        &self,
        sending: &mut Sending,
        bytes: &[u8],
        immediate: u32,
    ) -> core::result::Result<(), Drop> {
        if sending.closed {
            return Err(Drop::Disconnected);
        }
        self.reap(sending, |vi| vi.poll(Queue::Send));
        if sending.busy == SENDS {
            // The NIC may have something to do before they are done.
            self.reap(sending, Vi::send_done);
        }
        if sending.busy == SENDS {
            return Err(Drop::QueueFull);
        }
        let mtu = self.shared.mtu;
        let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= mtu);
        let length = length.ok_or(Drop::Misplaced)?;
        let offset = Self::offset(mtu, RECEIVES + sending.next);
        self.region.memory().copy_from(offset, bytes);
        let descriptor = &self.sends[sending.next];
        let prepared = descriptor.prepare(&[self.region.segment(offset, length)], Some(immediate));
        let posted = prepared.and_then(|()| self.vi.post_send(descriptor));
        posted.map_err(|_| Drop::Disconnected)?;
        sending.next = (sending.next + 1) % SENDS;
        sending.busy += 1;
        Ok(())
    }

    /// Takes sends back that are done. How they ended does not matter: IP notices what is lost.
    fn reap(&self, sending: &mut Sending, take: impl Fn(&Vi) -> Completion) {
        while sending.busy > 0 {
            if !is_taken(&take(&self.vi)) {
                return;
            }
            sending.busy -= 1;
        }
    }

    // --- receives ---

    /// Takes the next message, into `out`, which has room for the MTU, and posts its receive again.
    pub(crate) fn take(&self, out: &mut [u8]) -> Arrived {
        let mut receiving = lock(&self.receiving);
        if receiving.closed {
            return Arrived::Nothing;
        }
        let completion = match self.vi.poll(Queue::Recv) {
            Err(CompletionError { code: VipReturn::NotDone, .. }) => return Arrived::Nothing,
            Err(CompletionError { descriptor: None, .. }) => return Arrived::End,
            Ok(descriptor) | Err(CompletionError { descriptor: Some(descriptor), .. }) => {
                descriptor
            }
        };
        let slot = receiving.next;
        let status = completion.status();
        let arrived = if status.errors() == port::desc::status::LENGTH_ERROR {
            Arrived::Misplaced
        } else if status.is_error() {
            // Flushed, or what made the NIC stop the VI.
            Arrived::End
        } else {
            let length = (completion.length() as usize).min(out.len());
            let offset = Self::offset(self.shared.mtu, slot);
            self.region.memory().copy_to(offset, &mut out[..length]);
            match Some(completion.immediate()).filter(|_| status.has_immediate()) {
                Some(hello::KIND) => Arrived::Hello(length),
                Some(number) => {
                    let lost = receiving.packets.arrived(number);
                    lost.map_or(Arrived::Unknown, |lost| Arrived::Packet(length, lost))
                }
                None => Arrived::Unknown,
            }
        };
        receiving.next = (slot + 1) % RECEIVES;
        if arrived == Arrived::End {
            return arrived;
        }
        let segment = self.region.segment(Self::offset(self.shared.mtu, slot), self.shared.mtu);
        let descriptor = &self.receives[slot];
        let posted =
            descriptor.prepare(&[segment], None).and_then(|()| self.vi.post_recv(descriptor));
        if posted.is_err() { Arrived::End } else { arrived }
    }

    // --- the end ---

    /// Disconnects, and gives everything back. Of a NIC that fails nothing is left to be given back.
    pub(crate) fn close(&self) {
        // Nobody posts from here on, and nobody who sends waits for the disconnection.
        let was_closed = core::mem::replace(&mut lock(&self.sending).closed, true);
        lock(&self.receiving).closed = true;
        if was_closed {
            return;
        }
        self.vi.retire();
        let _ = self.shared.nic.deregister_mem(&self.region);
    }
}

impl core::ops::Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}
