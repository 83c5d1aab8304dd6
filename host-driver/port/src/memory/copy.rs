//! Copies between memories that others may change meanwhile.

use core::ptr::NonNull;

/// Fewest bytes for which the processor's own copy is faster than a loop.
pub(super) const OWN_COPY: usize = 256;

/// Copies bytes, in any order. Both sides may be read and written by others at any time; what is
/// written later becomes visible later.
///
/// # Safety
/// `length` bytes from `from` on can be read, from `to` on written.
#[inline]
pub(super) unsafe fn copy(to: NonNull<u8>, from: NonNull<u8>, length: usize) {
    // A short copy is worth a loop only if it is one of double words.
    let places = (to.addr().get() | from.addr().get()) % 8;
    if length >= OWN_COPY || places != 0 {
        // SAFETY: as the caller says.
        return unsafe { long(to, from, length) };
    }
    // SAFETY: as the caller says; both are aligned.
    unsafe { short(to.cast(), from.cast(), length) };
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
    unsafe { bytes(to, from, length) };
}

unsafe fn bytes(to: NonNull<u8>, from: NonNull<u8>, length: usize) {
    for i in 0..length {
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

/// By double words, and then by bytes.
///
/// # Safety
/// As [`copy`], and both are aligned.
#[inline]
unsafe fn short(to: NonNull<u64>, from: NonNull<u64>, length: usize) {
    let words = length / 8;
    for i in 0..words {
        // SAFETY: inside.
        let from = unsafe { from.add(i) };
        // SAFETY: inside.
        let to = unsafe { to.add(i) };
        // SAFETY: valid for reads, and aligned.
        let word = unsafe { from.read_volatile() };
        // SAFETY: valid for writes, and aligned.
        unsafe { to.write_volatile(word) };
    }
    // SAFETY: inside, or just behind.
    let to = unsafe { to.add(words) };
    // SAFETY: as above.
    let from = unsafe { from.add(words) };
    // SAFETY: so many bytes are left.
    unsafe { bytes(to.cast(), from.cast(), length % 8) };
}
