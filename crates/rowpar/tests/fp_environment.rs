//! Threads that flush subnormals or round towards zero compute the same bits as all others.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use std::sync::Mutex;

use common::{
    Bits, Random, Values, assert_same, by_oracle, expected, halves, pools, quantized, weights,
};
use rowpar::{
    Activation, Format, Kernels, Matrix, PackedMatrix, Q8Activation, RowPool, Serial,
    for_each_chunk_init, for_each_range_mut, for_each_row, matvec_batch_with, matvec_rows_with,
    matvec_rows2_with, with_default_floats,
};

use self::control::{DEFAULT, FLAGS, FLUSH, FLUSH_AND_ROUND_TO_ZERO, read_control, write_control};

#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    pub(crate) type Control = u32;

    pub(crate) const DEFAULT: Control = 0x1f80;
    pub(crate) const FLUSH_AND_ROUND_TO_ZERO: u32 = DEFAULT | 1 << 15 | 1 << 6 | 3 << 13;
    pub(crate) const FLUSH: u32 = DEFAULT | 1 << 15 | 1 << 6;
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
    pub(crate) const FLUSH: u64 = 1 << 24;
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

/// Runs `f` on a thread of its own with a control, and says with what control it ended.
fn under(control: control::Control, f: impl FnOnce() + Send) -> control::Control {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            write_control(control);
            f();
            let control = read_control();
            write_control(DEFAULT);
            control
        });
        thread.join().expect("no panic")
    })
}

/// Runs `f` on a thread that has left the default environment, and says what control it ended with.
fn in_bad_environment(f: impl FnOnce() + Send) -> control::Control {
    under(FLUSH_AND_ROUND_TO_ZERO, f)
}

/// Makes something where nothing has been changed.
fn in_default_environment<T: Send>(make: impl FnOnce() -> T + Send) -> T {
    let mut made = None;
    under(DEFAULT, || made = Some(make()));
    made.expect("it was made")
}

fn products_are_right(pool: &(impl RowPool + ?Sized), name: &str) {
    floats_are_right(pool, name);
    formats_are_right(pool, name);
}

fn floats_are_right(pool: &(impl RowPool + ?Sized), name: &str) {
    // The sums are subnormal in part, and inexact.
    let (n_rows, n_cols) = (41, 67);
    let (w, x, sums) = in_default_environment(|| {
        let w: Vec<f32> = Values::Tame.fill(n_rows * n_cols, 1).iter().map(|w| w * 1e-20).collect();
        let x: Vec<f32> = Values::Tame.fill(n_cols, 2).iter().map(|x| x * 1e-18).collect();
        let sums = expected(&w, &x, n_rows);
        (w, x, sums)
    });
    assert!(sums.iter().any(|sum| sum.is_subnormal()), "the case would show nothing");

    // One, infinity, the largest and the smallest number of 16 bits.
    let sixteen = [0x3c00_u16, 0x7c00, 0xfbff, 0x8001].map(u16::to_le_bytes);
    let halves = Matrix::new(Format::F16, 4, 1, sixteen.as_flattened()).expect("four rows");
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

/// A matrix of a format, inputs of both kinds, and what the oracle makes of them.
struct Case {
    bytes: Vec<u8>,
    values: Vec<f32>,
    quantized: Q8Activation,
    sums: Vec<f32>,
}

impl Case {
    const N_ROWS: usize = 35;

    /// With products that are subnormal, or with sums that are inexact.
    fn new(format: Format, is_subnormal: bool) -> Self {
        let n_cols = Self::n_cols(format);
        let bits = if is_subnormal { Bits::Subnormal } else { Bits::Tame };
        let mut bytes = weights(&mut Random(7), format, Self::N_ROWS * n_cols, bits);
        // Scales so small that not only they are subnormal, but their products with the least scale of an input, too.
        if is_subnormal && format.is_block() {
            for block in bytes.chunks_exact_mut(format.block_bytes()) {
                for half in halves(format) {
                    block[*half] &= 0x0f;
                    block[half + 1] &= 0x80;
                }
            }
        }
        // No smaller ones than that are quantized.
        let sizes = if is_subnormal && format.is_block() { [1e-35, 2e-30] } else { [1.0, 1.0] };
        let [values, to_quantize] = sizes.map(|size| -> Vec<f32> {
            Values::Tame.fill(n_cols, 2).iter().map(|x| x * size).collect()
        });
        let mut case = Self { bytes, values, quantized: quantized(&to_quantize), sums: Vec::new() };
        case.sums = case.by_oracle(format);
        case
    }

    /// In the environment that the thread has.
    fn by_oracle(&self, format: Format) -> Vec<f32> {
        by_oracle(self.matrix(format), &self.inputs())
    }

    fn n_cols(format: Format) -> usize {
        if format.is_block() { format.block_len() } else { 67 }
    }

    fn matrix(&self, format: Format) -> Matrix<'_> {
        Matrix::new(format, Self::N_ROWS, Self::n_cols(format), &self.bytes).expect("the shape")
    }

    fn inputs(&self) -> [Activation<'_>; 3] {
        [(&self.quantized).into(), self.values[..].into(), (&self.quantized).into()]
    }
}

