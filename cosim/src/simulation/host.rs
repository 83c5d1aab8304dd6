//! The host of a node in this process: memory behind an IOMMU, and an interrupt controller.

use std::collections::{BTreeMap, BTreeSet};

use nic_model::device::{HostBus, HostReadError};
use nic_regs::limits::MSIX_VECTOR_COUNT;
use nic_regs::pci::{MSI_BASE, MSI_END};

use port::mapped;
use port::memory::{DmaMemory, PAGE_BYTES};

use super::NodeHost;

/// Unmapped bus addresses on each side of a mapping, in bytes.
const GUARD_BYTES: u64 = 16 * PAGE_BYTES as u64;
/// Faults kept.
const FAULT_LIMIT: usize = 1024;
/// A write up to this size may be a status, an event or a message, which a waiting program wants to
/// see at once.
const SMALL_WRITE_BYTES: usize = 64;

/// An access of the device that no mapping allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IommuFault {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub length: usize,
    /// A write, else a read.
    pub write: bool,
}

/// Low bits of bus addresses: room for 15 nodes, a tebibyte each.
const LOW_BITS: u32 = 44;

/// A number that looks like any other.
const fn scattered(value: u64) -> u64 {
    value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// See the module.
#[derive(Debug)]
pub struct HostMemory {
    mappings: BTreeMap<u64, DmaMemory>,
    /// Mappings of memory that the program itself may not write.
    read_only: BTreeSet<u64>,
    /// The mapping hit last, for the next access.
    last: Option<(u64, DmaMemory)>,
    next_address: u64,
    faults: Vec<IommuFault>,
    pending: [bool; MSIX_VECTOR_COUNT],
    interrupt_count: u64,
    touched: bool,
    busy: bool,
}

impl HostMemory {
    /// Nothing is mapped; `node` makes its addresses differ from those of other nodes.
    #[must_use]
    pub fn new(node: usize) -> Self {
        Self {
            mappings: BTreeMap::new(),
            read_only: BTreeSet::new(),
            last: None,
            // Above 4 GiB and different on each node, so that a mixed-up address is noticed.
            next_address: (node as u64 + 1) << 40,
            faults: Vec::new(),
            pending: [false; MSIX_VECTOR_COUNT],
            interrupt_count: 0,
            touched: false,
            busy: false,
        }
    }

    /// Maps memory; gives its address for the device.
    ///
    /// The low bits of addresses rise and are not used again, so that a late access to memory that
    /// is no longer mapped is always caught; the high ones are any, so that one that is lost is
    /// noticed.
    pub fn map(&mut self, memory: &DmaMemory) -> u64 {
        let low = self.next_address + GUARD_BYTES + memory.page_offset() as u64;
        let end = low + memory.len() as u64;
        self.next_address = end.next_multiple_of(PAGE_BYTES as u64);
        let address = low | scattered(low) << LOW_BITS;
        self.mappings.insert(address, memory.clone());
        if !mapped::access(memory).writable {
            self.read_only.insert(address);
        }
        address
    }

    /// Takes a mapping back; the device reaches it no more.
    pub fn unmap(&mut self, address: u64) {
        self.mappings.remove(&address);
        self.read_only.remove(&address);
        self.last = None;
    }

    /// Accesses that no mapping allowed, oldest first; at most 1,024 are kept.
    #[must_use]
    pub fn faults(&self) -> &[IommuFault] {
        &self.faults
    }

    /// Interrupts that the device raised.
    #[must_use]
    pub const fn interrupt_count(&self) -> u64 {
        self.interrupt_count
    }

    /// Whether a vector was raised since the last call.
    pub fn take_interrupt(&mut self, vector: u16) -> bool {
        self.pending.get_mut(usize::from(vector)).is_some_and(core::mem::take)
    }

    /// Raises a vector as if the device had; that is not counted.
    pub fn raise_interrupt(&mut self, vector: u16) {
        if let Some(pending) = self.pending.get_mut(usize::from(vector)) {
            *pending = true;
        }
    }

    /// The offset of a range in its mapping, which is then in `last`.
    fn find(&mut self, address: u64, length: usize) -> Option<usize> {
        let inside = |base: u64, memory: &DmaMemory| {
            let offset = usize::try_from(address.checked_sub(base)?).ok()?;
            (offset < memory.len() && length <= memory.len() - offset).then_some(offset)
        };
        if let Some((base, memory)) = &self.last
            && let Some(offset) = inside(*base, memory)
        {
            return Some(offset);
        }
        let (base, memory) = self.mappings.range(..=address).next_back()?;
        let offset = inside(*base, memory)?;
        self.last = Some((*base, memory.clone()));
        Some(offset)
    }

    fn fault(&mut self, address: u64, length: usize, write: bool) {
        if self.faults.len() < FAULT_LIMIT {
            self.faults.push(IommuFault { address, length, write });
        }
    }

    fn interrupt(&mut self, address: u64, data: &[u8]) {
        let vector = data.first_chunk().map(|data| u32::from_le_bytes(*data));
        let slot = vector.and_then(|v| self.pending.get_mut(usize::try_from(v).ok()?));
        match (slot, data.len()) {
            (Some(pending), 4) => {
                *pending = true;
                self.interrupt_count += 1;
                self.touched = true;
            }
            _ => self.fault(address, data.len(), true),
        }
    }
}

impl HostBus for HostMemory {
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        self.busy = true;
        let Some(offset) = self.find(address, data.len()) else {
            self.fault(address, data.len(), false);
            return Err(HostReadError { address });
        };
        if let Some((_, memory)) = &self.last {
            memory.copy_to(offset, data);
        }
        Ok(())
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        self.busy = true;
        if (MSI_BASE..MSI_END).contains(&address) {
            self.interrupt(address, data);
            return;
        }
        let Some(offset) = self.find(address, data.len()) else {
            self.fault(address, data.len(), true);
            return;
        };
        let Some((base, memory)) = &self.last else { return };
        if self.read_only.contains(base) {
            self.fault(address, data.len(), true);
            return;
        }
        memory.store_in_order(offset, data);
        self.touched |= data.len() <= SMALL_WRITE_BYTES;
    }
}

impl NodeHost for HostMemory {
    fn take_busy(&mut self) -> bool {
        core::mem::take(&mut self.busy)
    }

    /// A status, an event or an interrupt.
    fn take_touched(&mut self) -> bool {
        core::mem::take(&mut self.touched)
    }
}
