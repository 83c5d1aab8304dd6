//! A bare host: one block of memory at a bus address, and what the device did outside it.
//!
//! It is not [`crate::simulation::host::HostMemory`], which has mappings and an IOMMU: there is no
//! driver here that maps anything, and lockstep compares the whole block of both devices, as slices.

use std::ops::Range;

use nic_model::device::{HostBus, HostReadError};

use crate::simulation::NodeHost;

/// First bus address of the memory.
pub const BUS_BASE: u64 = 0x4_0000_0000;
/// Virtual address of the first byte; equal to the bus address modulo a page.
pub const VA_BASE: u64 = 0x7f12_3456_0000;
/// Address of MSI-X vector 0; vector n is 4 n bytes behind.
pub const MSI_BASE: u64 = 0xfee0_0000;

/// A write of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Into memory: where, and what.
    Memory(Range<usize>, Vec<u8>),
    /// An interrupt of this vector, with this data.
    Interrupt(usize, u32),
}

/// Memory of one node.
#[derive(Debug)]
pub struct Host {
    /// The bytes.
    pub memory: Vec<u8>,
    /// Interrupts by vector.
    pub interrupts: [u64; 32],
    /// Writes outside memory and the interrupt window.
    pub stray_writes: Vec<u64>,
    /// All writes since they were last taken, in order, for who wants them.
    writes: Option<Vec<Write>>,
    /// The device has read or written.
    busy: bool,
}

impl Host {
    /// Memory of this many zero bytes.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self {
            memory: vec![0; size],
            interrupts: [0; 32],
            stray_writes: Vec::new(),
            writes: None,
            busy: false,
        }
    }

    /// Keeps writes from here on.
    pub fn keep_writes(&mut self) {
        self.writes = Some(Vec::new());
    }

    /// Those that are kept.
    #[must_use]
    pub fn writes(&self) -> &[Write] {
        self.writes.as_deref().unwrap_or_default()
    }

    /// Takes those that are kept.
    pub fn take_writes(&mut self) -> Vec<Write> {
        self.writes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn range(&self, address: u64, length: usize) -> Option<Range<usize>> {
        let start = usize::try_from(address.checked_sub(BUS_BASE)?).ok()?;
        let end = start.checked_add(length)?;
        (end <= self.memory.len()).then_some(start..end)
    }

    /// Copies bytes in, at an offset from the base.
    pub fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.memory[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// A little-endian word at an offset from the base.
    #[must_use]
    pub fn word(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.memory[offset..offset + 4].try_into().expect("four bytes"))
    }
}

impl HostBus for Host {
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        self.busy = true;
        let range = self.range(address, data.len()).ok_or(HostReadError { address })?;
        data.copy_from_slice(&self.memory[range]);
        Ok(())
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        self.busy = true;
        if let Some(range) = self.range(address, data.len()) {
            self.memory[range.clone()].copy_from_slice(data);
            if let Some(writes) = &mut self.writes {
                writes.push(Write::Memory(range, data.to_vec()));
            }
        } else if (MSI_BASE..MSI_BASE + 128).contains(&address) {
            let vector = usize::try_from((address - MSI_BASE) / 4).expect("below 32");
            self.interrupts[vector] += 1;
            if let Some(writes) = &mut self.writes {
                let data = data.first_chunk().map_or(0, |data| u32::from_le_bytes(*data));
                writes.push(Write::Interrupt(vector, data));
            }
        } else {
            self.stray_writes.push(address);
        }
    }
}

impl NodeHost for Host {
    fn take_busy(&mut self) -> bool {
        std::mem::take(&mut self.busy)
    }
}
