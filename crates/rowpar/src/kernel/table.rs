//! From an instruction set, a format, a layout and some inputs to a kernel.

use std::array;

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::arm::{Arm, Dotprod, Neon};
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::wasm::Simd128;
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512, AvxVnni, Sse2, Ymm};
use super::{
    Isa, Kernels,
    block::{Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0, Quantized, Widened},
    floats::{Bf16, F16, F32},
    fp_env::DefaultFpEnv,
    portable::Portable,
    rows::{Kernel, RowMajor, Tiles},
    simd::{Simd, Task},
    source::TILE_ROWS,
};
use crate::{Activation, Format, Q8Block, activation::ACTIVATION_BLOCK};

/// Rows that follow each other, of one format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRange<'a> {
    pub(crate) format: Format,
    pub(crate) row_bytes: usize,
    /// Rows of the first `n_packed` are in tiles of [`TILE_ROWS`], the others as in a file.
    pub(crate) n_packed: usize,
    pub(crate) bytes: &'a [u8],
    /// What the thread is most likely to have next.
    pub(crate) next: NextRows<'a>,
}

/// Rows whose first lines are worth asking for, as they are likely to come next; none, if there are no bytes. No result depends on
/// it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextRows<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) row_bytes: usize,
    /// Whether they are in tiles.
    pub(crate) packed: bool,
}

impl NextRows<'_> {
    const NONE: Self = Self { bytes: &[], row_bytes: 0, packed: false };
}

/// What the weights and an input are multiplied as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Floats,
    Widened,
    Quantized,
}

impl Kind {
    fn of(format: Format, x: &Activation<'_>) -> Self {
        match (format.is_block(), x) {
            (false, _) => Self::Floats,
            (true, Activation::F32(_)) => Self::Widened,
            (true, Activation::Q8(_)) => Self::Quantized,
        }
    }
}

