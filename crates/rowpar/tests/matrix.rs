//! What a matrix accepts and what it refuses, with both numbers in the message.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::{assert_same, pools, quantized};
use rowpar::{Format, Kernels, Matrix, MatrixError, PackedMatrix, Serial, oracle};

/// A format, rows, columns, bytes that are given, and what the error says; empty if there is none.
const SHAPES: &[(Format, usize, usize, usize, &[&str])] = &[
    (Format::F32, 0, 0, 0, &[]),
    (Format::F32, 0, 7, 0, &[]),
    (Format::F32, 7, 0, 0, &[]),
    (Format::F32, 0, usize::MAX / 4, 0, &[]),
    (Format::F32, 2, 3, 24, &[]),
    (Format::F32, 2, 3, 23, &["24 bytes", "not 23"]),
    (Format::F32, 2, 3, 25, &["24 bytes", "not 25"]),
    (Format::F16, 3, 5, 30, &[]),
    (Format::Bf16, 3, 5, 60, &["30 bytes", "not 60"]),
    (Format::Q8_0, 2, 64, 136, &[]),
    (Format::Q8_0, 2, 48, 102, &["48 columns", "blocks of 32"]),
    (Format::Q4K, 1, 128, 72, &["128 columns", "blocks of 256"]),
    (Format::Q6K, 1, 256, 210, &[]),
    (Format::Q6K, 0, 255, 0, &["255 columns", "blocks of 256"]),
    (Format::F32, 1, usize::MAX, 8, &["more bytes than can be counted"]),
    (Format::F32, usize::MAX / 4, 4, 8, &["more than can be counted", "not 8"]),
    (Format::Q4_0, usize::MAX, 32, 8, &["more than can be counted", "not 8"]),
];

#[test]
fn sizes_are_checked_when_a_matrix_is_made() {
    for &(format, n_rows, n_cols, n_bytes, message) in SHAPES {
        let bytes = vec![0; n_bytes];
        let made = Matrix::new(format, n_rows, n_cols, &bytes);
        let owned = PackedMatrix::from_vec(format, n_rows, n_cols, bytes.clone()).err();
        let mut arena = bytes.clone();
        let packed = [
            owned,
            Matrix::pack_in_place(&Serial, format, n_rows, n_cols, &mut arena).err(),
            Matrix::unpack_in_place(&Serial, format, n_rows, n_cols, &mut arena).err(),
            Matrix::from_packed(format, n_rows, n_cols, &bytes).err(),
        ];
        assert_eq!(packed, [made.err(); 4], "{format}, {n_rows} x {n_cols}");
        match made {
            Ok(w) => {
                assert!(message.is_empty(), "{w:?}");
                assert_eq!((w.format(), w.n_rows(), w.n_cols()), (format, n_rows, n_cols));
                assert_eq!(Some(w.row_bytes()), format.row_bytes(n_cols));
                assert!(w.bytes() == bytes && !w.is_packed());
            }
            Err(error) => {
                let text = error.to_string();
                assert!(!message.is_empty(), "{text}");
                assert!(message.iter().all(|part| text.contains(part)), "{text}");
            }
        }
    }
}

/// Matrices one behind the other at odd addresses, packed by every pool.
#[test]
fn matrices_are_packed_where_they_are() {
    for (name, pool) in pools() {
        for format in Format::ALL {
            let n_cols = 3 * format.block_len();
            let (row_bytes, rows) = (format.row_bytes(n_cols).unwrap(), [0, 1, 16, 161, 40]);
            let n_bytes = rows.iter().sum::<usize>() * row_bytes;
            let before: Vec<u8> = (0..=n_bytes).map(|i| (i * i % 251) as u8).collect();
            let mut arena = before.clone();
            let (mut rest, mut rows_rest) = (&mut arena[1..], &before[1..]);
            for n_rows in rows {
                let (bytes, behind) = rest.split_at_mut(n_rows * row_bytes);
                let (plain, plain_behind) = rows_rest.split_at(n_rows * row_bytes);
                (rest, rows_rest) = (behind, plain_behind);
                let context = format!("{format}, {n_rows} rows, {name}");
                let owned = PackedMatrix::from_vec(*format, n_rows, n_cols, plain.into()).unwrap();
                let packed = Matrix::pack_in_place(&*pool, *format, n_rows, n_cols, bytes).unwrap();
                assert!(packed.bytes() == owned.as_matrix().bytes(), "{context}");
                assert_eq!(packed.is_packed(), n_rows >= 16, "{context}");
                let again = Matrix::from_packed(*format, n_rows, n_cols, bytes).unwrap();
                assert_eq!(again.is_packed(), n_rows >= 16, "{context}");
                let undone = Matrix::unpack_in_place(&*pool, *format, n_rows, n_cols, bytes);
                assert!(undone.is_ok_and(|w| w.bytes() == plain && !w.is_packed()), "{context}");
            }
            assert!(arena == before, "{format}, {name}");
        }
    }
}