fn formats_are_right(pool: &(impl RowPool + ?Sized), name: &str) {
    for format in Format::ALL {
        for is_subnormal in [false, true] {
            let case = in_default_environment(|| Case::new(*format, is_subnormal));
            let packed = PackedMatrix::new(case.matrix(*format));
            for kernels in Kernels::supported() {
                for w in [case.matrix(*format), packed.as_matrix()] {
                    let mut out = vec![1.0; 3 * Case::N_ROWS];
                    matvec_batch_with(kernels, pool, w, &case.inputs(), &mut out);
                    assert_same(&out, &case.sums, &|| {
                        format!("{name}, {w:?}, subnormal {is_subnormal}, {}", kernels.isa())
                    });
                }
            }
        }
    }
}

/// The oracle does not look at the environment: in a bad one it has other sums for each kind of input, or the cases show nothing.
#[test]
fn the_cases_depend_on_the_environment() {
    for format in Format::ALL {
        let both = [(false, FLUSH_AND_ROUND_TO_ZERO), (true, FLUSH)];
        for (is_subnormal, control) in both {
            // As a binary32, a subnormal binary16 is none.
            if is_subnormal && *format == Format::F16 {
                continue;
            }
            let case = in_default_environment(|| Case::new(*format, is_subnormal));
            under(control, || {
                let changed = case.by_oracle(*format);
                // As bits: to this thread, a subnormal equals zero.
                let bits = |sums: &[f32]| sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>();
                let inputs = changed.chunks(Case::N_ROWS).zip(case.sums.chunks(Case::N_ROWS));
                for (input, (changed, sums)) in inputs.enumerate() {
                    let (changed, sums) = (bits(changed), bits(sums));
                    assert_ne!(changed, sums, "{format}, subnormal {is_subnormal}, input {input}");
                }
            });
        }
    }
}