impl Kernels {
    /// Computes every row for every input; inputs as long as the rows, and outputs as long as there are rows, are for the
    /// caller to check.
    pub(crate) fn run(self, rows: RowRange<'_>, x: &[Activation<'_>], out: &mut [&mut [f32]]) {
        let _env = DefaultFpEnv::enter();
        let mut done = 0;
        while done < x.len() {
            let kind = Kind::of(rows.format, &x[done]);
            let same = x[done..].iter().take_while(|x| Kind::of(rows.format, x) == kind).count();
            done += self.run_some(kind, rows, &x[done..done + same], &mut out[done..done + same]);
        }
    }

    /// Quantizes as many inputs as `blocks` have room for; missing ones count as 0.
    pub(crate) fn quantize(self, x: &[f32], blocks: &mut [Q8Block]) {
        let _env = DefaultFpEnv::enter();
        self.run_quantize(Quantize { x, blocks });
    }

    /// Not inlined, as above.
    #[inline(never)]
    fn run_quantize(self, task: Quantize<'_, '_>) {
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni | Isa::Avx512 => {
                // SAFETY: K1: a CPU with any of these sets has AVX2 and F16C.
                Ymm(unsafe { Avx2::new() }).enter(task);
            }
            _ => Portable.enter(task),
        }
    }

    /// Whether all of these inputs share one pass over the weights.
    pub(crate) fn take_at_once(self, format: Format, x: &[Activation<'_>]) -> bool {
        let Some(first) = x.first() else { return true };
        let kind = Kind::of(format, first);
        let most = match (self.isa, kind) {
            (Isa::Scalar, _) | (Isa::Sse2 | Isa::Simd128, Kind::Widened) => 1,
            (Isa::Sse2 | Isa::Simd128, _) => 2,
            (_, Kind::Widened) => 4,
            _ => 8,
        };
        x.len() <= most
            && x.len().is_power_of_two()
            && x.iter().all(|x| Kind::of(format, x) == kind)
    }

    /// Some of the inputs, which are all of one kind; returns how many.
    ///
    /// Not inlined, so that nothing of it is computed outside of the floating-point environment that the caller has set.
    #[inline(never)]
    fn run_some(
        self,
        kind: Kind,
        rows: RowRange<'_>,
        x: &[Activation<'_>],
        out: &mut [&mut [f32]],
    ) -> usize {
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Sse2 => two(Sse2, kind, rows, x, out),
            // Sets that differ in the products of bytes alone have the floats of AVX2.
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni if kind == Kind::Quantized => {
                // SAFETY: K1: this set of kernels exists, so the CPU has what the token stands for.
                eight(Ymm(unsafe { AvxVnni::new() }), rows, x, out)
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if kind == Kind::Quantized => {
                // SAFETY: K1, as above.
                eight(Ymm(unsafe { Avx512::new() }), rows, x, out)
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni | Isa::Avx512 => {
                // SAFETY: K1: a CPU with any of these sets has AVX2 and F16C.
                any(Ymm(unsafe { Avx2::new() }), kind, rows, x, out)
            }
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::Dotprod if kind == Kind::Quantized => {
                // SAFETY: K1, as above.
                eight(Arm(unsafe { Dotprod::new() }), rows, x, out)
            }
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::Neon | Isa::Dotprod => {
                // SAFETY: K1: a CPU with either set has NEON.
                any(Arm(unsafe { Neon::new() }), kind, rows, x, out)
            }
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Isa::Simd128 => two(Simd128, kind, rows, x, out),
            _ => one(Portable, kind, rows, x, out),
        }
    }
}

/// Inputs and the blocks that they become.
struct Quantize<'x, 'b> {
    x: &'x [f32],
    blocks: &'b mut [Q8Block],
}

impl Task for Quantize<'_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let (whole, rest) = self.x.as_chunks::<ACTIVATION_BLOCK>();
        for (block, x) in self.blocks.iter_mut().zip(whole) {
            *block = Q8Block::of(x);
        }
        if let Some(block) = self.blocks.get_mut(whole.len()) {
            let mut last = [0.0; ACTIVATION_BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            *block = Q8Block::of(&last);
        }
    }
}

/// Calls a function for as many inputs as there are and as it was compiled for; returns how many.
///
/// Every number of inputs is one more copy of every kernel. What is compiled is what pays: eight at once where a set is
/// common; four where weights are widened, which takes most of the registers; one or two on sets that nobody with a choice
/// runs.
macro_rules! some_of {
    ($x:ident, $call:ident [$($n:literal),*] ($simd:ident, $rows:ident, $out:ident)) => {
        match $x.len() {
            $($n.. => { $call::<_, $n>($simd, $rows, $x, $out); $n })*
            _ => { $call::<_, 1>($simd, $rows, $x, $out); 1 }
        }
    };
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
fn any<S: Simd>(
    simd: S,
    kind: Kind,
    rows: RowRange<'_>,
    x: &[Activation<'_>],
    out: &mut [&mut [f32]],
) -> usize {
    match kind {
        Kind::Floats => some_of!(x, floats[8, 4, 2](simd, rows, out)),
        Kind::Widened => some_of!(x, widened[4, 2](simd, rows, out)),
        Kind::Quantized => eight(simd, rows, x, out),
    }
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
fn eight<S: Simd>(
    simd: S,
    rows: RowRange<'_>,
    x: &[Activation<'_>],
    out: &mut [&mut [f32]],
) -> usize {
    some_of!(x, quantized[8, 4, 2](simd, rows, out))
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128")))]
fn two<S: Simd>(
    simd: S,
    kind: Kind,
    rows: RowRange<'_>,
    x: &[Activation<'_>],
    out: &mut [&mut [f32]],
) -> usize {
    match kind {
        Kind::Floats => some_of!(x, floats[2](simd, rows, out)),
        Kind::Widened => some_of!(x, widened[](simd, rows, out)),
        Kind::Quantized => some_of!(x, quantized[2](simd, rows, out)),
    }
}

fn one<S: Simd>(
    simd: S,
    kind: Kind,
    rows: RowRange<'_>,
    x: &[Activation<'_>],
    out: &mut [&mut [f32]],
) -> usize {
    match kind {
        Kind::Floats => some_of!(x, floats[](simd, rows, out)),
        Kind::Widened => some_of!(x, widened[](simd, rows, out)),
        Kind::Quantized => some_of!(x, quantized[](simd, rows, out)),
    }
}

fn floats<S: Simd, const B: usize>(
    simd: S,
    rows: RowRange<'_>,
    x: &[Activation<'_>],
    out: &mut [&mut [f32]],
) {
    let x = first::<B, _>(x).map(|x| x.values());
    match rows.format {
        Format::F32 => enter::<S, F32, B, 1>(simd, rows, x, out),
        // Sums of narrow weights would wait for each other: two groups of rows at once.
        Format::F16 => enter::<S, F16, B, 2>(simd, rows, x, out),
        Format::Bf16 => enter::<S, Bf16, B, 2>(simd, rows, x, out),
        _ => unreachable!("blocks are no floats"),
    }
}

fn widened<S: Simd, const B: usize>(
    simd: S,
    rows: RowRange<'_>,
    x: &[Activation<'_>],
    out: &mut [&mut [f32]],
) {
    let x = first::<B, _>(x).map(|x| x.values());
    match rows.format {
        Format::F32 | Format::F16 | Format::Bf16 => unreachable!("floats are no blocks"),
        Format::Q8_0 => enter::<S, Widened<Q8_0>, B, 2>(simd, rows, x, out),
        Format::Q5_0 => enter::<S, Widened<Q5_0>, B, 2>(simd, rows, x, out),
        Format::Q5_1 => enter::<S, Widened<Q5_1>, B, 2>(simd, rows, x, out),
        Format::Q4_0 => enter::<S, Widened<Q4_0>, B, 2>(simd, rows, x, out),
        Format::Q4_1 => enter::<S, Widened<Q4_1>, B, 2>(simd, rows, x, out),
        Format::Q4K => enter::<S, Widened<Q4K>, B, 2>(simd, rows, x, out),
        Format::Q5K => enter::<S, Widened<Q5K>, B, 2>(simd, rows, x, out),
        Format::Q6K => enter::<S, Widened<Q6K>, B, 2>(simd, rows, x, out),
    }
}

fn quantized<S: Simd, const B: usize>(
    simd: S,
    rows: RowRange<'_>,
    x: &[Activation<'_>],
    out: &mut [&mut [f32]],
) {
    let x = first::<B, _>(x).map(|x| match x {
        Activation::Q8(x) => x.blocks(),
        Activation::F32(_) => unreachable!("inputs are of one kind"),
    });
    match rows.format {
        Format::F32 | Format::F16 | Format::Bf16 => unreachable!("floats are no blocks"),
        Format::Q8_0 => enter::<S, Quantized<Q8_0>, B, 1>(simd, rows, x, out),
        Format::Q5_0 => enter::<S, Quantized<Q5_0>, B, 1>(simd, rows, x, out),
        Format::Q5_1 => enter::<S, Quantized<Q5_1>, B, 1>(simd, rows, x, out),
        Format::Q4_0 => enter::<S, Quantized<Q4_0>, B, 1>(simd, rows, x, out),
        Format::Q4_1 => enter::<S, Quantized<Q4_1>, B, 1>(simd, rows, x, out),
        Format::Q4K => enter::<S, Quantized<Q4K>, B, 1>(simd, rows, x, out),
        Format::Q5K => enter::<S, Quantized<Q5K>, B, 1>(simd, rows, x, out),
        Format::Q6K => enter::<S, Quantized<Q6K>, B, 1>(simd, rows, x, out),
    }
}

fn first<const B: usize, T>(items: &[T]) -> [&T; B] {
    items.first_chunk::<B>().expect("as many as were asked for").each_ref()
}

/// Packed rows in tiles, the others in groups of `8 * G`.
fn enter<S: Simd, K: Kernel, const B: usize, const G: usize>(
    simd: S,
    rows: RowRange<'_>,
    x: [K::Input<'_>; B],
    out: &mut [&mut [f32]],
) {
    let RowRange { row_bytes, n_packed, bytes, next, .. } = rows;
    debug_assert!(n_packed.is_multiple_of(TILE_ROWS));
    let mut end = bytes.as_ptr_range().end;
    if next.bytes.as_ptr() == end {
        end = next.bytes.as_ptr_range().end;
    }
    let end = end.addr();
    let (tiles, rest) = bytes.split_at(n_packed * row_bytes);
    let mut rest_out = array::from_fn(|_| Default::default());
    let mut out = out.iter_mut().zip(&mut rest_out);
    let tiles_out = array::from_fn(|_| {
        let (out, rest): (&mut &mut [f32], &mut &mut [f32]) = out.next().expect("as many outputs");
        let (tiles, rest_of_out) = out.split_at_mut(n_packed);
        *rest = rest_of_out;
        tiles
    });
    if n_packed > 0 {
        simd.enter(Tiles::<K, B> { bytes: tiles, row_bytes, end, x, out: tiles_out });
    }
    if !rest_out[0].is_empty() {
        let next = if next.packed { NextRows::NONE } else { next };
        simd.enter(RowMajor::<K, B, G> { bytes: rest, row_bytes, next, x, out: rest_out });
    }
}
