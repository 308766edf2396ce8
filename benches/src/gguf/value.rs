//! Metadata values. Strings and arrays are views of the file; an array is walked once when it is read, and again by who asks.

#![forbid(unsafe_code)]

use super::cursor::Cursor;
use super::error::{Fault, Problem};

/// The type of a value; the numbers are those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ValueType {
    /// `u8`
    U8 = 0,
    /// `i8`
    I8 = 1,
    /// `u16`
    U16 = 2,
    /// `i16`
    I16 = 3,
    /// `u32`
    U32 = 4,
    /// `i32`
    I32 = 5,
    /// `f32`
    F32 = 6,
    /// One byte, 0 or 1.
    Bool = 7,
    /// A length and that many bytes.
    String = 8,
    /// A type, a length and that many elements.
    Array = 9,
    /// `u64`
    U64 = 10,
    /// `i64`
    I64 = 11,
    /// `f64`
    F64 = 12,
}

impl ValueType {
    /// Every type, in the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::Bool,
        Self::String,
        Self::Array,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// Fewest bytes that a value of this type takes.
    const fn min_bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::String => 8,
            Self::Array => 12,
        }
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Fault> {
        let start = cursor.at();
        let id = cursor.u32()?;
        let found = Self::ALL.get(id as usize).copied();
        found.ok_or(Fault { problem: Problem::ValueType(id), offset: start })
    }
}

/// One value of the metadata.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names of the variants say it all")]
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    /// The bytes as they are: whether they are UTF-8 is for the reader to ask ([`Value::as_str`]).
    String(&'a [u8]),
    Array(Array<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl<'a> Value<'a> {
    /// An integer of any width that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::U8(value) => Some(value.into()),
            Self::U16(value) => Some(value.into()),
            Self::U32(value) => Some(value.into()),
            Self::U64(value) => Some(value),
            Self::I8(value) => value.try_into().ok(),
            Self::I16(value) => value.try_into().ok(),
            Self::I32(value) => value.try_into().ok(),
            Self::I64(value) => value.try_into().ok(),
            _ => None,
        }
    }

    /// An `f32`, or an `f64` rounded to one.
    pub fn as_f32(&self) -> Option<f32> {
        match *self {
            Self::F32(value) => Some(value),
            Self::F64(value) => Some(value as f32),
            _ => None,
        }
    }

    /// A truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// A string that is UTF-8.
    pub fn as_str(&self) -> Option<&'a str> {
        match *self {
            Self::String(bytes) => str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// An array.
    pub fn as_array(&self) -> Option<Array<'a>> {
        match *self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Reads a type and a value of it.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
        let value_type = ValueType::read(cursor)?;
        Self::read_as(value_type, cursor, 0)
    }

    /// Reads a value inside of `depth` arrays.
    fn read_as(
        value_type: ValueType,
        cursor: &mut Cursor<'a>,
        depth: usize,
    ) -> Result<Self, Fault> {
        Ok(match value_type {
            ValueType::U8 => Self::U8(u8::from_le_bytes(cursor.array()?)),
            ValueType::I8 => Self::I8(i8::from_le_bytes(cursor.array()?)),
            ValueType::U16 => Self::U16(u16::from_le_bytes(cursor.array()?)),
            ValueType::I16 => Self::I16(i16::from_le_bytes(cursor.array()?)),
            ValueType::U32 => Self::U32(cursor.u32()?),
            ValueType::I32 => Self::I32(i32::from_le_bytes(cursor.array()?)),
            ValueType::F32 => Self::F32(f32::from_le_bytes(cursor.array()?)),
            ValueType::Bool => Self::Bool(read_bool(cursor)?),
            ValueType::String => Self::String(cursor.string()?),
            ValueType::Array => Self::Array(Array::read(cursor, depth)?),
            ValueType::U64 => Self::U64(cursor.u64()?),
            ValueType::I64 => Self::I64(i64::from_le_bytes(cursor.array()?)),
            ValueType::F64 => Self::F64(f64::from_le_bytes(cursor.array()?)),
        })
    }
}

fn read_bool(cursor: &mut Cursor<'_>) -> Result<bool, Fault> {
    let start = cursor.at();
    match cursor.array()? {
        [byte @ (0 | 1)] => Ok(byte == 1),
        [byte] => Err(Fault { problem: Problem::Bool(byte), offset: start }),
    }
}

/// An array of values of one type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Array<'a> {
    element_type: ValueType,
    len: usize,
    elements: &'a [u8],
    /// Arrays around this one.
    depth: usize,
}

impl<'a> Array<'a> {
    /// Most arrays around an array. The format sets no limit; this one keeps the stack of a reader bounded.
    pub const MAX_DEPTH: usize = 32;

    /// The type of its elements.
    pub const fn element_type(&self) -> ValueType {
        self.element_type
    }

    /// The number of its elements.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its elements, in order.
    pub fn iter(&self) -> Values<'a> {
        Values {
            element_type: self.element_type,
            left: self.len,
            cursor: Cursor::new(self.elements, 0),
            depth: self.depth + 1,
        }
    }

    fn read(cursor: &mut Cursor<'a>, depth: usize) -> Result<Self, Fault> {
        if depth > Self::MAX_DEPTH {
            return Err(cursor.fault(Problem::Depth));
        }
        let element_type = ValueType::read(cursor)?;
        let count = cursor.u64()?;
        cursor.require(count, element_type.min_bytes())?;
        let len = count as usize; // each element takes a byte of the file at least
        let start = cursor.clone();
        match element_type {
            ValueType::Bool | ValueType::String | ValueType::Array => {
                for _ in 0..len {
                    Value::read_as(element_type, cursor, depth + 1)?;
                }
            }
            _ => _ = cursor.take(count * element_type.min_bytes())?,
        }
        let elements = start.up_to(cursor);
        Ok(Self { element_type, len, elements, depth })
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = Value<'a>;
    type IntoIter = Values<'a>;

    fn into_iter(self) -> Values<'a> {
        self.iter()
    }
}

/// The elements of an [`Array`].
#[derive(Clone, Debug)]
pub struct Values<'a> {
    element_type: ValueType,
    left: usize,
    cursor: Cursor<'a>,
    depth: usize,
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        // It does not fail: `Array::read` has walked over the same bytes.
        Value::read_as(self.element_type, &mut self.cursor, self.depth).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Values<'_> {}
