//! Narrowing, where the contract says 'low bits'.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "low bits are meant"
)]

/// Bits 7:0.
pub(crate) const fn low8(x: u32) -> u8 {
    x as u8
}

/// Bits 15:0.
pub(crate) const fn low16(x: u32) -> u16 {
    x as u16
}

/// Bits 31:0.
pub(crate) const fn low32(x: u64) -> u32 {
    x as u32
}

/// Bits 63:32.
pub(crate) const fn high32(x: u64) -> u32 {
    (x >> 32) as u32
}

/// `a - b` of two indices that wrap at 16 bits.
pub(crate) const fn diff16(a: u16, b: u16) -> i16 {
    a.wrapping_sub(b) as i16
}

/// `a - b` of two indices that wrap at 8 bits.
pub(crate) const fn diff8(a: u8, b: u8) -> i8 {
    a.wrapping_sub(b) as i8
}

/// A count that is small by construction; a larger one would be a bug of the model.
pub(crate) fn small8(x: usize) -> u8 {
    debug_assert!(x <= 255, "count does not fit");
    x as u8
}

/// A count that is small by construction; a larger one would be a bug of the model.
pub(crate) fn small16(x: usize) -> u16 {
    debug_assert!(x <= 0xffff, "count does not fit");
    x as u16
}

/// A length that is small by construction; a larger one would be a bug of the model.
pub(crate) fn small32(x: usize) -> u32 {
    debug_assert!(u32::try_from(x).is_ok(), "length does not fit");
    x as u32
}

/// A size that the contract gives as a `u64`.
pub(crate) const fn size(bytes: u64) -> usize {
    bytes as usize
}
