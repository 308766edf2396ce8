//! Masks of CPUs as arrays of words, whatever their width.
#![forbid(unsafe_code)]

use std::ffi::c_ulong;

use crate::cpu_list::MAX_CPU_ID;
use crate::cpu_set::CpuSet;

/// Asks for a mask with buffers of these widths in turn, in bits, as long as the answer is `wrong_width`. Widths that no kernel
/// can have are passed over.
pub(super) fn of_any_width(
    wrong_width: i32,
    widths: impl IntoIterator<Item = usize>,
    mut ask: impl FnMut(&mut [c_ulong]) -> Result<(), i32>,
) -> Option<CpuSet> {
    for width in widths.into_iter().filter(|width| (1..=MAX_CPU_ID + 1).contains(width)) {
        let mut words = vec![0; width.div_ceil(c_ulong::BITS as usize)];
        match ask(&mut words) {
            Ok(()) => return Some(bits(&words)),
            Err(error) if error == wrong_width => {}
            Err(_) => return None,
        }
    }
    None
}

/// Widths from this one on, each twice the one before, up to what is believed of any kernel.
pub(super) fn growing(first: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(first), |width| width.checked_mul(2))
        .take_while(|width| *width <= MAX_CPU_ID + 1)
}

/// The mask of a set, just as long as it has to be.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn words(cpus: &CpuSet) -> Vec<c_ulong> {
    let width = c_ulong::BITS as usize;
    let mut words = vec![0; cpus.last().map_or(1, |last| last / width + 1)];
    for cpu in cpus.iter() {
        words[cpu / width] |= 1 << (cpu % width);
    }
    words
}

fn bits(words: &[c_ulong]) -> CpuSet {
    let width = c_ulong::BITS as usize;
    let set = |cpu: &usize| words[cpu / width] >> (cpu % width) & 1 == 1;
    (0..words.len() * width).filter(set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOO_SMALL: i32 = 22;

    /// A kernel with masks of this many bits, and these CPUs in the one asked for.
    fn kernel(
        n_bits: usize,
        cpus: &'static [usize],
    ) -> impl FnMut(&mut [c_ulong]) -> Result<(), i32> {
        let width = c_ulong::BITS as usize;
        move |words| {
            if words.len() * width < n_bits {
                return Err(TOO_SMALL);
            }
            cpus.iter().for_each(|cpu| words[cpu / width] |= 1 << (cpu % width));
            Ok(())
        }
    }

    fn asked(kernel: impl FnMut(&mut [c_ulong]) -> Result<(), i32>) -> Option<String> {
        of_any_width(TOO_SMALL, growing(1024), kernel).map(|set| set.to_string())
    }

    #[test]
    fn the_buffer_grows_with_the_kernel() {
        for n_bits in [64, 1024, 1025, 2048, 8192, 1 << 20] {
            let found = asked(kernel(n_bits, &[0, 5, 63]));
            assert_eq!(found.as_deref(), Some("0,5,63"), "{n_bits} bits");
        }
        let wide = asked(kernel(4096, &[1023, 1024, 1025, 4095]));
        assert_eq!(wide.as_deref(), Some("1023-1025,4095"));
        assert_eq!(asked(kernel(1024, &[])).as_deref(), Some(""));
    }

    #[test]
    fn growing_ends() {
        let mut n_asked = 0;
        let never = asked(|_| {
            n_asked += 1;
            Err(TOO_SMALL)
        });
        assert_eq!((never, n_asked), (None, 11));
        assert_eq!(asked(|_| Err(1)), None);
    }

    /// FreeBSD up to 13 takes no buffer that is smaller or larger than its own mask, later ones take larger ones.
    #[test]
    fn a_kernel_that_wants_its_own_width() {
        let kernel = |n_bits: usize| {
            move |words: &mut [c_ulong]| {
                words[0] = 0b101;
                let exact = words.len() * c_ulong::BITS as usize == n_bits;
                if exact { Ok(()) } else { Err(TOO_SMALL) }
            }
        };
        for n_bits in [128, 256, 1024, 4096] {
            for told in [None, Some(n_bits), Some(0), Some(64), Some(usize::MAX)] {
                let widths = told.into_iter().chain(growing(128));
                let found = of_any_width(TOO_SMALL, widths, kernel(n_bits));
                assert_eq!(found.map(|set| set.to_string()).as_deref(), Some("0,2"), "{n_bits}");
            }
        }
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn a_mask_has_the_bits_of_its_set() {
        for ids in [&[0][..], &[0, 63, 64, 65], &[1023, 1024, 4095], &[MAX_CPU_ID]] {
            let set = ids.iter().copied().collect::<CpuSet>();
            assert_eq!(bits(&words(&set)), set);
        }
        assert_eq!(words(&CpuSet::new()), [0]);
    }
}
