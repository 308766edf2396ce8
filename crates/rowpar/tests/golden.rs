//! The bits themselves: the same on every CPU, with every kernel and on every pool, today and in every version of this order.
//!
//! Everything here is made by integer arithmetic, and by operations of floats that are exact. A hash that changes is a change of
//! what this crate promises.

mod common;

use common::{Bits, Random, Values, pools, quantized, weights};
use rowpar::{
    Activation, Format, Kernels, Matrix, PackedMatrix, Q8Activation, RowPool, Serial,
    matvec_batch_with,
};

const BATCHES: [usize; 5] = [1, 2, 4, 8, 9];
const N_ROWS: usize = 53;

/// For inputs of floats and quantized ones, the hash of the outputs of each batch.
const GOLDEN: &[(Format, [[u64; BATCHES.len()]; 2])] = &[
    (
        Format::F32,
        [
            [
                0x7078_7013_0c85_2fee,
                0x25c7_a440_bdea_880f,
                0x2207_396e_69e0_a28c,
                0xec57_63c2_a19d_2c2e,
                0x59b2_f9d9_935b_037b,
            ],
            [
                0x7078_7013_0c85_2fee,
                0x25c7_a440_bdea_880f,
                0x2207_396e_69e0_a28c,
                0xec57_63c2_a19d_2c2e,
                0x59b2_f9d9_935b_037b,
            ],
        ],
    ),
    (
        Format::F16,
        [
            [
                0x69b1_48c4_8492_2fbb,
                0xedc3_6ab8_ca55_6f66,
                0xb87d_2a4b_c812_c843,
                0x6a42_7108_8b77_3aa9,
                0x35c9_d41a_818d_6d14,
            ],
            [
                0x69b1_48c4_8492_2fbb,
                0xedc3_6ab8_ca55_6f66,
                0xb87d_2a4b_c812_c843,
                0x6a42_7108_8b77_3aa9,
                0x35c9_d41a_818d_6d14,
            ],
        ],
    ),
    (
        Format::Bf16,
        [
            [
                0x42e0_594a_6959_fa85,
                0x72ea_e67d_529b_16fd,
                0xac2a_4bfa_0cbb_a316,
                0x30f5_057a_04a5_c8f1,
                0x0499_1af1_244e_962c,
            ],
            [
                0x42e0_594a_6959_fa85,
                0x72ea_e67d_529b_16fd,
                0xac2a_4bfa_0cbb_a316,
                0x30f5_057a_04a5_c8f1,
                0x0499_1af1_244e_962c,
            ],
        ],
    ),
    (
        Format::Q8_0,
        [
            [
                0x9698_0d73_245d_b3d2,
                0xa3ae_fdef_9be8_6166,
                0x7360_7dfc_395c_5c0d,
                0xaf99_8487_3821_ee68,
                0xa4e5_2f2b_d651_36c5,
            ],
            [
                0x00ee_d86d_d82a_2a3d,
                0x48ae_1bfe_0734_5117,
                0x855a_8c37_80f8_e317,
                0x0bca_f266_c6bd_1503,
                0x6183_cae5_00e8_e11d,
            ],
        ],
    ),
    (
        Format::Q5_0,
        [
            [
                0x1089_5ee3_9b3c_9bad,
                0x61c3_68c4_654f_fffc,
                0x2099_d8f1_95cf_f3d0,
                0x10a5_4956_2df3_db37,
                0x9a32_0b69_be40_4a2c,
            ],
            [
                0xce94_c7b0_7902_a02c,
                0xc043_4f8e_238d_39b0,
                0x57e5_8dcb_d15c_d22b,
                0x1aa3_a641_845c_8f32,
                0x171f_eab3_6b60_0cd5,
            ],
        ],
    ),
    (
        Format::Q5_1,
        [
            [
                0xbceb_3d7e_688c_673f,
                0xebc7_2d90_b80b_7fa6,
                0x039a_d2e8_bffb_38c1,
                0x883f_7813_4f75_94ad,
                0xf606_dbbe_a5e3_dc8d,
            ],
            [
                0x9ec8_d324_f33a_b9a4,
                0xbbfc_6e20_d4b3_df6d,
                0xd515_57b6_b593_3342,
                0x3628_9efa_9cb1_40cc,
                0x8dbe_b135_ebf0_2f1a,
            ],
        ],
    ),
    (
        Format::Q4_0,
        [
            [
                0x5972_1894_b37b_a8ef,
                0x1627_340f_30ff_6ab3,
                0xd041_a577_7398_fdaf,
                0x5752_4c72_0cbf_3e7f,
                0x2841_e8a1_cb54_e8e9,
            ],
            [
                0x4df5_fefe_f1b6_4ca3,
                0x90d0_39e8_4ae9_7924,
                0x344a_b808_43ba_8350,
                0x8df4_b62b_d3d6_e7a1,
                0x776c_6552_d6b3_54ae,
            ],
        ],
    ),
    (
        Format::Q4_1,
        [
            [
                0xf097_1483_6170_714f,
                0xcbbd_2d55_0a1c_a161,
                0x7765_c0cb_5610_8aa6,
                0xef85_3a0c_be7d_7523,
                0xdc6d_9fd2_55a8_be37,
            ],
            [
                0xc34e_80a8_1367_7222,
                0x0bca_2996_af03_2863,
                0x8b97_8bbd_9c1a_47b2,
                0x4978_0bd5_e386_f2d1,
                0x12d9_48b0_4429_e8c0,
            ],
        ],
    ),
    (
        Format::Q4K,
        [
            [
                0xd428_c61c_61b0_235f,
                0x2652_6c31_0649_ac83,
                0x1bfe_7b38_eb0c_5bf1,
                0x2a1d_7a87_385b_2e50,
                0x863c_59c7_6fa5_51ca,
            ],
            [
                0x5c9f_b6bc_b900_a507,
                0x1d03_6b65_295a_e209,
                0xc23c_b1f1_22e3_17ee,
                0xf4c8_a070_8ddb_03ae,
                0x4415_9d1f_836b_0d5b,
            ],
        ],
    ),
    (
        Format::Q5K,
        [
            [
                0xcbef_5768_73a2_bf22,
                0x3233_1b75_284c_ec54,
                0x8fb3_ea5d_e911_ff05,
                0x8697_5b86_5ce1_619a,
                0x25c1_149a_ec8b_76ce,
            ],
            [
                0x61e6_9545_e0c5_c4bc,
                0xb2cc_9ff2_f168_83be,
                0xdc06_4ea2_9b14_a1ce,
                0xb478_2a7e_491b_f86b,
                0x74a7_fa7c_3c7f_0faf,
            ],
        ],
    ),
    (
        Format::Q6K,
        [
            [
                0x75e9_777a_9a39_da8c,
                0x6509_b155_79d5_3c67,
                0xdb69_c314_293d_d9ae,
                0x3942_6a6b_81ad_c283,
                0x481f_a395_35f5_151c,
            ],
            [
                0x2c5c_2308_b4c4_5f65,
                0xc68c_6794_4573_71e4,
                0xcf67_2fbf_7fe1_20e2,
                0x5486_9a5d_4ecc_7a0a,
                0x3c79_fd74_bcd4_ce56,
            ],
        ],
    ),
];

