//! A device that takes a bit wrongly.

use cosim::lockstep::{FEATURES, offset_in_descriptor};
use cosim::testbench::host::BUS_BASE;
use cosim::testbench::{EVENT_OFFSET, RING_BYTES};
use nic_model::Model;
use nic_model::device::{Beat, Device, HostBus, HostReadError, Link};
use nic_regs::admin::{ENTRY_BYTES, Opcode};
use nic_regs::csr::{COUNTER_OFFSET, MSIX_ENTRY_BYTES, MSIX_TABLE_OFFSET};
use nic_regs::desc::{CONTROL_BYTES, SEGMENT_BYTES};
use nic_regs::doorbell::{PAGE_BYTES, PUSH_LINE_BYTES, PUSH_OFFSET};
use nic_regs::event::{EVENT_BYTES, MESSAGE_BYTES, WIDE_ENTRY_BYTES};
use nic_regs::frame::{CRC_INIT, HEADER_BEATS, Type, crc_step};

/// Where a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The control segment of descriptors, as the device reads it.
    Control,
    /// Their other segments.
    Segment,
    /// Their control segment, as the device writes it.
    Status,
    /// Admin entries of an opcode, or of all.
    Admin(Option<Opcode>),
    /// Their completions.
    Completion,
    /// Event records.
    Record,
    /// Messages in front of them.
    Message,
    /// Headers of frames that the device sends.
    Header,
    /// RDMA headers behind those.
    RdmaHeader,
    /// Writes of a doorbell, at this place of its page.
    Doorbell(u64),
    /// Words of a push line, from its begin on.
    Push,
    /// Writes of a register.
    Register(u32),
    /// Reads of one.
    ReadOnly(u32),
    /// Entries of the MSI-X table.
    Msix,
    /// Reads of counters.
    Counter,
}

/// What is wrong with a device.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) name: String,
    /// Where the field is, and its bit.
    pub(crate) places: Vec<(Place, u32)>,
    /// The bit is always 0 there, on its way in or out; else it is flipped.
    pub(crate) clears: bool,
}

/// Spoils a bit of bytes of which the first one has this bit number.
fn spoil(data: &mut [u8], first: i64, bit: u32, clears: bool) {
    let at = usize::try_from(i64::from(bit) - first).ok();
    let Some((byte, at)) = at.and_then(|at| Some((data.get_mut(at / 8)?, at % 8))) else { return };
    if clears {
        *byte &= !(1 << at);
    } else {
        *byte ^= 1 << at;
    }
}

impl Fault {
    /// Spoils bytes that are read or written at an offset of something.
    fn at(&self, place: Place, offset: u64, data: &mut [u8]) {
        self.at_bit(place, 8 * offset as i64, data);
    }

    fn at_bit(&self, place: Place, first: i64, data: &mut [u8]) {
        for &(_, bit) in self.places.iter().filter(|(of, _)| *of == place) {
            spoil(data, first, bit, self.clears);
        }
    }

    fn has(&self, place: Place) -> bool {
        self.places.iter().any(|(of, _)| *of == place)
    }
}

/// The frame that is being sent, so far.
struct Sending {
    beats: usize,
    crc: u32,
    /// It has an RDMA header.
    is_rdma: bool,
}

impl Sending {
    const NOTHING: Self = Self { beats: 0, crc: CRC_INIT, is_rdma: false };
}

/// A model that is spoilt at its interfaces.
pub(crate) struct Faulty {
    inner: Model,
    fault: Fault,
    sending: Sending,
    /// The register that is being read.
    reads: Option<u64>,
}

impl Faulty {
    pub(crate) fn new(fault: Fault) -> Self {
        let inner = Model::with_features(FEATURES);
        Self { inner, fault, sending: Sending::NOTHING, reads: None }
    }
}

/// The host as it appears to a device.
struct FaultyHost<'a> {
    inner: &'a mut dyn HostBus,
    fault: &'a Fault,
}

/// The ring of messages.
const MESSAGES: usize = 3;

impl FaultyHost<'_> {
    fn spoil_read(&self, offset: usize, data: &mut [u8]) {
        if offset < EVENT_OFFSET {
            let word = data.first_chunk().map_or(!0, |word| u32::from_le_bytes(*word));
            self.fault.at(Place::Admin(None), 0, data);
            if let Some(opcode) = Opcode::from_bits(word) {
                self.fault.at(Place::Admin(Some(opcode)), 0, data);
            }
        } else if let Some(at) = offset_in_descriptor(offset) {
            self.fault.at(Place::Control, at as u64, data);
            let end = (at + data.len()) as u64;
            let mut segment = CONTROL_BYTES;
            while segment < end {
                let first = 8 * (at as i64 - segment as i64);
                self.fault.at_bit(Place::Segment, first, data);
                segment += SEGMENT_BYTES;
            }
        }
    }

    fn spoil_write(&self, offset: usize, data: &mut [u8]) {
        if offset < EVENT_OFFSET {
            self.fault.at(Place::Completion, offset as u64 % ENTRY_BYTES, data);
        } else if let Some(at) = offset.checked_sub(EVENT_OFFSET).filter(|at| *at < 4 * RING_BYTES)
        {
            let is_wide = at / RING_BYTES == MESSAGES;
            let at = at as u64 % if is_wide { WIDE_ENTRY_BYTES } else { EVENT_BYTES };
            let before = if is_wide { MESSAGE_BYTES } else { 0 };
            if is_wide {
                self.fault.at(Place::Message, at, &mut data[..MESSAGE_BYTES as usize]);
            }
            self.fault.at_bit(Place::Record, 8 * (at as i64 - before as i64), data);
        } else if let Some(at) = offset_in_descriptor(offset) {
            self.fault.at(Place::Status, at as u64, data);
        }
    }
}

