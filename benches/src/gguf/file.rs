//! The file as a whole: header, then metadata, then what tensors there are, then their data.

#![forbid(unsafe_code)]

use super::cursor::Cursor;
use super::error::{Fault, GgufError, Item, Problem, excerpt};
use super::tensor::{Info, Tensor};
use super::value::Value;

/// Fewest bytes of a metadata entry: the length of its key, its type, a value of one byte.
const MIN_ENTRY_BYTES: u64 = 8 + 4 + 1;

/// Most bytes of a key, and of the name of a tensor, as the format has it.
const MAX_KEY_LEN: usize = 65_535;
const MAX_TENSOR_NAME_LEN: usize = 64;

/// The key that says at multiples of what tensor data begins, and what holds without it.
const ALIGNMENT: (&str, u64) = ("general.alignment", 32);

/// A file that has been checked: any entry and any tensor can be had.
///
/// It keeps the places of the entries and of the tensors, 8 bytes for each, and reads them again when asked. The module has an
/// example.
#[derive(Clone, Debug)]
pub struct Gguf<'a> {
    file: &'a [u8],
    version: u32,
    alignment: u64,
    /// Where the tensors' data begins.
    data: u64,
    /// Where each entry begins, in the order of the keys.
    entries: Vec<usize>,
    /// Where each tensor's description begins, in the order of the names.
    infos: Vec<usize>,
}

impl<'a> Gguf<'a> {
    /// Checks a whole file.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it: see [`Problem`].
    pub fn parse(file: &'a [u8]) -> Result<Self, GgufError> {
        let mut cursor = Cursor::new(file, 0);
        let version = read_version(&mut cursor)?;
        let in_header = |fault: Fault| fault.of(Item::Header);
        let n_tensors = cursor.u64().map_err(in_header)?;
        let n_entries = cursor.u64().map_err(in_header)?;
        cursor.require(n_entries, MIN_ENTRY_BYTES).map_err(in_header)?;
        let entries = read_entries(&mut cursor, n_entries)?;
        cursor.require(n_tensors, Info::MIN_BYTES).map_err(in_header)?;
        let infos = read_infos(&mut cursor, n_tensors)?;
        let mut gguf = Self { file, version, alignment: ALIGNMENT.1, data: 0, entries, infos };
        gguf.sort_entries()?;
        gguf.alignment = gguf.read_alignment()?;
        gguf.data = (cursor.at() as u64).next_multiple_of(gguf.alignment);
        gguf.check_data()?;
        gguf.sort_infos()?;
        Ok(gguf)
    }

    /// The version of the format, 2 or 3.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// At multiples of how many bytes tensor data begins.
    pub const fn alignment(&self) -> u64 {
        self.alignment
    }