#[test]
fn inputs_and_weights_are_quantized_the_same_everywhere() {
    let values = in_default_environment(|| {
        let sizes = [1.0, 3e-30, 1e-38, 1e30];
        sizes.map(|size| Values::Tame.fill(512, 3).iter().map(|x| x * size).collect::<Vec<_>>())
    });
    for x in &values {
        let expected = in_default_environment(|| quantized(x));
        let rows = in_default_environment(|| {
            Format::ALL.iter().map(|format| format.quantize(x)).collect::<Vec<_>>()
        });
        let mut differs = false;
        let after = in_bad_environment(|| {
            let found = quantized(x);
            assert_same(found.values(), expected.values(), &|| "values".into());
            for index in 0..x.len() / 32 {
                let (found, expected) = (found.block(index), expected.block(index));
                assert_eq!((found.q, found.half_sums), (expected.q, expected.half_sums));
                assert_eq!(found.scale.to_bits(), expected.scale.to_bits());
                let amax = x[32 * index..][..32].iter().fold(0.0, |amax: f32, x| amax.max(x.abs()));
                differs |= std::hint::black_box(amax) / 127.0 != expected.scale;
            }
            for (format, rows) in Format::ALL.iter().zip(&rows) {
                assert_eq!(format.quantize(x), *rows, "{format}");
            }
        });
        assert_eq!(after & !FLAGS, FLUSH_AND_ROUND_TO_ZERO, "the thread has its environment back");
        assert!(differs || expected.block(0).scale == 0.0, "the case would show nothing");
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
    loops_are_right(&pool, "rayon");
    let controls: Vec<_> = pool.broadcast(|_| read_control() & !FLAGS);
    assert_eq!(controls, [FLUSH_AND_ROUND_TO_ZERO; 2]);
}

#[cfg(feature = "epoch-pool")]
#[test]
fn workers_of_an_epoch_pool_may_have_changed_theirs() {
    let pool = epoch_pool::Pool::builder()
        .workers(2)
        .float_environment(epoch_pool::FloatEnvironment::AsFound)
        .on_worker_start(|_| write_control(FLUSH_AND_ROUND_TO_ZERO))
        .build()
        .expect("workers can be spawned");
    products_are_right(&pool, "epoch-pool");
    loops_are_right(&pool, "epoch-pool");
    let controls = Mutex::new(Vec::new());
    pool.run(|participant, _| {
        if participant > 0 {
            controls.lock().unwrap().push(read_control() & !FLAGS);
        }
    });
    assert_eq!(controls.into_inner().unwrap(), [FLUSH_AND_ROUND_TO_ZERO; 2]);
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

/// What a closure computes that looks at rounding and at subnormals; in the bad environment both are other numbers.
fn sensitive(row: usize) -> [u32; 2] {
    let row = std::hint::black_box(row as f32 + 1.0);
    [(row / 3.0).to_bits(), (row * 1e-30 * 1e-10).to_bits()]
}

fn loops_are_right(pool: &(impl RowPool + ?Sized), name: &str) {
    const N_ROWS: usize = 257;
    let expected: Vec<_> = in_default_environment(|| (0..N_ROWS).map(sensitive).collect());
    let mut found = vec![[0; 2]; N_ROWS];
    for_each_range_mut(pool, &mut found, 1, |rows, part| {
        rows.zip(part).for_each(|(row, value)| *value = sensitive(row));
    });
    assert_eq!(found, expected, "{name}");
}

#[test]
fn loops_are_under_the_default_environment() {
    const N_ROWS: usize = 257;
    let expected: Vec<_> = in_default_environment(|| (0..N_ROWS).map(sensitive).collect());
    for (name, pool) in pools() {
        let after = in_bad_environment(|| {
            assert_ne!(sensitive(0), expected[0], "the case would show nothing");
            loops_are_right(&pool, &name);
        });
        assert_eq!(after & !FLAGS, FLUSH_AND_ROUND_TO_ZERO, "{name} did not put it back");
    }
    // Little work stays on the caller, much of it goes to rayon.
    for work in [1, 1_000_000] {
        let after = in_bad_environment(|| {
            let mut rounded = vec![0.0; N_ROWS];
            for_each_row(&mut rounded, N_ROWS, work, |row, value| {
                *value = f32::from_bits(sensitive(row)[0]);
            });
            let mut tiny = vec![0.0; N_ROWS];
            let start = || f32::from_bits(sensitive(0)[1]);
            for_each_chunk_init(&mut tiny, 1, work, start, |start, row, value| {
                assert_eq!(start.to_bits(), expected[0][1]);
                value[0] = f32::from_bits(sensitive(row)[1]);
            });
            for (row, (rounded, tiny)) in rounded.iter().zip(&tiny).enumerate() {
                assert_eq!([rounded.to_bits(), tiny.to_bits()], expected[row], "row {row}");
            }
        });
        assert_eq!(after & !FLAGS, FLUSH_AND_ROUND_TO_ZERO);
    }
}

#[test]
fn a_closure_of_ones_own_has_the_default_environment_until_it_unwinds() {
    let expected = in_default_environment(|| sensitive(6));
    for control in [DEFAULT, FLUSH, FLUSH_AND_ROUND_TO_ZERO] {
        let after = under(control, || {
            let found = with_default_floats(|| {
                // Within another one, there is nothing to do.
                with_default_floats(|| ());
                assert_eq!(read_control() & !FLAGS, DEFAULT);
                sensitive(6)
            });
            assert_eq!(found, expected);
            assert_eq!(read_control() & !FLAGS, control);
            let unwound = std::panic::catch_unwind(|| {
                with_default_floats(|| {
                    std::panic::resume_unwind(Box::new(read_control() & !FLAGS))
                });
            });
            let inside = unwound.unwrap_err().downcast::<control::Control>();
            assert_eq!(*inside.expect("the control inside"), DEFAULT);
        });
        assert_eq!(after & !FLAGS, control);
    }
}
