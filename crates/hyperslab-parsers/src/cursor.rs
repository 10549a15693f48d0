//! Reads numbers one after another, from bytes that may end too soon.

use crate::error::Error;

/// A position in the bytes of one structure, which starts at `offset` in the file.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    what: &'static str,
    offset: u64,
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of a structure.
    pub fn new(what: &'static str, offset: u64, bytes: &'a [u8]) -> Self {
        Self { what, offset, bytes, position: 0 }
    }

    /// The offset of the next byte in the file.
    pub fn offset(&self) -> u64 {
        self.offset.saturating_add(self.position as u64)
    }

    /// How many bytes have been read.
    pub fn position(&self) -> usize {
        self.position
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// The next `length` bytes.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let stop = self.position.checked_add(length);
        let taken = stop.and_then(|stop| self.bytes.get(self.position..stop));
        let taken = taken.ok_or_else(|| self.invalid(format!("it ends before the next {length} bytes")))?;
        self.position += length;
        Ok(taken)
    }

    /// Skips bytes.
    pub fn skip(&mut self, length: usize) -> Result<(), Error> {
        self.take(length).map(|_| ())
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Error> {
        self.take(1).map(|bytes| bytes.first().copied().unwrap_or_default())
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self) -> Result<u16, Error> {
        self.take(2).map(|bytes| bytes.iter().rev().fold(0, |value, &byte| value << 8 | u16::from(byte)))
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self) -> Result<u32, Error> {
        self.take(4).map(|bytes| bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte)))
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self) -> Result<u64, Error> {
        self.uint(8)
    }

    /// Up to eight bytes, little-endian.
    pub fn uint(&mut self, width: usize) -> Result<u64, Error> {
        if width > 8 {
            return Err(self.invalid(format!("a number {width} bytes wide")));
        }
        let bytes = self.take(width)?;
        Ok(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// Up to eight bytes, big-endian.
    pub fn uint_be(&mut self, width: usize) -> Result<u64, Error> {
        if width > 8 {
            return Err(self.invalid(format!("a number {width} bytes wide")));
        }
        let bytes = self.take(width)?;
        Ok(bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// Fails unless the next bytes are this signature.
    pub fn signature(&mut self, expected: &[u8]) -> Result<(), Error> {
        let found = self.take(expected.len())?;
        if found == expected {
            return Ok(());
        }
        let expected = String::from_utf8_lossy(expected).into_owned();
        Err(self.invalid(format!(
            "signature {expected:?} is missing, found {:?}",
            String::from_utf8_lossy(found)
        )))
    }

    /// An error in this structure.
    pub fn invalid(&self, problem: impl Into<String>) -> Error {
        Error::invalid(self.what, self.offset, problem)
    }
}