    /// The metadata, in the order of the keys.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&'a str, Value<'a>)> {
        self.entries.iter().map(|&at| self.entry(at))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.find(&self.entries, key).map(|at| self.entry(at).1)
    }

    /// The tensors, in the order of their names.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'a>> {
        self.infos.iter().map(|&at| self.tensor_at(at))
    }

    /// The tensor of a name.
    pub fn tensor(&self, name: &str) -> Option<Tensor<'a>> {
        self.find(&self.infos, name).map(|at| self.tensor_at(at))
    }

    /// Which of some places, in the order of the names there, has this name.
    fn find(&self, places: &[usize], name: &str) -> Option<usize> {
        let found = places.binary_search_by(|&at| self.name(at).cmp(name.as_bytes()));
        found.ok().map(|index| places[index])
    }

    /// The key or name at a place that `parse` has read; that it is UTF-8 is not checked again. Bytes have the order of
    /// characters.
    fn name(&self, at: usize) -> &'a [u8] {
        Cursor::new(self.file, at).string().expect("checked by parse")
    }

    fn entry(&self, at: usize) -> (&'a str, Value<'a>) {
        let mut cursor = Cursor::new(self.file, at);
        let key = cursor.name(MAX_KEY_LEN).expect("checked by parse");
        (key, Value::read(&mut cursor).expect("checked by parse"))
    }

    fn info(&self, at: usize) -> Info<'a> {
        let mut cursor = Cursor::new(self.file, at);
        let name = cursor.name(MAX_TENSOR_NAME_LEN).expect("checked by parse");
        Info::read(name, &mut cursor).expect("checked by parse")
    }

    fn tensor_at(&self, at: usize) -> Tensor<'a> {
        let found = self.info(at).locate(self.file, self.data, self.alignment);
        found.expect("checked by parse")
    }

    fn sort_entries(&mut self) -> Result<(), GgufError> {
        let mut entries = std::mem::take(&mut self.entries);
        self.sort_by_name(&mut entries, Item::key)?;
        self.entries = entries;
        Ok(())
    }

    fn sort_infos(&mut self) -> Result<(), GgufError> {
        let mut infos = std::mem::take(&mut self.infos);
        self.sort_by_name(&mut infos, Item::tensor)?;
        self.infos = infos;
        Ok(())
    }

    /// Sorts places by the names there; two of one name are an error at the later one.
    ///
    /// In place, as a set of names would take more memory than a file of many short ones. A comparison ends at the first
    /// byte that differs, and so reads no more than the shorter name: a long one makes those with short ones no slower.
    fn sort_by_name(&self, places: &mut [usize], item: fn(&str) -> Item) -> Result<(), GgufError> {
        places.sort_unstable_by(|a, b| self.name(*a).cmp(self.name(*b)).then(a.cmp(b)));
        let twin = places.windows(2).find(|pair| self.name(pair[0]) == self.name(pair[1]));
        twin.map_or(Ok(()), |pair| {
            let name = str::from_utf8(self.name(pair[1])).expect("checked by parse");
            let (offset, item) = (pair[1] as u64, item(name));
            Err(GgufError { problem: Problem::Duplicate, offset, item })
        })
    }

    fn read_alignment(&self) -> Result<u64, GgufError> {
        let (key, default) = ALIGNMENT;
        let Some(at) = self.find(&self.entries, key) else { return Ok(default) };
        match self.entry(at).1 {
            Value::U32(value) if value.is_power_of_two() && value % 8 == 0 => Ok(value.into()),
            _ => Err(GgufError {
                problem: Problem::Alignment,
                offset: at as u64,
                item: Item::key(key),
            }),
        }
    }

    /// Every tensor's data has to be in the file, and no byte of it in two.
    fn check_data(&mut self) -> Result<(), GgufError> {
        for &at in &self.infos {
            let info = self.info(at);
            info.locate(self.file, self.data, self.alignment).map_err(|problem| GgufError {
                problem,
                offset: at as u64,
                item: Item::tensor(info.name),
            })?;
        }
        let mut infos = std::mem::take(&mut self.infos);
        infos.sort_unstable_by_key(|&at| (self.tensor_at(at).offset, at));
        let mut last: Option<Tensor<'_>> = None;
        for &at in &infos {
            let tensor = self.tensor_at(at);
            if tensor.bytes.is_empty() {
                continue;
            }
            if let Some(last) = last.filter(|last| last.offset + last.bytes.len() > tensor.offset) {
                return Err(GgufError {
                    problem: Problem::Overlap(excerpt(last.name.as_bytes())),
                    offset: at as u64,
                    item: Item::tensor(tensor.name),
                });
            }
            last = Some(tensor);
        }
        self.infos = infos;
        Ok(())
    }
}

fn read_version(cursor: &mut Cursor<'_>) -> Result<u32, GgufError> {
    let in_header = |fault: Fault| fault.of(Item::Header);
    let wrong = |problem, offset| GgufError { problem, offset, item: Item::Header };
    let magic = cursor.array::<4>().map_err(in_header)?;
    if magic != *b"GGUF" {
        return Err(wrong(Problem::Magic(magic), 0));
    }
    match cursor.u32().map_err(in_header)? {
        version @ (2 | 3) => Ok(version),
        // A version has never been so high that its low half is zero.
        version if version.trailing_zeros() >= 16 && version != 0 => {
            Err(wrong(Problem::BigEndian, 4))
        }
        version => Err(wrong(Problem::Version(version), 4)),
    }
}

fn read_entries(cursor: &mut Cursor<'_>, n_entries: u64) -> Result<Vec<usize>, GgufError> {
    let mut entries = Vec::with_capacity(n_entries as usize);
    for index in 0..n_entries {
        entries.push(cursor.at());
        let key = cursor.name(MAX_KEY_LEN).map_err(|fault| fault.of(Item::KeyIndex(index)))?;
        Value::read(cursor).map_err(|fault| fault.of(Item::key(key)))?;
    }
    Ok(entries)
}

fn read_infos(cursor: &mut Cursor<'_>, n_tensors: u64) -> Result<Vec<usize>, GgufError> {
    let mut infos = Vec::with_capacity(n_tensors as usize);
    for index in 0..n_tensors {
        infos.push(cursor.at());
        let name =
            cursor.name(MAX_TENSOR_NAME_LEN).map_err(|fault| fault.of(Item::TensorIndex(index)))?;
        Info::read(name, cursor).map_err(|fault| fault.of(Item::tensor(name)))?;
    }
    Ok(infos)
}
