//! Tensors: their types, what the file says of them, and their bytes.

#![forbid(unsafe_code)]

use super::cursor::Cursor;
use super::error::{Fault, Problem};

/// How the elements of a tensor are stored, as ggml numbers it.
///
/// ```
/// use benches::gguf::TensorType;
/// let q8_0 = TensorType::from_id(8).unwrap();
/// assert_eq!((q8_0.name(), q8_0.block_len(), q8_0.block_bytes()), ("Q8_0", 32, 34));
/// assert_eq!(TensorType::from_id(4), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorType {
    id: u32,
    name: &'static str,
    block_len: u64,
    block_bytes: u64,
}

/// Every type that is found in files (Q8_1 and Q8_K are for activations): number, name, elements of a block, bytes of a block.
const TYPES: &[(u32, &str, u64, u64)] = &[
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
];

impl TensorType {
    /// The type of this number, if it is known.
    pub fn from_id(id: u32) -> Option<Self> {
        let found = TYPES.iter().find(|(known, ..)| *known == id);
        found.map(|&(id, name, block_len, block_bytes)| Self { id, name, block_len, block_bytes })
    }

    /// Its number.
    pub const fn id(self) -> u32 {
        self.id
    }

    /// Its name, as ggml writes it.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Elements that share a block; 1 where each stands alone.
    pub const fn block_len(self) -> u64 {
        self.block_len
    }

    /// Bytes of a block.
    pub const fn block_bytes(self) -> u64 {
        self.block_bytes
    }
}

/// A tensor of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tensor<'a> {
    /// Its name.
    pub name: &'a str,
    /// How its elements are stored.
    pub tensor_type: TensorType,
    /// Lengths of its dimensions, 1 where there is none; the first is the length of a row.
    pub dims: [u64; 4],
    /// Where its bytes are in the file.
    pub offset: usize,
    /// Its bytes, at any address.
    pub bytes: &'a [u8],
}

/// What the file says of a tensor.
#[derive(Debug)]
pub(super) struct Info<'a> {
    pub(super) name: &'a str,
    dims: [u64; 4],
    pub(super) tensor_type: TensorType,
    /// From the beginning of all data.
    start: u64,
    n_bytes: u64,
}

impl<'a> Info<'a> {
    /// Fewest bytes that the description of a tensor takes: name, number of dimensions, type, offset.
    pub(super) const MIN_BYTES: u64 = 8 + 4 + 4 + 8;

    /// Reads what follows the name.
    pub(super) fn read(name: &'a str, cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
        let fault_at = |offset, problem| Fault { problem, offset };
        let at = cursor.at();
        let n_dims = cursor.u32()?;
        let mut dims = [1; 4];
        let used = dims.get_mut(..n_dims as usize);
        for dim in used.ok_or_else(|| fault_at(at, Problem::Dimensions(n_dims)))? {
            *dim = cursor.u64()?;
        }
        let at = cursor.at();
        let id = cursor.u32()?;
        let tensor_type =
            TensorType::from_id(id).ok_or_else(|| fault_at(at, Problem::TensorType(id)))?;
        let (row_len, block_len) = (dims[0], tensor_type.block_len);
        if !row_len.is_multiple_of(block_len) {
            return Err(fault_at(at, Problem::PartialBlock { row_len, block_len }));
        }
        let row_bytes = (row_len / block_len).checked_mul(tensor_type.block_bytes);
        let n_bytes = dims[1..].iter().try_fold(row_bytes, |bytes, dim| {
            Some(bytes.and_then(|bytes| bytes.checked_mul(*dim)))
        });
        let n_bytes = n_bytes.flatten().ok_or_else(|| fault_at(at, Problem::TooLarge))?;
        let start = cursor.u64()?;
        Ok(Self { name, dims, tensor_type, start, n_bytes })
    }

    /// Finds the bytes in a `file` whose data begins at `data`.
    pub(super) fn locate(
        &self,
        file: &'a [u8],
        data: u64,
        alignment: u64,
    ) -> Result<Tensor<'a>, Problem> {
        if !self.start.is_multiple_of(alignment) {
            return Err(Problem::Unaligned { start: self.start, alignment });
        }
        let start = data.checked_add(self.start).ok_or(Problem::TooLarge)?;
        let end = start.checked_add(self.n_bytes).ok_or(Problem::TooLarge)?;
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let bytes = range.and_then(|(start, end)| file.get(start..end));
        let file_len = file.len() as u64;
        let bytes = bytes.ok_or(Problem::OutOfFile { end, file_len })?;
        Ok(Tensor {
            name: self.name,
            tensor_type: self.tensor_type,
            dims: self.dims,
            offset: start as usize,
            bytes,
        })
    }
}
