//! Software prefetch.

/// Asks for the cache line at `address` to be brought into L2. Any address will do: nothing is read.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn prefetch_l2(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};

    // SAFETY: a hint of SSE, which x86-64 has; it does not fault and changes nothing but caches.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) };
}

/// Asks for the cache line at `address` to be brought into L2. Any address will do: nothing is read.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub(super) fn prefetch_l2(address: *const u8) {
    // SAFETY: a hint; it does not fault and changes nothing but caches.
    unsafe {
        std::arch::asm!(
            "prfm pldl2keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly)
        );
    }
}

/// There is no such hint on this target.
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", not(miri)))))]
#[inline(always)]
pub(super) fn prefetch_l2(_address: *const u8) {}
