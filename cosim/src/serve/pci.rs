//! The configuration space of a served NIC.

use nic_regs::csr::{BAR_SIZE, MSIX_TABLE_OFFSET};
use nic_regs::limits::MSIX_VECTOR_COUNT;
use nic_regs::pci::{
    CLASS, COMMAND_MASTER, COMMAND_MEMORY, COMMAND_OFFSET, DEVICE_ID, MSIX_PENDING_OFFSET,
    SUBSYSTEM_ID_OFFSET, VENDOR_ID,
};

/// Size of the space, in bytes.
pub(super) const CONFIG_BYTES: usize = 4096;
/// The PCI Express capability, and MSI-X behind it.
const EXPRESS: usize = 0x40;
const MSIX: usize = 0x80;
/// Device control, in the PCI Express capability.
const DEVICE_CONTROL: usize = EXPRESS + 8;
/// Writing this bit of it resets the function.
const FUNCTION_RESET: u8 = 0x80;
/// Bit of the command register: no interrupts by its pin, of which there is none.
const COMMAND_NO_INTX: u16 = 1 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct ConfigSpace {
    bytes: Box<[u8; CONFIG_BYTES]>,
    /// Bits that software may write.
    writable: Box<[u8; CONFIG_BYTES]>,
}

fn put(space: &mut [u8; CONFIG_BYTES], offset: usize, bytes: &[u8]) {
    space[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// A 64-bit memory BAR: what it reads as and which bits can be written.
fn bar(
    bytes: &mut [u8; CONFIG_BYTES],
    writable: &mut [u8; CONFIG_BYTES],
    number: usize,
    size: u64,
) {
    put(bytes, 0x10 + 4 * number, &4_u64.to_le_bytes());
    put(writable, 0x10 + 4 * number, &(!(size.next_power_of_two() - 1)).to_le_bytes());
}

impl ConfigSpace {
    /// Of a node in a network.
    pub(super) fn new(node: u8, nodes: u8) -> Self {
        let mut bytes = Box::new([0; CONFIG_BYTES]);
        let mut writable = Box::new([0; CONFIG_BYTES]);
        put(&mut bytes, 0x00, &VENDOR_ID.to_le_bytes());
        put(&mut bytes, 0x02, &DEVICE_ID.to_le_bytes());
        let command = COMMAND_MEMORY | COMMAND_MASTER | COMMAND_NO_INTX;
        put(&mut writable, COMMAND_OFFSET.into(), &command.to_le_bytes());
        // Status: there are capabilities.
        put(&mut bytes, 0x06, &0x0010_u16.to_le_bytes());
        put(&mut bytes, 0x08, &(CLASS << 8).to_le_bytes());
        put(&mut writable, 0x0c, &[0xff]);
        bar(&mut bytes, &mut writable, 0, BAR_SIZE.into());
        bar(&mut bytes, &mut writable, 2, nic_regs::doorbell::BAR_SIZE);
        put(&mut bytes, 0x2c, &VENDOR_ID.to_le_bytes());
        let subsystem = [node, nodes];
        put(&mut bytes, SUBSYSTEM_ID_OFFSET.into(), &subsystem);
        put(&mut bytes, 0x34, &[0x40]);
        put(&mut writable, 0x3c, &[0xff]);
        // PCI Express: an endpoint, version 2, payloads to 512 bytes, with function-level reset.
        put(&mut bytes, EXPRESS, &[0x10, 0x80, 0x02, 0x00]);
        put(&mut bytes, EXPRESS + 4, &(2 | 1 << 15 | 1_u32 << 28).to_le_bytes());
        put(&mut writable, DEVICE_CONTROL, &0x7fff_u16.to_le_bytes());
        // Link: 8 GT/s, 8 lanes, as capability and as status.
        put(&mut bytes, EXPRESS + 12, &0x0083_u32.to_le_bytes());
        put(&mut bytes, EXPRESS + 18, &0x0083_u16.to_le_bytes());
        // MSI-X: number of vectors less one; table and pending bits in BAR0.
        let vectors = u16::try_from(MSIX_VECTOR_COUNT - 1).unwrap_or(0).to_le_bytes();
        put(&mut bytes, MSIX, &[0x11, 0x00, vectors[0], vectors[1]]);
        put(&mut bytes, MSIX + 4, &MSIX_TABLE_OFFSET.to_le_bytes());
        put(&mut bytes, MSIX + 8, &MSIX_PENDING_OFFSET.to_le_bytes());
        put(&mut writable, MSIX + 2, &0xc000_u16.to_le_bytes());
        Self { bytes, writable }
    }

    /// As after power-on, as a reset of the function leaves it.
    pub(super) fn reset(&mut self) {
        let id = usize::from(SUBSYSTEM_ID_OFFSET);
        *self = Self::new(self.bytes[id], self.bytes[id + 1]);
    }

    /// Whether the function may send requests.
    pub(super) fn is_master(&self) -> bool {
        u16::from(self.bytes[usize::from(COMMAND_OFFSET)]) & COMMAND_MASTER != 0
    }

    /// Bytes of the space; the range is inside.
    pub(super) fn read(&self, offset: usize, length: usize) -> &[u8] {
        &self.bytes[offset..offset + length]
    }

    /// Writes bytes; the range is inside. True if the function is to be reset.
    pub(super) fn write(&mut self, offset: usize, data: &[u8]) -> bool {
        for (at, byte) in (offset..).zip(data) {
            let mask = self.writable[at];
            self.bytes[at] = self.bytes[at] & !mask | byte & mask;
        }
        let at = (DEVICE_CONTROL + 1).checked_sub(offset);
        at.and_then(|at| data.get(at)).is_some_and(|byte| byte & FUNCTION_RESET != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_finds_the_capabilities_and_sizes() {
        let mut space = ConfigSpace::new(2, 3);
        assert_eq!(space.read(0, 4), [0xa7, 0x51, 1, 0]);
        assert_eq!(space.read(0x2e, 2), [2, 3]);
        let mut at = usize::from(space.read(0x34, 1)[0]);
        let mut found = Vec::new();
        while at != 0 {
            found.push(space.read(at, 1)[0]);
            at = space.read(at + 1, 1)[0].into();
        }
        assert_eq!(found, [0x10, 0x11]);
        for (offset, size) in [(0x10, 0x2000_u64), (0x18, 0x4_0000)] {
            space.write(offset, &[0xff; 8]);
            let mask = u64::from_le_bytes(*space.read(offset, 8).first_chunk().unwrap());
            assert_eq!(!(mask & !0xf) + 1, size);
            assert_eq!(mask & 0xf, 4, "64 bits, not prefetchable");
        }
        assert!(!space.write(0x0, &[9; 4]) && space.read(0, 1) == [0xa7], "read-only");
        assert!(!space.is_master());
        space.write(4, &[6, 0]);
        assert!(space.is_master());
        space.reset();
        assert_eq!(space.bytes, ConfigSpace::new(2, 3).bytes, "what software wrote is cleared");
    }

    #[test]
    fn only_its_bit_resets_the_function() {
        let mut space = ConfigSpace::new(0, 2);
        assert!(!space.write(DEVICE_CONTROL, &[0xff, 0x7f]));
        assert!(space.write(DEVICE_CONTROL, &[0, 0x80]));
        assert!(space.write(DEVICE_CONTROL + 1, &[0x80]));
        assert!(space.write(DEVICE_CONTROL - 4, &[0xff; 8]));
        assert!(!space.write(DEVICE_CONTROL + 2, &[0xff]));
        assert_eq!(space.read(DEVICE_CONTROL + 1, 1)[0] & 0x80, 0, "it reads as 0");
    }
}
