//! Every pool × every set of kernels × shapes around every boundary: bit for bit the literal loop.

mod common;

use std::{
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering},
};

use common::{Guarded, Values, assert_same, expected, pools};
use rowpar::{
    Activation, Kernels, Matrix, Matvec, RowPool, Serial, matvec_many, matvec_many_with,
    matvec_rows, matvec_rows_with, matvec_rows2, matvec_rows2_with, oracle,
};

const ROWS: &[usize] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 63, 64, 65, 97];
const COLS: &[usize] = &[0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 19, 20, 31, 32, 33, 37, 64, 127];

/// A matrix and two inputs, all at addresses that need not be multiples of anything but 4.
struct Case {
    w: Vec<f32>,
    x: [Vec<f32>; 2],
    skew: usize,
    n_rows: usize,
    expected: [Vec<f32>; 2],
}

impl Case {
    fn new(n_rows: usize, n_cols: usize, values: Values) -> Self {
        let seed = (n_rows * 1000 + n_cols) as u64;
        let skew = (n_rows + n_cols) % 8;
        let w = values.fill(n_rows * n_cols + skew, seed + 1);
        let x = [2, 3].map(|n| values.fill(n_cols + skew, seed + n));
        let expected = [0, 1].map(|input: usize| expected(&w[skew..], &x[input][skew..], n_rows));
        Self { w, x, skew, n_rows, expected }
    }

    fn w(&self) -> &[f32] {
        &self.w[self.skew..]
    }

    fn x(&self, input: usize) -> &[f32] {
        &self.x[input][self.skew..]
    }

    fn product<'a>(&'a self, x: &'a Activation<'a>, out: &'a mut Guarded) -> Matvec<'a> {
        let w = Matrix::from_f32(self.w(), self.n_rows, x.len()).expect("the shape of the case");
        Matvec { w, x: std::slice::from_ref(x), out: out.inside() }
    }

    fn check(&self, input: usize, out: &Guarded, context: &dyn Fn() -> String) {
        assert_same(out.check(), &self.expected[input], context);
    }
}

fn for_each_case(mut f: impl FnMut(&Case, &dyn Fn() -> String)) {
    for (i, &n_rows) in ROWS.iter().enumerate() {
        for (j, &n_cols) in COLS.iter().enumerate() {
            let values = Values::ALL[(i + j) % Values::ALL.len()];
            let case = Case::new(n_rows, n_cols, values);
            f(&case, &|| format!("{n_rows} x {n_cols}, {values:?}"));
        }
    }
}

#[test]
fn one_input_on_every_pool() {
    let pools = pools();
    for kernels in Kernels::supported() {
        for_each_case(|case, shape| {
            for (name, pool) in &pools {
                let mut out = Guarded::new(case.n_rows);
                matvec_rows_with(kernels, &**pool, case.w(), case.x(0), out.inside());
                case.check(0, &out, &|| format!("{}, {name}, {}", shape(), kernels.isa()));
            }
        });
    }
}

#[test]
fn two_inputs_on_every_pool() {
    let pools = pools();
    for kernels in Kernels::supported() {
        for_each_case(|case, shape| {
            for (name, pool) in &pools {
                let (mut out1, mut out2) = (Guarded::new(case.n_rows), Guarded::new(case.n_rows));
                let (x1, x2) = (case.x(0), case.x(1));
                let (y1, y2) = (out1.inside(), out2.inside());
                matvec_rows2_with(kernels, &**pool, case.w(), x1, x2, y1, y2);
                let context = || format!("{}, {name}, {}", shape(), kernels.isa());
                case.check(0, &out1, &context);
                case.check(1, &out2, &context);
            }
        });
    }
}

#[test]
fn every_kind_of_value_in_every_kernel() {
    for kernels in Kernels::supported() {
        for values in Values::ALL {
            for n_rows in [1, 5, 8, 13, 16] {
                for n_cols in 0..=70 {
                    let case = Case::new(n_rows, n_cols, values);
                    let context = || format!("{n_rows} x {n_cols}, {values:?}, {}", kernels.isa());
                    let (mut out1, mut out2) = (Guarded::new(n_rows), Guarded::new(n_rows));
                    matvec_rows_with(kernels, &Serial, case.w(), case.x(0), out1.inside());
                    case.check(0, &out1, &context);
                    let (x1, x2) = (case.x(0), case.x(1));
                    matvec_rows2_with(
                        kernels,
                        &Serial,
                        case.w(),
                        x1,
                        x2,
                        out1.inside(),
                        out2.inside(),
                    );
                    case.check(0, &out1, &context);
                    case.check(1, &out2, &context);
                }
            }
        }
    }
}

