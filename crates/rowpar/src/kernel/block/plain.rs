//! Formats with 32 weights to a block.

use super::{Block, Form, Part, nibbles};
use crate::kernel::{simd::Simd, source::Source};

/// A format of one part to a block: its bytes, its form, the largest of its integers, and how a part is read.
macro_rules! plain {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, $form:expr, $dot:ident $(::<$max:literal>)?,
     |$simd:ident, $rows:ident| $q:expr, $minimum:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(in crate::kernel) struct $name;

        impl Block for $name {
            const BYTES: usize = $bytes;
            const PARTS: usize = 1;
            const TURNS: usize = 1;
            const FORM: Form = $form;
            type Head<S: Simd> = ();
            type Parts<S: Simd> = [Part<S>; 1];

            #[inline(always)]
            fn head<S: Simd, T: Source>(_simd: S, _rows: T) {}

            #[inline(always)]
            fn parts<S: Simd, T: Source>($simd: S, $rows: T, _head: &(), _turn: usize) -> [Part<S>; 1] {
                let d = $simd.f16_halves($rows.halves(0));
                [Part { q: $q, d, scales: [d; 2], minimum: [$minimum.unwrap_or(d); 2] }]
            }

            #[inline(always)]
            fn dot<S: Simd, T: Source, const N: usize>(simd: S, q: [S::I; N], x: &[[i8; 4]; N]) -> S::I {
                T::$dot::<S, N $(, $max)?>(simd, q, x)
            }
        }
    };
}

plain!(
    /// f16 d; 32 signed bytes.
    Q8_0, 34, Form::Signed, dot_signed, |simd, rows| {
        let [a, b, c, d] = rows.factors(simd, 2);
        let [e, f, g, h] = rows.factors(simd, 18);
        [a, b, c, d, e, f, g, h]
    }, None
);

plain!(
    /// f16 d; nibbles.
    Q4_0, 18, Form::Offset(8), dot_unsigned::<15>,
    |simd, rows| nibbles(simd, rows.factors(simd, 2)), None
);

plain!(
    /// f16 d, m; nibbles.
    Q4_1, 20, Form::Added, dot_unsigned::<15>,
    |simd, rows| nibbles(simd, rows.factors(simd, 4)),
    Some(simd.f16_halves(rows.halves(2)))
);

plain!(
    /// f16 d; a word of fifth bits; nibbles.
    Q5_0, 22, Form::Offset(16), dot_unsigned::<31>,
    |simd, rows| five_bits(simd, rows, 2), None
);

plain!(
    /// f16 d, m; a word of fifth bits; nibbles.
    Q5_1, 24, Form::Added, dot_unsigned::<31>,
    |simd, rows| five_bits(simd, rows, 4),
    Some(simd.f16_halves(rows.halves(2)))
);

/// A word of fifth bits and the nibbles behind it.
#[inline(always)]
fn five_bits<S: Simd, T: Source>(simd: S, rows: T, at: usize) -> [S::I; 8] {
    let mut q = nibbles(simd, rows.factors(simd, at + 4));
    for (q, fifth) in q.iter_mut().zip(T::fifth_bits(simd, rows.word(simd, at))) {
        *q = simd.or(*q, fifth);
    }
    q
}
