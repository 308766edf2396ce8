//! wasm32 with `simd128`: 8 rows in the lanes of two vectors.

#![forbid(unsafe_code)]
