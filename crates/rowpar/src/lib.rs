#![doc = include_str!("../README.md")]

mod kernel;
mod matvec;
pub mod oracle;
mod placement;
mod pool;
mod rows;
#[cfg(feature = "rayon")]
mod setup;
mod workers;

#[cfg(feature = "rayon")]
pub use crate::pool::RayonGlobal;
#[cfg(feature = "rayon")]
pub use crate::setup::{InitError, init_cpu_pool};
pub use crate::{
    kernel::{ISA_VARIABLE, Isa, Kernels, ParseIsaError, ReadPattern},
    matvec::{
        Matvec, matvec_many, matvec_many_with, matvec_rows, matvec_rows_with, matvec_rows2,
        matvec_rows2_with,
    },
    placement::{ParsePlacementError, Placement},
    pool::{Part, RowPool, Serial, for_each_range_mut},
    rows::{for_each_chunk_init, for_each_row, should_parallelize},
    workers::{WorkerProblem, WorkerSetup},
};
