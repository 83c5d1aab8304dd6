//! Barriers between memory and registers that are mapped.
//!
//! What programs order between each other (`Ordering::Release`) orders only accesses of memory. A
//! device learns of a store to a register by another way, so where a processor reorders stores, a
//! register store behind them needs a barrier of its own: the ones of Linux's `writel` and `wmb`
//! (`Documentation/memory-barriers.txt`, "Kernel I/O barrier effects").
#![cfg_attr(
    any(target_arch = "aarch64", target_arch = "riscv64"),
    expect(unsafe_code, reason = "barriers are instructions")
)]

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
use core::sync::atomic::{Ordering, fence};

/// What was stored in memory before is visible to a device that sees a register store after this.
#[inline(always)]
pub(crate) fn before_register() {
    // The processor keeps stores in order: it is for the compiler.
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    fence(Ordering::Release);
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier touches neither memory nor registers.
    unsafe {
        core::arch::asm!("dmb oshst", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "riscv64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("fence w, o", options(nostack, preserves_flags));
    }
}

/// No later store overtakes the register stores before this, also where the processor combines
/// writes.
#[inline(always)]
pub(crate) fn after_registers() {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    fence(Ordering::SeqCst);
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("dsb st", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "riscv64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("fence iorw, iorw", options(nostack, preserves_flags));
    }
}

#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "x86",
    target_arch = "aarch64",
    target_arch = "riscv64"
)))]
compile_error!("the barriers before doorbells are not known for this processor: see barrier.rs");
