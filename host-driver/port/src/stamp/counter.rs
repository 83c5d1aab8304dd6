//! The processor's cycle counter: one that runs at a constant rate, the same on all processors of the
//! machine.
//!
//! It is read when all that is before it is done, and before anything behind it begins. Otherwise a
//! processor that executes out of order does work of both stages while the counter is read, and what a
//! stamp costs could not be subtracted. Stores may still wait in the processor's buffer.
#![expect(unsafe_code, reason = "the cycle counter is read by an instruction")]

use core::arch::asm;

/// Reads it.
#[inline(always)]
pub(super) fn read() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let (low, high): (u64, u64);
        // SAFETY: it touches no memory; every x86-64 has these instructions, and Linux allows them.
        unsafe {
            asm!("lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high,
                 options(nostack, preserves_flags));
        }
        high << 32 | low
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: it touches no memory; Linux allows programs to read this counter.
        unsafe {
            asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) count,
                 options(nostack, preserves_flags));
        }
        count
    }
    #[cfg(target_arch = "riscv64")]
    {
        let count: u64;
        // SAFETY: as above.
        unsafe {
            asm!("fence", "rdtime {}", "fence", out(reg) count, options(nostack, preserves_flags));
        }
        count
    }
}
