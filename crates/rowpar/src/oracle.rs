//! The definition of every result in this crate, as plain loops.
//!
//! Nothing here is fast, and nothing here is clever: each function is the loop that a kernel has to
//! agree with, bit for bit. Use them to test an engine against, or as documentation.

#![forbid(unsafe_code)]

/// `acc = 0; for j in 0..n { acc = acc + w[j] * x[j] }`: rounded after each step, never fused, left to
/// right, where `n = x.len()`.
///
/// This is the arithmetic contract of [`matvec_rows`](crate::matvec_rows) for one row. It starts from
/// `+0.0`, so the sum of no products, and of products that are all zero of either sign, is `+0.0`.
///
/// # Panics
///
/// If `w` and `x` differ in length.
///
/// # Examples
///
/// ```
/// // Left to right: the large terms cancel first, and the small one survives.
/// assert_eq!(rowpar::oracle::dot_f32(&[1e30, -1e30, 1.0], &[1.0, 1.0, 1.0]), 1.0);
/// // In another order it would be lost.
/// assert_eq!(rowpar::oracle::dot_f32(&[1e30, 1.0, -1e30], &[1.0, 1.0, 1.0]), 0.0);
/// ```
pub fn dot_f32(w: &[f32], x: &[f32]) -> f32 {
    assert!(w.len() == x.len(), "w has {} values but x has {}", w.len(), x.len());
    let mut acc = 0.0;
    for (weight, input) in w.iter().zip(x) {
        acc += weight * input;
    }
    acc
}
