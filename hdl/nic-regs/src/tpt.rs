//! The region table (translation and protection table): handles, rights, the entry as the RTL packs
//! it.

/// Memory handle: region index in bits 15:0, generation in bits 31:16. Generations start at 1, so
/// no valid handle is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub u32);

impl Handle {
    /// Joins index and generation.
    #[must_use]
    pub const fn new(index: u16, generation: u16) -> Self {
        Self(index as u32 | (generation as u32) << 16)
    }

    /// Region index.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "low half")]
    pub const fn index(self) -> u16 {
        self.0 as u16
    }

    /// Generation, raised each time the index is used again.
    #[must_use]
    pub const fn generation(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

/// Right: the region holds data. Always set for a region in use.
pub const RIGHT_VALID: u8 = 0x1;
/// Right: target of RDMA writes.
pub const RIGHT_RDMA_WRITE: u8 = 0x2;
/// Right: source of RDMA reads.
pub const RIGHT_RDMA_READ: u8 = 0x4;

/// A region as the device knows it: one contiguous bus-address range with a virtual base.
///
/// `bus_base` and `va_base` are equal modulo 4,096. A region does not wrap around either address
/// space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// First virtual address.
    pub va_base: u64,
    /// Bus address of the first byte.
    pub bus_base: u64,
    /// Length in bytes, at least 1.
    pub length: u32,
    /// Protection tag.
    pub tag: u16,
    /// Generation of the handle.
    pub generation: u16,
    /// Owning domain.
    pub domain: u8,
    /// Rights, see the constants.
    pub rights: u8,
}
