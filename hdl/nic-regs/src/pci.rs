//! PCI identity of the device, and what of its configuration space software may rely on.

/// Vendor id. Not assigned by the PCI-SIG: a board takes its maker's.
pub const VENDOR_ID: u16 = crate::limits::MAGIC;
/// Device id.
pub const DEVICE_ID: u16 = 0x0001;
/// Class code: network controller, other.
pub const CLASS: u32 = 0x02_80_00;
/// Offset of the command register (PCI 3.0, 6.2.2).
pub const COMMAND_OFFSET: u16 = 0x04;
/// Bit of the command register: the device answers at its BARs.
pub const COMMAND_MEMORY: u16 = 1 << 1;
/// Bit of the command register: the device may send requests.
pub const COMMAND_MASTER: u16 = 1 << 2;
/// Offset of the subsystem id. A simulator puts the node's number there (7:0), and the number of its
/// nodes (15:8). A board has 0.
pub const SUBSYSTEM_ID_OFFSET: u16 = 0x2e;
/// Offset of the pending bits of MSI-X in BAR0, behind the table.
pub const MSIX_PENDING_OFFSET: u32 = 0x1800;
/// First address of message-signalled interrupts on a PC: writes there are interrupts (Intel SDM
/// volume 3, 11.11.1).
pub const MSI_BASE: u64 = 0xfee0_0000;
/// First address behind them.
pub const MSI_END: u64 = 0xfef0_0000;

const _: () = {
    let table = crate::csr::MSIX_TABLE_OFFSET as usize;
    let entries = crate::csr::MSIX_ENTRY_BYTES as usize * crate::limits::MSIX_VECTOR_COUNT;
    assert!(table + entries <= MSIX_PENDING_OFFSET as usize);
    assert!(MSIX_PENDING_OFFSET < crate::csr::BAR_SIZE);
};