/// FNV-1a over the bits of the values, little endian, with one NaN for all.
fn hash(values: &[f32]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for value in values {
        let bits = if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() };
        for byte in bits.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// A matrix with something unusual in every seventh row, and inputs.
struct Case {
    format: Format,
    n_cols: usize,
    bytes: Vec<u8>,
    values: Vec<Vec<f32>>,
    quantized: Vec<Q8Activation>,
}

impl Case {
    fn new(format: Format) -> Self {
        let mut random = Random(0x5eed + u64::from(format.gguf_id()));
        let n_cols = if format.is_block() { 512 } else { 203 };
        let row = |row: usize| {
            let bits = if row % 7 == 3 { Bits::ALL[row % Bits::ALL.len()] } else { Bits::Tame };
            weights(&mut random, format, n_cols, bits)
        };
        let bytes = (0..N_ROWS).flat_map(row).collect();
        let values: Vec<_> = (0..9).map(|seed| Values::Tame.fill(n_cols, 100 + seed)).collect();
        let quantized = values.iter().map(|x| quantized(x)).collect();
        Self { format, n_cols, bytes, values, quantized }
    }

    fn inputs(&self, kind: usize, n_inputs: usize) -> Vec<Activation<'_>> {
        let of_kind = |input: usize| match kind {
            0 => Activation::F32(&self.values[input]),
            _ => Activation::Q8(&self.quantized[input]),
        };
        (0..n_inputs).map(of_kind).collect()
    }

    /// The hashes of all batches, for both kinds of input.
    fn hashes(
        &self,
        kernels: Kernels,
        pool: &(impl RowPool + ?Sized),
        w: Matrix<'_>,
    ) -> [[u64; BATCHES.len()]; 2] {
        [0, 1].map(|kind| {
            BATCHES.map(|n_inputs| {
                let mut out = vec![0.0; N_ROWS * n_inputs];
                matvec_batch_with(kernels, pool, w, &self.inputs(kind, n_inputs), &mut out);
                hash(&out)
            })
        })
    }
}

#[test]
fn the_hash_is_fnv_1a() {
    // Of the bytes 00 00 80 3f; and of none.
    assert_eq!(hash(&[]), 0xcbf2_9ce4_8422_2325);
    let by_hand = [0_u64, 0, 0x80, 0x3f].iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ byte).wrapping_mul(1_099_511_628_211)
    });
    assert_eq!(hash(&[1.0]), by_hand);
    assert_eq!(hash(&[-f32::NAN]), hash(&[f32::NAN]));
}

#[test]
fn every_kernel_has_the_golden_bits() {
    assert!(GOLDEN.iter().map(|(format, _)| format).eq(Format::ALL));
    for (format, golden) in GOLDEN {
        let case = Case::new(*format);
        let plain = Matrix::new(case.format, N_ROWS, case.n_cols, &case.bytes).unwrap();
        let packed = PackedMatrix::new(plain);
        for kernels in Kernels::supported() {
            for w in [plain, packed.as_matrix()] {
                let found = case.hashes(kernels, &Serial, w);
                assert_eq!(found, *golden, "{format}, {}: {found:#018x?}", kernels.isa());
            }
        }
    }
}

#[test]
fn every_pool_has_the_golden_bits() {
    let pools = pools();
    for (format, golden) in GOLDEN {
        let case = Case::new(*format);
        let w = Matrix::new(case.format, N_ROWS, case.n_cols, &case.bytes).unwrap();
        for (name, pool) in &pools {
            let found = case.hashes(Kernels::best(), &**pool, w);
            assert_eq!(found, *golden, "{format}, {name}");
        }
    }
}