#[test]
fn bytes_viewed_the_wrong_way_are_another_matrix() {
    for format in Format::ALL {
        let n_cols = 2 * format.block_len().max(4);
        let values: Vec<f32> = (0..35 * n_cols).map(|i| (i * i % 97) as f32 - 48.0).collect();
        let bytes = format.quantize(&values).unwrap();
        let packed = PackedMatrix::from_vec(*format, 35, n_cols, bytes.clone()).unwrap();
        let rows = Matrix::new(*format, 35, n_cols, &bytes).unwrap();
        let mistaken = [
            Matrix::from_packed(*format, 35, n_cols, &bytes).unwrap(),
            Matrix::new(*format, 35, n_cols, packed.as_matrix().bytes()).unwrap(),
        ];
        let x: Vec<f32> = (0..n_cols).map(|i| i as f32 - 2.5).collect();
        for kernels in Kernels::supported() {
            let product = |w| {
                let mut out = [0.0; 35];
                kernels.matvec(w, &[(&x[..]).into()], &mut out);
                out.map(f32::to_bits)
            };
            assert_eq!(product(packed.as_matrix()), product(rows), "{format}, {kernels:?}");
            for w in mistaken {
                // The last three rows are in no tile.
                let (found, expected) = (product(w), product(rows));
                assert_ne!(found[..32], expected[..32], "{format}, {kernels:?}");
                assert_eq!(found[32..], expected[32..], "{format}, {kernels:?}");
            }
        }
    }
}

#[test]
fn tensors_of_gguf_files_have_numbers() {
    for format in Format::ALL {
        let bytes = vec![0; format.block_bytes()];
        let w = Matrix::from_gguf(format.gguf_id(), 1, format.block_len(), &bytes).unwrap();
        assert_eq!(w.format(), *format);
    }
    // Q8_1, Q2_K, Q3_K, Q8_K, and one that does not exist.
    for type_id in [9, 10, 11, 15, u32::MAX] {
        let error = Matrix::from_gguf(type_id, 0, 0, &[]).unwrap_err();
        assert_eq!(error, MatrixError::Type { type_id });
        assert!(error.to_string().contains(&type_id.to_string()));
    }
}

#[cfg(target_endian = "little")]
#[test]
fn numbers_in_memory_are_as_in_a_file() {
    let floats = [1.0, -2.5, 3.25, 0.0, f32::INFINITY, 1e-40];
    let bf16 = [0x3f80, 0xc020, 0x4050, 0, 0x7f80, 1];
    let f16 = [0x3c00, 0xc100, 0x4280, 0, 0x7c00, 1];
    let matrices = [
        (Matrix::from_f32(&floats, 2, 3).unwrap(), floats),
        (Matrix::from_bf16_bits(&bf16, 2, 3).unwrap(), bf16.map(oracle::bf16_to_f32)),
        (Matrix::from_f16_bits(&f16, 2, 3).unwrap(), f16.map(oracle::f16_to_f32)),
    ];
    for (w, expected) in matrices {
        let mut rows = [0.0; 6];
        w.row_to_f32(0, &mut rows[..3]);
        w.row_to_f32(1, &mut rows[3..]);
        assert_same(&rows, &expected, &|| format!("{w:?}"));
    }
    assert!(Matrix::from_f32(&floats, 2, 2).is_err());
    assert!(Matrix::from_f16_bits(&f16, 6, 2).is_err());
    assert!(Matrix::from_bf16_bits(&bf16, 5, 1).is_err());
}

#[test]
fn what_is_out_of_range_panics_and_says_what() {
    let message = |f: &mut dyn FnMut()| -> String {
        let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("out of range");
        payload.downcast_ref::<String>().expect("a formatted message").clone()
    };
    let bytes = vec![0; 40 * 34];
    let plain = Matrix::new(Format::Q8_0, 40, 32, &bytes).unwrap();
    let packed = PackedMatrix::new(plain);
    let packed = packed.as_matrix();
    let (x, mut out) = (quantized(&[1.0; 32]), [0.0; 33]);

    assert!(message(&mut || _ = plain.rows(3..41)).contains("3..41"));
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let reversed = 5..4;
    assert!(message(&mut || _ = plain.rows(reversed.clone())).contains("5..4"));
    for cut in [1..16, 0..17, 16..31, 31..40] {
        assert!(message(&mut || _ = packed.rows(cut.clone())).contains("tile"), "{cut:?}");
    }
    // The last rows fill no tile.
    assert!((packed.is_packed(), packed.rows(32..40).is_packed()) == (true, false));
    assert_eq!(packed.rows(16..35).n_rows(), 19);
    assert_eq!(packed.rows(33..34).n_rows(), 1);

    assert!(message(&mut || plain.row_to_f32(40, &mut out[..32])).contains("40"));
    assert!(message(&mut || plain.row_to_f32(0, &mut out)).contains("33"));
    assert!(message(&mut || _ = oracle::dot_q8(Format::Q8_0, &bytes[..33], &x)).contains("33"));
    assert!(
        message(&mut || _ = oracle::dot(Format::Q8_0, &bytes[..34], &[0.0; 31])).contains("31")
    );
    assert!(message(&mut || _ = oracle::dot_f32(&[0.0; 3], &[0.0; 4])).contains('4'));
}
