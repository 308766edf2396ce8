//! Kernels touch the bytes of weights, inputs and outputs and none beside them: the pages around them cannot be touched.

#![cfg(all(unix, not(miri)))]

mod common;

use std::{ops::Range, ptr};

use common::{Bits, Random, Values, assert_same, by_oracle, quantized, weights};
use rowpar::{Activation, Format, Kernels, Matrix, PackedMatrix};

/// Memory between two pages that may not be touched.
struct Guarded {
    start: *mut u8,
    page: usize,
    n_pages: usize,
}

impl Guarded {
    /// Room for `len` bytes.
    fn new(len: usize) -> Self {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).expect("a page has a size");
        let n_pages = len.div_ceil(page).max(1);
        let (flags, n_bytes) = (libc::MAP_PRIVATE | libc::MAP_ANON, (n_pages + 2) * page);
        // SAFETY: a new mapping at an address that the system chooses: no memory of others is touched.
        let start = unsafe { libc::mmap(ptr::null_mut(), n_bytes, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        let guarded = Self { start: start.cast(), page, n_pages };
        // SAFETY: these pages are of the mapping, and nobody has a reference into them.
        let result = unsafe {
            libc::mprotect(
                guarded.inside().cast(),
                n_pages * page,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        assert_eq!(result, 0);
        guarded
    }

    fn inside(&self) -> *mut u8 {
        self.start.wrapping_add(self.page)
    }

    /// The first or the last bytes, whose neighbours are out of reach.
    fn at_an_end(&self, len: usize, is_last: bool) -> Range<usize> {
        let n_bytes = self.n_pages * self.page;
        if is_last { n_bytes - len..n_bytes } else { 0..len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: valid: the inner pages are readable and writable for as long as `self`, and were zeros from the start;
        // aliasing: borrowed from `self`, mutably, and nobody else has the address.
        unsafe { std::slice::from_raw_parts_mut(self.inside(), self.n_pages * self.page) }
    }

    /// Some bytes, put to one end.
    fn put(&mut self, bytes: &[u8], is_last: bool) -> &[u8] {
        let place = self.at_an_end(bytes.len(), is_last);
        let inside = &mut self.bytes()[place];
        inside.copy_from_slice(bytes);
        inside
    }

    /// Some floats at one end.
    fn floats(&mut self, len: usize, is_last: bool) -> &mut [f32] {
        let place = self.at_an_end(4 * len, is_last);
        // SAFETY: any four bytes are a float.
        let (before, floats, after) = unsafe { self.bytes()[place].align_to_mut() };
        assert!(before.is_empty() && after.is_empty() && floats.len() == len);
        floats
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, which nobody borrows any more.
        unsafe { libc::munmap(self.start.cast(), (self.n_pages + 2) * self.page) };
    }
}

#[test]
fn nothing_beside_the_slices_is_touched() {
    let mut random = Random(43);
    for format in Format::ALL {
        let columns: &[usize] = match format.block_len() {
            1 => &[1, 2, 3, 5, 8, 17, 31, 33, 64],
            32 => &[32, 96],
            _ => &[256],
        };
        for &n_cols in columns {
            for n_rows in [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 40] {
                let bytes = weights(&mut random, *format, n_rows * n_cols, Bits::Tame);
                let plain = Matrix::new(*format, n_rows, n_cols, &bytes).unwrap();
                let packed = PackedMatrix::new(plain);
                let values = Values::Tame.fill(n_cols, random.next());
                let q8 = quantized(&values);
                let [mut w, mut x, mut out] =
                    [bytes.len(), 4 * n_cols, 8 * n_rows].map(Guarded::new);
                for is_last in [false, true] {
                    let x = x.floats(n_cols, is_last);
                    x.copy_from_slice(&values);
                    let x = [Activation::F32(x), Activation::Q8(&q8)];
                    let expected = by_oracle(plain, &x);
                    let w = w.put(&bytes, is_last);
                    let w = Matrix::new(*format, n_rows, n_cols, w).unwrap();
                    let out = out.floats(2 * n_rows, is_last);
                    for kernels in Kernels::supported() {
                        for w in [w, packed.as_matrix()] {
                            kernels.matvec(w, &x, out);
                            assert_same(out, &expected, &|| format!("{w:?}, {}", kernels.isa()));
                        }
                    }
                }
            }
        }
    }
}
