//! x86-64: 8 lanes in a register of 256 bits, or in two of 128.

mod sse2;
mod vnni;
mod words;
mod ymm;

pub(super) use self::{
    sse2::Sse2,
    vnni::{Avx512, AvxVnni},
    ymm::{Avx2, Ymm},
};
