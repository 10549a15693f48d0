//! The widths of a file's addresses and lengths, and the offset that its addresses count from.

use crate::cursor::Cursor;
use crate::error::Error;

/// How a file stores addresses and lengths (HDF5 File Format Specification 3.0, II.A).
///
/// An address read through here is an offset from the start of the file: the base address is added once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes of an address.
    pub offset: usize,
    /// Bytes of a length.
    pub length: usize,
    /// The offset that addresses count from: after the user block.
    pub base: u64,
}

impl Sizes {
    /// An address as an offset in the file; `None` if it is undefined (all bits set).
    pub fn address(&self, cursor: &mut Cursor<'_>) -> Result<Option<u64>, Error> {
        let address = cursor.uint(self.offset)?;
        if address == all_ones(self.offset) {
            return Ok(None);
        }
        match address.checked_add(self.base) {
            Some(address) => Ok(Some(address)),
            None => Err(cursor.invalid("an address beyond 2^64")),
        }
    }

    /// An address that must be defined.
    pub fn defined_address(&self, cursor: &mut Cursor<'_>) -> Result<u64, Error> {
        self.address(cursor)?.ok_or_else(|| cursor.invalid("a required address is undefined"))
    }

    /// A length or a count.
    pub fn length(&self, cursor: &mut Cursor<'_>) -> Result<u64, Error> {
        cursor.uint(self.length)
    }
}

/// A number of `width` bytes with all bits set.
pub(crate) fn all_ones(width: usize) -> u64 {
    if width >= 8 { u64::MAX } else { (1_u64 << (8 * width)) - 1 }
}
