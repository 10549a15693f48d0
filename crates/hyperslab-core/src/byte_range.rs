//! Bytes of one file: an offset and a length.

use crate::error::Error;

/// Half-open: `offset .. offset + length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteRange {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

impl ByteRange {
    /// A range. Fails if its end overflows.
    pub fn new(offset: u64, length: u64) -> Result<Self, Error> {
        match offset.checked_add(length) {
            Some(_) => Ok(Self { offset, length }),
            None => Err(Error::TooLarge { what: "the end of a byte range" }),
        }
    }

    /// One past the last byte. Saturates for a range that no file has.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}
