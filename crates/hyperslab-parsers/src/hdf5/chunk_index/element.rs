//! An element of a fixed or extensible array, and the same part of a B-tree record: the location of a chunk's bytes.

use hyperslab_core::ByteRange;

use crate::cursor::Cursor;
use crate::error::Error;
use crate::hdf5::sizes::Sizes;

/// Bytes of a filter mask.
const MASK_NBYTES: usize = 4;

/// How elements are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementFormat {
    sizes: Sizes,
    /// The length of an unfiltered chunk.
    chunk_nbytes: u64,
    /// Bytes of a stored length, if chunks are filtered.
    length_width: Option<usize>,
    /// Bytes of an element.
    pub nbytes: usize,
}

impl ElementFormat {
    /// Elements of `nbytes` bytes, for filtered chunks or not; `None` if an address does not fit.
    pub fn new(sizes: Sizes, chunk_nbytes: u64, filtered: bool, nbytes: usize) -> Option<Self> {
        let length_width = if filtered {
            let width = nbytes.checked_sub(sizes.offset + MASK_NBYTES)?;
            Some(width).filter(|width| (1..=8).contains(width)).map(Some)
        } else {
            (nbytes == sizes.offset).then_some(None)
        }?;
        Some(Self { sizes, chunk_nbytes, length_width, nbytes })
    }

    /// The location of a chunk and its filter mask; `None` if it was never written.
    pub fn read(&self, cursor: &mut Cursor<'_>) -> Result<Option<(ByteRange, u32)>, Error> {
        let address = self.sizes.address(cursor)?;
        let (length, mask) = match self.length_width {
            None => (self.chunk_nbytes, 0),
            Some(width) => (cursor.uint(width)?, cursor.u32()?),
        };
        let range =
            |offset| ByteRange::new(offset, length).map_err(|_| cursor.invalid("a chunk beyond 2^64"));
        address.map(|address| range(address).map(|range| (range, mask))).transpose()
    }
}
