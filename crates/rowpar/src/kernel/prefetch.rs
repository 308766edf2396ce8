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

/// The same address, of which the compiler knows nothing.
///
/// It would rather keep the addresses of eight rows than compute them, for which there are too few registers.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
#[expect(clippy::pointers_in_nomem_asm_block, reason = "nothing is read at the address")]
#[inline(always)]
pub(super) fn opaque(mut address: *const u8) -> *const u8 {
    // SAFETY: the block does nothing, and stands for a function that returns its argument, provenance included.
    unsafe {
        std::arch::asm!(
            "/* {0} */", inout(reg) address, options(pure, nomem, nostack, preserves_flags)
        );
    }
    address
}

/// The same address.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
#[inline(always)]
pub(super) fn opaque(address: *const u8) -> *const u8 {
    address
}