#[test]
fn groups_of_rows_meet_without_a_gap() {
    // More rows than a kernel groups, of lengths that are grouped differently.
    for (n_rows, n_cols) in [(2100, 17), (1040, 33), (601, 127), (150, 576), (67, 1024), (19, 4099)]
    {
        for (kernels, values) in Kernels::supported().into_iter().zip(Values::ALL) {
            let case = Case::new(n_rows, n_cols, values);
            let context = || format!("{n_rows} x {n_cols}, {values:?}, {}", kernels.isa());
            let (mut out1, mut out2) = (Guarded::new(n_rows), Guarded::new(n_rows));
            let (x1, x2) = (case.x(0), case.x(1));
            matvec_rows2_with(kernels, &Serial, case.w(), x1, x2, out1.inside(), out2.inside());
            case.check(0, &out1, &context);
            case.check(1, &out2, &context);
            matvec_rows_with(kernels, &Serial, case.w(), x2, out1.inside());
            case.check(1, &out1, &context);
        }
    }
}

#[test]
fn several_products_on_every_pool() {
    // Rows and columns of each product of a set.
    const SETS: &[&[(usize, usize)]] = &[
        &[],
        &[(0, 5)],
        &[(9, 33)],
        &[(40, 64), (8, 64), (8, 64)],
        &[(33, 100), (33, 7)],
        &[(0, 3), (17, 0), (1, 1), (0, 0), (65, 300), (3, 2)],
        &[(12, 31); 16],
        &[(5, 9); 35],
    ];
    let pools = pools();
    for kernels in Kernels::supported() {
        for (set, shapes) in SETS.iter().enumerate() {
            let cases: Vec<Case> = shapes
                .iter()
                .enumerate()
                .map(|(i, &(n_rows, n_cols))| {
                    Case::new(n_rows, n_cols, Values::ALL[(set + i) % Values::ALL.len()])
                })
                .collect();
            for (name, pool) in &pools {
                let mut outs: Vec<_> = cases.iter().map(|case| Guarded::new(case.n_rows)).collect();
                let inputs: Vec<Activation<'_>> =
                    cases.iter().map(|case| case.x(0).into()).collect();
                let mut products: Vec<_> = cases
                    .iter()
                    .zip(&inputs)
                    .zip(&mut outs)
                    .map(|((case, x), out)| case.product(x, out))
                    .collect();
                matvec_many_with(kernels, &**pool, &mut products);
                for (i, (case, out)) in cases.iter().zip(&outs).enumerate() {
                    let context = || format!("set {set}, product {i}, {name}, {}", kernels.isa());
                    case.check(0, out, &context);
                }
            }
        }
    }
}

#[test]
fn matrices_above_the_threshold_take_the_pool() {
    let case = Case::new(203, 1261, Values::Tame);
    for (name, pool) in pools() {
        let (mut out1, mut out2) = (Guarded::new(case.n_rows), Guarded::new(case.n_rows));
        matvec_rows(&pool, case.w(), case.x(0), out1.inside());
        case.check(0, &out1, &|| name.clone());
        matvec_rows2(&pool, case.w(), case.x(1), case.x(0), out2.inside(), out1.inside());
        case.check(1, &out2, &|| name.clone());
        let (x1, x2) = (case.x(1).into(), case.x(0).into());
        let mut products = [case.product(&x1, &mut out1), case.product(&x2, &mut out2)];
        matvec_many(&pool, &mut products);
        case.check(1, &out1, &|| name.clone());
        case.check(0, &out2, &|| name.clone());
    }
}

/// Counts dispatches, and does them serially.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Counting {
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

// SAFETY: as `Serial`.
unsafe impl RowPool for Counting {
    fn participants(&self) -> usize {
        4
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        self.0.fetch_add(1, Ordering::Relaxed);
        Serial.for_each_range(rows, grain, f);
    }
}

