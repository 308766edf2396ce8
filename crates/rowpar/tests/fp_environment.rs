//! Threads that flush subnormals or round towards zero compute the same bits as all others.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use std::sync::Mutex;

use common::{Values, assert_same, expected, pools};
use rowpar::{
    Format, Kernels, Matrix, RowPool, Serial, matvec_batch_with, matvec_rows_with,
    matvec_rows2_with,
};

use self::control::{DEFAULT, FLAGS, FLUSH_AND_ROUND_TO_ZERO, read_control, write_control};

#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    pub(crate) type Control = u32;

    pub(crate) const DEFAULT: Control = 0x1f80;
    pub(crate) const FLUSH_AND_ROUND_TO_ZERO: u32 = DEFAULT | 1 << 15 | 1 << 6 | 3 << 13;
    pub(crate) const FLAGS: u32 = 0x3f;

    pub(crate) fn read_control() -> u32 {
        let mut control = 0_u32;
        // SAFETY: stores the register to `control`.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags));
        }
        control
    }

    pub(crate) fn write_control(control: u32) {
        // SAFETY: loads the register from `control`, which has no reserved bits.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack, preserves_flags));
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    use std::arch::asm;

    pub(crate) type Control = u64;

    pub(crate) const DEFAULT: Control = 0;
    /// And with infinities of 16 bits taken for numbers.
    pub(crate) const FLUSH_AND_ROUND_TO_ZERO: u64 = 1 << 26 | 1 << 24 | 3 << 22;
    pub(crate) const FLAGS: u64 = 0;

    pub(crate) fn read_control() -> u64 {
        let control: u64;
        // SAFETY: reads a register that user code may read.
        unsafe { asm!("mrs {}, fpcr", out(reg) control, options(nostack, preserves_flags)) };
        control
    }

    pub(crate) fn write_control(control: u64) {
        // SAFETY: writes a register that user code may write, and no reserved bits.
        unsafe { asm!("msr fpcr, {}", in(reg) control, options(nostack, preserves_flags)) };
    }
}

/// Runs `f` on a thread that has left the default environment, and says what control it ended with.
fn in_bad_environment(f: impl FnOnce() + Send) -> control::Control {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            write_control(FLUSH_AND_ROUND_TO_ZERO);
            f();
            let control = read_control();
            write_control(DEFAULT);
            control
        });
        thread.join().expect("no panic")
    })
}

fn products_are_right(pool: &(impl RowPool + ?Sized), name: &str) {
    // Made where nothing has been changed. The sums are subnormal in part, and inexact.
    let (n_rows, n_cols) = (41, 67);
    let case = std::thread::spawn(move || {
        write_control(DEFAULT);
        let w: Vec<f32> = Values::Tame.fill(n_rows * n_cols, 1).iter().map(|w| w * 1e-20).collect();
        let x: Vec<f32> = Values::Tame.fill(n_cols, 2).iter().map(|x| x * 1e-18).collect();
        let sums = expected(&w, &x, n_rows);
        (w, x, sums)
    });
    let (w, x, sums) = case.join().expect("no panic");
    assert!(sums.iter().any(|sum| sum.is_subnormal()), "the case would show nothing");

    // One, infinity, the largest and the smallest number of 16 bits.
    let halves = [0x3c00_u16, 0x7c00, 0xfbff, 0x8001].map(u16::to_le_bytes);
    let halves = Matrix::new(Format::F16, 4, 1, halves.as_flattened()).expect("four rows");
    let widened = [1.0, f32::INFINITY, -65504.0, -1.0 / 16_777_216.0];

    for kernels in Kernels::supported() {
        let context = || format!("{name}, {}", kernels.isa());
        let mut out = [0.0; 4];
        matvec_batch_with(kernels, pool, halves, &[(&[1.0][..]).into()], &mut out);
        assert_same(&out, &widened, &context);
        let (mut out1, mut out2) = (vec![1.0; n_rows], vec![1.0; n_rows]);
        matvec_rows_with(kernels, pool, &w, &x, &mut out1);
        assert_same(&out1, &sums, &context);
        matvec_rows2_with(kernels, pool, &w, &x, &x, &mut out1, &mut out2);
        assert_same(&out1, &sums, &context);
        assert_same(&out2, &sums, &context);
    }
}

#[test]
fn the_caller_may_have_changed_its_environment() {
    for (name, pool) in pools() {
        let after = in_bad_environment(|| products_are_right(&pool, &name));
        assert_eq!(after & !FLAGS, FLUSH_AND_ROUND_TO_ZERO, "{name} did not put it back");
    }
}

#[cfg(feature = "rayon")]
#[test]
fn workers_may_have_changed_theirs() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .start_handler(|_| write_control(FLUSH_AND_ROUND_TO_ZERO))
        .build()
        .expect("workers can be spawned");
    products_are_right(&pool, "rayon");
    let controls: Vec<_> = pool.broadcast(|_| read_control() & !FLAGS);
    assert_eq!(controls, [FLUSH_AND_ROUND_TO_ZERO; 2]);
}

#[test]
fn a_shape_that_panics_leaves_the_environment_alone() {
    let seen = Mutex::new(0);
    let after = in_bad_environment(|| {
        let mut out = [0.0; 3];
        let call = std::panic::AssertUnwindSafe(|| {
            matvec_rows_with(Kernels::best(), &Serial, &[1.0; 5], &[1.0; 2], &mut out);
        });
        assert!(std::panic::catch_unwind(call).is_err());
        *seen.lock().unwrap() = read_control();
    });
    assert_eq!(after & !FLAGS, FLUSH_AND_ROUND_TO_ZERO);
    assert_eq!(seen.into_inner().unwrap() & !FLAGS, FLUSH_AND_ROUND_TO_ZERO);
}
