//! Regions, cookies, tripwires: what a domain gives others, and what it watches.

/// A domain of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClanPeer {
    /// Host address of the node, which only the network understands.
    pub host: Vec<u8>,
    /// Number of the domain in the node.
    pub domain: u16,
}

/// Number of a region of this domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionNumber(pub u16);

/// What the holder of a cookie may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessRights {
    /// Read.
    pub read: bool,
    /// Write.
    pub write: bool,
}

impl AccessRights {
    /// Reads and writes.
    pub const ALL: Self = Self { read: true, write: true };
    /// Writes alone.
    pub const WRITE: Self = Self { read: false, write: true };
    /// Reads alone.
    pub const READ: Self = Self { read: true, write: false };

    const fn to_bits(self) -> u8 {
        self.read as u8 | (self.write as u8) << 1
    }

    const fn from_bits(bits: u8) -> Self {
        Self { read: bits & 1 != 0, write: bits & 2 != 0 }
    }
}

/// The right to access a region: it names the region and says what the holder may do. It means
/// something only to the domain that the region was opened to, until it is revoked; then its
/// generation is over, and no later cookie has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cookie {
    /// The region, in its owner.
    pub region: RegionNumber,
    /// What the holder may do.
    pub rights: AccessRights,
    /// Which of the region's cookies it is.
    pub generation: u32,
}

impl Cookie {
    /// As programs send it to each other: region in bits 0 to 15, rights in 16 and 17, generation in
    /// 32 to 63.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.region.0 as u64 | (self.rights.to_bits() as u64) << 16 | (self.generation as u64) << 32
    }

    /// The cookie of [`Cookie::to_bits`]. None if other bits are set.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "fields of a word")]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits & 0xfffc_0000 != 0 {
            return None;
        }
        Some(Self {
            region: RegionNumber(bits as u16),
            rights: AccessRights::from_bits((bits >> 16) as u8),
            generation: (bits >> 32) as u32,
        })
    }
}

/// Number of a tripwire of this domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TripwireNumber(pub u32);

/// A watch on one word of a region (CLAN paper 2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tripwire {
    /// The region.
    pub region: RegionNumber,
    /// Offset of the 8-byte word, a multiple of 8.
    pub offset: u64,
    /// Which accesses by others fire it.
    pub on: AccessRights,
    /// It is cleared by its first access.
    pub once: bool,
    /// Number of the event queue that its event goes to.
    pub queue: u16,
    /// What its event carries.
    pub tag: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_eight_bytes() {
        let cookie = Cookie {
            region: RegionNumber(0xabcd),
            rights: AccessRights::WRITE,
            generation: 0x8000_0001,
        };
        assert_eq!(cookie.to_bits(), 0x8000_0001_0002_abcd);
        assert_eq!(Cookie::from_bits(cookie.to_bits()), Some(cookie));
        for bit in 18..32 {
            assert_eq!(Cookie::from_bits(cookie.to_bits() ^ 1 << bit), None);
        }
    }
}
