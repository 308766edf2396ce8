//! Masks of CPUs as arrays of words, whatever their width.
#![forbid(unsafe_code)]

use std::ffi::c_ulong;

use crate::cpu_list::MAX_CPU_ID;
use crate::cpu_set::CpuSet;

/// Asks for a mask with ever larger buffers, as long as the answer is `too_small`: the kernel's mask is wider.
pub(super) fn of_any_width(
    too_small: i32,
    mut ask: impl FnMut(&mut [c_ulong]) -> Result<(), i32>,
) -> Option<CpuSet> {
    let mut words = vec![0; 1024 / c_ulong::BITS as usize];
    loop {
        match ask(&mut words) {
            Ok(()) => return Some(bits(&words)),
            Err(error)
                if error == too_small && words.len() * (c_ulong::BITS as usize) <= MAX_CPU_ID =>
            {
                words = vec![0; words.len() * 2];
            }
            Err(_) => return None,
        }
    }
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
        of_any_width(TOO_SMALL, kernel).map(|set| set.to_string())
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
