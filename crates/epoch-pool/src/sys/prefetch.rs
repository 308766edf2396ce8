//! Asking for a cache line before it is needed.

/// Asks the cache for the 128 bytes from `address`. Nothing is read: the address may be null or dangling.
#[inline]
pub(crate) fn prefetch(address: *const ()) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = address.cast::<i8>();
        // SAFETY: a hint. It faults on no address (Intel SDM, PREFETCHh), and SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.wrapping_add(64)) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let second = address.wrapping_byte_add(64);
        // SAFETY: a hint. It faults on no address (Arm ARM, PRFM), writes no register and no memory.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{}]", "prfm pldl1keep, [{}]", in(reg) address, in(reg) second,
                options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}