impl HostBus for FaultyHost<'_> {
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        self.inner.read(address, data)?;
        if let Some(offset) = address.checked_sub(BUS_BASE) {
            self.spoil_read(offset as usize, data);
        }
        Ok(())
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        let mut data = data.to_vec();
        if let Some(offset) = address.checked_sub(BUS_BASE) {
            self.spoil_write(offset as usize, &mut data);
        }
        self.inner.write(address, &data);
    }
}

/// The link as it appears to a device.
struct FaultyLink<'a> {
    inner: &'a mut dyn Link,
    fault: &'a Fault,
    sending: &'a mut Sending,
}

impl Link for FaultyLink<'_> {
    fn ready(&self, now: u64) -> bool {
        self.inner.ready(now)
    }

    fn send(&mut self, now: u64, beat: Beat) {
        let Beat { data, last } = beat;
        let sending = &mut *self.sending;
        if last {
            self.inner.send(now, Beat { data: u64::from(!sending.crc), last });
            *sending = Sending::NOTHING;
            return;
        }
        if sending.beats == 0 {
            let kind = (data >> 8) as u8;
            sending.is_rdma = [Type::RdmaWrite as u8, Type::ReadRequest as u8].contains(&kind);
        }
        let mut bytes = data.to_le_bytes();
        let at = |beat: usize| 64 * beat as i64;
        if sending.beats < HEADER_BEATS {
            self.fault.at_bit(Place::Header, at(sending.beats), &mut bytes);
        } else if sending.is_rdma {
            self.fault.at_bit(Place::RdmaHeader, at(sending.beats - HEADER_BEATS), &mut bytes);
        }
        let data = u64::from_le_bytes(bytes);
        (sending.beats, sending.crc) = (sending.beats + 1, crc_step(sending.crc, data));
        self.inner.send(now, Beat { data, last });
    }

    fn receive(&mut self, now: u64) -> Option<Beat> {
        self.inner.receive(now)
    }
}

impl Device for Faulty {
    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) {
        let mut data = data.to_vec();
        let place = offset % PAGE_BYTES;
        if bar == 2 {
            self.fault.at(Place::Doorbell(place), 0, &mut data);
            if let Some(at) = place.checked_sub(PUSH_OFFSET) {
                self.fault.at(Place::Push, at % PUSH_LINE_BYTES, &mut data);
            }
        } else if bar == 0 && data.len() == 4 {
            self.fault.at(Place::Register(offset as u32), 0, &mut data);
            if let Some(at) = (offset as u32).checked_sub(MSIX_TABLE_OFFSET) {
                self.fault.at(Place::Msix, u64::from(at % MSIX_ENTRY_BYTES), &mut data);
            }
        }
        self.inner.bar_write(bar, offset, &data);
    }

    fn bar_read(&mut self, bar: u8, offset: u64, length: usize) {
        self.reads = (bar == 0).then_some(offset);
        self.inner.bar_read(bar, offset, length);
    }

    fn bar_response(&mut self) -> Option<u64> {
        let answer = self.inner.bar_response()?;
        let mut bytes = answer.to_le_bytes();
        if let Some(offset) = self.reads.map(|offset| offset as u32) {
            self.fault.at(Place::ReadOnly(offset), 0, &mut bytes);
            if (COUNTER_OFFSET..MSIX_TABLE_OFFSET).contains(&offset) {
                self.fault.at(Place::Counter, 0, &mut bytes);
            }
        }
        Some(u64::from_le_bytes(bytes))
    }

    fn step(&mut self, now: u64, host: &mut dyn HostBus, link: &mut dyn Link) {
        let Self { inner, fault, sending, .. } = self;
        let mut host = FaultyHost { inner: host, fault };
        // The CRC of a frame costs time.
        if fault.has(Place::Header) || fault.has(Place::RdmaHeader) {
            inner.step(now, &mut host, &mut FaultyLink { inner: link, fault, sending });
        } else {
            inner.step(now, &mut host, link);
        }
    }

    fn busy(&self) -> bool {
        self.inner.busy()
    }
}
