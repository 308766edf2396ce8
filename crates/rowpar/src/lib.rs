#![doc = include_str!("../README.md")]

mod activation;
mod format;
mod kernel;
mod matrix;
mod matvec;
mod matvec_f32;
pub mod oracle;
mod packed;
mod placement;
mod pool;
mod quantize;
mod read;
mod rows;
#[cfg(feature = "rayon")]
mod setup;
mod workers;

#[cfg(feature = "rayon")]
pub use crate::pool::RayonGlobal;
#[cfg(feature = "rayon")]
pub use crate::setup::{InitError, init_cpu_pool};
pub use crate::{
    activation::{Activation, Q8Activation, Q8Block},
    format::{Format, ParseFormatError},
    kernel::{ISA_VARIABLE, Isa, Kernels, ParseIsaError, ReadPattern, with_default_floats},
    matrix::{Matrix, MatrixError},
    matvec::{Matvec, matvec, matvec_batch, matvec_batch_with, matvec_many, matvec_many_with},
    matvec_f32::{matvec_rows, matvec_rows_with, matvec_rows2, matvec_rows2_with},
    packed::PackedMatrix,
    placement::{ParsePlacementError, Placement},
    pool::{Part, RowPool, Serial, for_each_range_mut},
    read::read_weights,
    rows::{for_each_chunk_init, for_each_row, should_parallelize},
    workers::{WorkerProblem, WorkerSetup},
};
