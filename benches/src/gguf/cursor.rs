//! A place in the file, and reading on from it.

#![forbid(unsafe_code)]

use super::error::{Fault, Problem, excerpt};

/// Reads forward. No read goes beyond the end, and a failed one says where it was tried.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at byte `at` of `bytes`, or at their end.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at: at.min(bytes.len()) }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The bytes that have not been read.
    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// What lies between here and a later place of the same file.
    pub(super) fn up_to(&self, end: &Self) -> &'a [u8] {
        &self.bytes[self.at..end.at]
    }

    pub(super) fn fault(&self, problem: Problem) -> Fault {
        Fault { problem, offset: self.at }
    }

    /// Fails unless `count` things of at least `size` bytes can follow.
    pub(super) fn require(&self, count: u64, size: u64) -> Result<(), Fault> {
        let left = self.rest().len() as u64;
        let needed = count.saturating_mul(size);
        match needed <= left {
            true => Ok(()),
            false => Err(self.fault(Problem::CutShort { needed, left })),
        }
    }

    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8], Fault> {
        self.require(len, 1)?;
        let taken = &self.rest()[..len as usize]; // it is at most what is left, so it is a usize
        self.at += taken.len();
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let Some(array) = self.rest().first_chunk::<N>() else {
            let left = self.rest().len() as u64;
            return Err(self.fault(Problem::CutShort { needed: N as u64, left }));
        };
        self.at += N;
        Ok(*array)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length and that many bytes.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Fault> {
        let mut next = self.clone();
        let len = next.u64()?;
        let string = next.take(len)?;
        *self = next;
        Ok(string)
    }

    /// A key or the name of a tensor, of at most `max_len` bytes.
    pub(super) fn name(&mut self, max_len: usize) -> Result<&'a str, Fault> {
        let start = self.at;
        let name = self.string()?;
        let fault = |problem| Fault { problem, offset: start };
        if name.len() > max_len {
            let (len, begins) = (name.len() as u64, excerpt(name));
            return Err(fault(Problem::NameTooLong { len, max_len: max_len as u64, begins }));
        }
        str::from_utf8(name).map_err(|_| fault(Problem::NotUtf8))
    }
}
