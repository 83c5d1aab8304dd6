//! The host port's device-independent TLP stream: 64-bit beats, a header of two beats in the PCIe
//! order of dwords (PCIe Base Specification 2.2), then data. Shims for a hard block translate from
//! here.
//!
//! ```text
//! beat 0  dword 0 (fmt/type, length) 31:0 | dword 1 (ids, tag, byte enables) 63:32
//! beat 1  requests: address, whole 64 bits   completions: dword 2 31:0 | zero 63:32
//! data    byte lane = address modulo 8; lanes outside the TLP are undefined
//! ```
//! Memory requests always use the 4-dword form. Each field sits in its dword as PCIe numbers it
//! (bit 31 first). Data beats: as many as the aligned 8-byte words that the TLP's dwords touch. For
//! a completion the lane comes from its lower address.

/// fmt/type of a memory read, 4 dwords, no data.
pub const MEM_READ: u8 = 0b001_00000;
/// fmt/type of a memory write, 4 dwords, data.
pub const MEM_WRITE: u8 = 0b011_00000;
/// fmt/type of a completion without data.
pub const COMPLETION: u8 = 0b000_01010;
/// fmt/type of a completion with data.
pub const COMPLETION_DATA: u8 = 0b010_01010;
/// Completion status: successful.
pub const STATUS_OK: u8 = 0b000;
/// Completion status: unsupported request.
pub const STATUS_UNSUPPORTED: u8 = 0b001;
/// Completion status: completer abort.
pub const STATUS_ABORT: u8 = 0b100;
/// Boundary that no request crosses, in bytes.
pub const BOUNDARY_BYTES: u64 = 4096;

/// Header of a memory request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// A write (posted), else a read.
    pub write: bool,
    /// Address of the first dword, a multiple of 4.
    pub address: u64,
    /// Dwords, 1 to 1,024 (1,024 is coded as 0).
    pub length_dw: u16,
    /// Requester id.
    pub requester: u16,
    /// Tag (reads).
    pub tag: u8,
    /// Byte enables of the first dword.
    pub first_be: u8,
    /// Byte enables of the last dword, zero if there is only one.
    pub last_be: u8,
}

impl Request {
    /// The two header beats.
    #[must_use]
    pub const fn to_beats(self) -> [u64; 2] {
        let kind = if self.write { MEM_WRITE } else { MEM_READ };
        let dw0 = (kind as u32) << 24 | (self.length_dw as u32 & 0x3ff);
        let dw1 = (self.requester as u32) << 16
            | (self.tag as u32) << 8
            | (self.last_be as u32 & 0xf) << 4
            | (self.first_be as u32 & 0xf);
        [dw0 as u64 | (dw1 as u64) << 32, self.address & !3]
    }

    /// Reads two header beats; the caller has checked the type.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "each field is shifted to its place")]
    pub const fn from_beats(b: [u64; 2]) -> Self {
        let length = (b[0] & 0x3ff) as u16;
        Self {
            write: (b[0] >> 24) as u8 == MEM_WRITE,
            address: b[1] & !3,
            length_dw: if length == 0 { 1024 } else { length },
            requester: (b[0] >> 48) as u16,
            tag: (b[0] >> 40) as u8,
            last_be: ((b[0] >> 36) & 0xf) as u8,
            first_be: ((b[0] >> 32) & 0xf) as u8,
        }
    }

    /// Data beats of a write.
    #[must_use]
    pub const fn data_beats(self) -> usize {
        ((self.address & 4) as usize + 4 * self.length_dw as usize).div_ceil(8)
    }
}

/// Header of a completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Data follows.
    pub data: bool,
    /// The data is poisoned (EP).
    pub poisoned: bool,
    /// Dwords of data, 1 to 1,024 (1,024 is coded as 0); 0 without data.
    pub length_dw: u16,
    /// Completer id.
    pub completer: u16,
    /// See the `STATUS_` constants.
    pub status: u8,
    /// Bytes still to come, this completion's included (4,096 is coded as 0).
    pub byte_count: u16,
    /// Requester id.
    pub requester: u16,
    /// Tag of the request.
    pub tag: u8,
    /// Low 7 bits of the address of the first byte.
    pub lower_address: u8,
}

impl Completion {
    /// The two header beats.
    #[must_use]
    pub const fn to_beats(self) -> [u64; 2] {
        let kind = if self.data { COMPLETION_DATA } else { COMPLETION };
        let dw0 = (kind as u32) << 24
            | (self.poisoned as u32) << 14
            | if self.data { self.length_dw as u32 & 0x3ff } else { 0 };
        let dw1 = (self.completer as u32) << 16
            | (self.status as u32 & 7) << 13
            | (self.byte_count as u32 & 0xfff);
        let dw2 = (self.requester as u32) << 16
            | (self.tag as u32) << 8
            | (self.lower_address as u32 & 0x7f);
        [dw0 as u64 | (dw1 as u64) << 32, dw2 as u64]
    }

    /// Reads two header beats; the caller has checked the type.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "each field is shifted to its place")]
    pub const fn from_beats(b: [u64; 2]) -> Self {
        let data = (b[0] >> 24) as u8 == COMPLETION_DATA;
        let length = (b[0] & 0x3ff) as u16;
        let byte_count = ((b[0] >> 32) & 0xfff) as u16;
        Self {
            data,
            poisoned: (b[0] >> 14) & 1 != 0,
            length_dw: match (data, length) {
                (false, _) => 0,
                (true, 0) => 1024,
                (true, n) => n,
            },
            completer: (b[0] >> 48) as u16,
            status: ((b[0] >> 45) & 7) as u8,
            byte_count: if byte_count == 0 { 4096 } else { byte_count },
            requester: (b[1] >> 16) as u16,
            tag: (b[1] >> 8) as u8,
            lower_address: (b[1] & 0x7f) as u8,
        }
    }
}