#[test]
fn small_work_stays_on_the_caller_and_large_work_is_one_dispatch() {
    let pool = Counting::default();
    let (w, x) = (vec![1.0; 256 * 1024], vec![1.0; 1024]);
    assert_eq!(
        size_of_val(&w[..]),
        pool.parallel_bytes(),
        "what the trait says for pools of others"
    );
    let (mut out1, mut out2) = (vec![0.0; 256], vec![0.0; 256]);

    let less = &w[1024..];
    matvec_rows(&pool, less, &x, &mut out1[1..]);
    matvec_rows2(&pool, less, &x, &x, &mut out1[1..], &mut out2[1..]);
    assert_eq!(pool.take(), 0);
    matvec_rows(&pool, &w, &x, &mut out1);
    assert_eq!(pool.take(), 1);
    matvec_rows2(&pool, &w, &x, &x, &mut out1, &mut out2);
    assert_eq!(pool.take(), 1);

    let input = [(&x[..]).into()];
    let mut many = |n_products: usize, n_rows: usize| {
        let w = Matrix::from_f32(&w[..n_rows * x.len()], n_rows, x.len()).expect("whole rows");
        let outs = out1.chunks_mut(n_rows);
        let mut products: Vec<_> =
            outs.take(n_products).map(|out| Matvec { w, x: &input, out }).collect();
        matvec_many(&pool, &mut products);
        pool.take()
    };
    assert_eq!(many(2, 1), 0, "below the threshold together");
    assert_eq!(many(1, 256), 1, "a single product");
    assert_eq!(many(2, 128), 1, "above it only together");
    assert_eq!(many(16, 16), 1);
    assert_eq!(many(3, 85), 0, "a row too few");
    assert_eq!(many(32, 8), 2, "sixteen to a dispatch");
}

#[test]
fn wrong_lengths_panic_with_both_numbers() {
    let message = |f: &mut dyn FnMut()| -> String {
        let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("lengths are checked");
        payload.downcast_ref::<String>().expect("a formatted message").clone()
    };
    let contains = |message: String, numbers: [&str; 2]| {
        assert!(numbers.iter().all(|number| message.contains(number)), "{message}");
    };
    let (w, x) = ([1.0; 35], [1.0; 12]);
    let (mut out1, mut out2) = ([7.0; 3], [7.0; 2]);

    contains(message(&mut || matvec_rows(&Serial, &w, &x, &mut out1)), ["35", "36"]);
    contains(message(&mut || matvec_rows(&Serial, &w, &x, &mut out2)), ["35", "24"]);
    contains(
        message(&mut || matvec_rows2(&Serial, &w[..24], &x, &x[..11], &mut out2, &mut [7.0; 2])),
        ["12", "11"],
    );
    contains(
        message(&mut || matvec_rows2(&Serial, &w[..24], &x, &x, &mut out2, &mut out1)),
        ["2", "3"],
    );
    let matrix = Matrix::from_f32(&w[..24], 2, 12).expect("two rows");
    let (good, short) = ([(&x[..]).into()], [(&x[..11]).into()]);
    contains(message(&mut || Kernels::best().matvec(matrix, &short, &mut out2)), ["11", "12"]);
    contains(message(&mut || Kernels::best().matvec(matrix, &good, &mut out1)), ["3", "2"]);
    contains(
        message(&mut || {
            let good = Matvec { w: matrix, x: &good, out: &mut out2 };
            let bad = Matvec { w: matrix, x: &short, out: &mut out1[..2] };
            matvec_many(&Serial, &mut [good, bad]);
        }),
        ["11", "12"],
    );
    assert_eq!((out1, out2), ([7.0; 3], [7.0; 2]), "nothing was computed");
}

#[test]
fn no_columns_give_positive_zeros() {
    for kernels in Kernels::supported() {
        let mut out = [f32::NAN; 19];
        matvec_rows_with(kernels, &Serial, &[], &[], &mut out);
        assert!(out.iter().all(|value| value.to_bits() == 0));
    }
}

#[test]
fn the_public_oracle_is_the_same_loop() {
    for values in Values::ALL {
        for n_cols in 0..50 {
            let (w, x) = (values.fill(n_cols, 5), values.fill(n_cols, 6));
            let sum = oracle::dot_f32(&w, &x);
            assert_same(&[sum], &expected(&w, &x, 1), &|| format!("{n_cols} columns, {values:?}"));
        }
    }
}
