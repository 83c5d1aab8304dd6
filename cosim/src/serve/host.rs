//! The host of a served NIC: the memory that its client gave it, and the client's interrupts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use nic_regs::pci::{MSI_BASE, MSI_END};

use crate::simulation::host::IommuFault;
use nic_model::device::{HostBus, HostReadError};
use nic_regs::limits::MSIX_VECTOR_COUNT;
use vfio_user::protocol::{DmaMap, DmaUnmap, dma, errno};

use super::memory::{Failure, Files, Memory};
use super::notifier::Notifier;

/// Most mappings of a client.
const MAPPINGS_MAX: usize = 1 << 17;
/// Most accesses of a client's device that are reported when they fail; a client that fails once fails again.
const FAULTS_MAX: u32 = 16;
/// Why an access fails.
const WRAPS: &str = "it ends behind the last address";

/// Memory that a client gave.
#[derive(Debug)]
struct Mapping {
    /// Its last address.
    last: u64,
    flags: u32,
    memory: Memory,
}

/// An access of the device that its client's memory did not allow, and why.
pub(super) type Fault = (IommuFault, Cow<'static, str>);

/// See the module.
#[derive(Debug)]
pub(super) struct Host {
    mappings: BTreeMap<u64, Mapping>,
    files: Files,
    vectors: [Option<Arc<OwnedFd>>; MSIX_VECTOR_COUNT],
    notifier: Arc<Notifier>,
    /// The device did something that keeps its clock running.
    busy: bool,
    /// Why the client must go: it kept the server waiting, or took registered memory away.
    failed: Option<Cow<'static, str>>,
    /// What went wrong since it was asked last; and how often with this client.
    faults: Vec<Fault>,
    fault_count: u32,
}

impl Host {
    pub(super) fn new(notifier: Arc<Notifier>) -> Self {
        Self {
            mappings: BTreeMap::new(),
            files: Files::default(),
            vectors: [const { None }; MSIX_VECTOR_COUNT],
            notifier,
            busy: false,
            failed: None,
            faults: Vec::new(),
            fault_count: 0,
        }
    }

    /// Accesses that failed since the last call; of each client only the first ones.
    pub(super) fn take_faults(&mut self) -> Vec<Fault> {
        core::mem::take(&mut self.faults)
    }

    /// Notes an access of the device that failed, to be reported.
    pub(super) fn fault(
        &mut self,
        address: u64,
        length: usize,
        write: bool,
        why: Cow<'static, str>,
    ) {
        self.fault_count = self.fault_count.saturating_add(1);
        if self.fault_count <= FAULTS_MAX {
            self.faults.push((IommuFault { address, length, write }, why));
        }
    }

    /// Whether the device used its host since the last call.
    pub(super) fn take_busy(&mut self) -> bool {
        core::mem::take(&mut self.busy)
    }

    /// The client has to go. That is reported, whatever was reported before.
    fn fail(&mut self, why: Cow<'static, str>) {
        self.failed = Some(why);
        self.fault_count = self.fault_count.min(FAULTS_MAX - 1);
    }

    /// Why the client has to go.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Takes memory; without a descriptor it cannot be reached.
    ///
    /// # Errors
    /// The errno for the client.
    pub(super) fn map(&mut self, map: DmaMap, file: Option<OwnedFd>) -> Result<(), u32> {
        let last = map.address + (map.size - 1);
        let taken = self.mappings.range(..=last).next_back();
        if taken.is_some_and(|(_, other)| other.last >= map.address) {
            return Err(errno::EXIST);
        }
        if self.mappings.len() >= MAPPINGS_MAX {
            return Err(errno::NO_SPACE);
        }
        let memory = match file {
            Some(file) => self.files.open(file, &map)?,
            None => Memory::Nowhere,
        };
        self.mappings.insert(map.address, Mapping { last, flags: map.flags, memory });
        Ok(())
    }

    /// Takes mappings away: all that lie in a range, which may hold none.
    ///
    /// # Errors
    /// The errno for the client: the range cuts a mapping.
    pub(super) fn unmap(&mut self, unmap: DmaUnmap) -> Result<(), u32> {
        if unmap.flags == dma::UNMAP_ALL {
            self.mappings.clear();
            return Ok(());
        }
        if unmap.flags != 0 {
            return Err(errno::NOT_SUPPORTED);
        }
        let whole = unmap.size.checked_sub(1).and_then(|n| unmap.address.checked_add(n));
        let last = whole.ok_or(errno::INVALID)?;
        let before = self.mappings.range(..unmap.address).next_back();
        if before.is_some_and(|(_, mapping)| mapping.last >= unmap.address)
            || self.mappings.range(unmap.address..=last).any(|(_, mapping)| mapping.last > last)
        {
            return Err(errno::INVALID);
        }
        let inside: Vec<u64> =
            self.mappings.range(unmap.address..=last).map(|(start, _)| *start).collect();
        for start in inside {
            self.mappings.remove(&start);
        }
        Ok(())
    }

    /// Forgets everything of a client, but not what is still to be reported.
    pub(super) fn clear(&mut self) {
        let faults = self.take_faults();
        *self = Self { faults, ..Self::new(Arc::clone(&self.notifier)) };
    }

    /// Sets or takes away the eventfd of a vector.
    pub(super) fn set_vector(&mut self, vector: usize, fd: Option<OwnedFd>) {
        self.vectors[vector] = fd.map(Arc::new);
    }

    /// Whether a vector has an eventfd.
    pub(super) fn has_vector(&self, vector: usize) -> bool {
        self.vectors.get(vector).is_some_and(Option::is_some)
    }

    /// Raises an interrupt.
    pub(super) fn raise(&mut self, vector: usize) {
        let Some(Some(fd)) = self.vectors.get(vector) else { return };
        if self.failed.is_none() && !self.notifier.ring(fd) {
            let why = Cow::Borrowed("its client let an interrupt wait");
            self.fail(why.clone());
            self.fault(MSI_BASE, 4, true, why);
        }
    }

    /// The mapping of an address, the offset in it, and how many of `length` bytes it has.
    ///
    /// # Errors
    /// Why the device may not go there.
    fn find(
        &self,
        address: u64,
        length: usize,
        right: u32,
    ) -> Result<(&Mapping, usize, usize), &'static str> {
        const NOTHING: &str = "its client mapped nothing there";
        let (start, mapping) = self.mappings.range(..=address).next_back().ok_or(NOTHING)?;
        if mapping.last < address {
            return Err(NOTHING);
        }
        if mapping.flags & right == 0 {
            return Err("its client mapped that without this right");
        }
        let left = usize::try_from(mapping.last - address).unwrap_or(usize::MAX);
        let offset = usize::try_from(address - start).map_err(|_| NOTHING)?;
        Ok((mapping, offset, length.min(left.saturating_add(1))))
    }

    /// Reads memory.
    ///
    /// # Errors
    /// The first address that cannot be read, and why.
    fn load(&self, address: u64, data: &mut [u8]) -> Result<(), (u64, Cow<'static, str>)> {
        let mut done = 0;
        while done < data.len() {
            let at = address.checked_add(done as u64).ok_or((u64::MAX, WRAPS.into()))?;
            let (mapping, offset, length) =
                self.find(at, data.len() - done, dma::READ).map_err(|why| (at, why.into()))?;
            let part = &mut data[done..done + length];
            mapping.memory.load(offset, part).map_err(|failure| match failure {
                Failure::Nowhere(why) => (at, why.into()),
                Failure::Lost(place) => (at, lost(place)),
            })?;
            done += length;
        }
        Ok(())
    }

    /// Writes memory, up to the first address that cannot be written.
    ///
    /// # Errors
    /// That address, and why.
    fn store(&mut self, address: u64, data: &[u8]) -> Result<(), (u64, Cow<'static, str>)> {
        let mut done = 0;
        while done < data.len() {
            let at = address.checked_add(done as u64).ok_or((u64::MAX, WRAPS.into()))?;
            let (mapping, offset, length) =
                self.find(at, data.len() - done, dma::WRITE).map_err(|why| (at, why.into()))?;
            match mapping.memory.store(offset, &data[done..done + length]) {
                Ok(()) => {}
                Err(Failure::Nowhere(why)) => return Err((at, why.into())),
                // What was to be written is lost, so nothing that says it is there may be written.
                Err(Failure::Lost(place)) => {
                    let why = lost(place);
                    self.fail(why.clone());
                    return Err((at, why));
                }
            }
            done += length;
        }
        Ok(())
    }
}

/// What is said of registered memory that the program does not have any more.
fn lost(place: u64) -> Cow<'static, str> {
    let text = format!(
        "the program ended, or unmapped or protected memory that is registered, at {place:#x}"
    );
    text.into()
}

impl HostBus for Host {
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        self.busy = true;
        let length = data.len();
        self.load(address, data).map_err(|(at, why)| {
            self.fault(at, length, false, why);
            HostReadError { address }
        })
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        self.busy = true;
        // After a write that failed the client's device does nothing more.
        if self.failed.is_some() {
            return;
        }
        if (MSI_BASE..MSI_END).contains(&address) {
            if let Some(vector) = data.first_chunk().map(|data| u32::from_le_bytes(*data)) {
                self.raise(usize::try_from(vector).unwrap_or(usize::MAX));
            }
            return;
        }
        if let Err((at, why)) = self.store(address, data) {
            self.fault(at, data.len(), true, why);
        }
    }
}

#[cfg(test)]
mod tests;
