//! Copies between memories that others may change meanwhile.

use core::ptr::NonNull;

/// Fewest bytes for which the processor's own copy is faster than a loop.
const OWN_COPY: usize = 256;

/// Copies bytes, in any order. Both sides may be read and written by others at any time; what is
/// written later becomes visible later.
///
/// # Safety
/// `length` bytes from `from` on can be read, from `to` on written.
#[inline]
pub(super) unsafe fn copy(to: NonNull<u8>, from: NonNull<u8>, length: usize) {
    if length >= OWN_COPY {
        // SAFETY: as the caller says.
        return unsafe { long(to, from, length) };
    }
    // SAFETY: as the caller says.
    unsafe { short(to, from, length) };
}

/// The processor takes whole lines without reading them first, which from one cache to another is
/// several times as fast as single stores.
#[cfg(target_arch = "x86_64")]
unsafe fn long(to: NonNull<u8>, from: NonNull<u8>, length: usize) {
    // SAFETY: an instruction that reads and writes these bytes and nothing else. To the compiler they
    // are memory that anybody may change. The direction flag is clear, as everywhere.
    unsafe {
        core::arch::asm!(
            "rep movsb",
            inout("rdi") to.as_ptr() => _,
            inout("rsi") from.as_ptr() => _,
            inout("rcx") length => _,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn long(to: NonNull<u8>, from: NonNull<u8>, length: usize) {
    // SAFETY: as the caller says.
    unsafe { short(to, from, length) };
}

/// By double words, whatever the alignment, and then by bytes.
#[inline]
unsafe fn short(to: NonNull<u8>, from: NonNull<u8>, length: usize) {
    let words = length / 8;
    for i in 0..words {
        // SAFETY: eight bytes inside.
        let from = unsafe { from.add(8 * i) }.cast::<[u8; 8]>();
        // SAFETY: as above.
        let to = unsafe { to.add(8 * i) }.cast::<[u8; 8]>();
        // SAFETY: valid for reads, and of alignment 1.
        let word = unsafe { from.read_volatile() };
        // SAFETY: valid for writes, and of alignment 1.
        unsafe { to.write_volatile(word) };
    }
    for i in 8 * words..length {
        // SAFETY: inside.
        let from = unsafe { from.add(i) };
        // SAFETY: inside.
        let to = unsafe { to.add(i) };
        // SAFETY: valid for reads.
        let byte = unsafe { from.read_volatile() };
        // SAFETY: valid for writes.
        unsafe { to.write_volatile(byte) };
    }
}
