//! Local heaps: the names in old-style groups and of external files (HDF5 File Format Specification 3.0, III.D).

use hyperslab_core::ByteRange;

use super::sizes::Sizes;
use super::text;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

const WHAT: &str = "local heap";
/// How many bytes are searched first for the end of a name.
const FIRST_NBYTES: u64 = 64;
/// The longest segment that is fetched ahead of its names.
const AHEAD_NBYTES: u64 = 4 << 20;

/// The location of a local heap's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalHeap {
    segment: ByteRange,
}

impl LocalHeap {
    /// Reads the heap's header.
    pub fn read(pages: &Pages<'_>, sizes: Sizes, address: u64) -> Result<Self, Error> {
        let length = 8 + 2 * sizes.length + sizes.offset;
        let bytes = pages.bytes(WHAT, address, length as u64)?;
        let mut cursor = Cursor::new(WHAT, address, &bytes);
        cursor.signature(b"HEAP")?;
        cursor.skip(4)?;
        let length = sizes.length(&mut cursor)?;
        cursor.skip(sizes.length)?; // head of the free list
        let offset = sizes.defined_address(&mut cursor)?;
        let end = offset.checked_add(length).filter(|&end| end <= pages.file_length());
        end.ok_or_else(|| cursor.invalid("its segment reaches past the end of the file"))?;
        let segment = ByteRange { offset, length };
        Ok(Self { segment })
    }

    /// Notes that all names will be needed, unless there are very many.
    pub fn want(&self, pages: &Pages<'_>) {
        if self.segment.length <= AHEAD_NBYTES {
            pages.want(self.segment);
        }
    }

    /// The text at an offset of the segment.
    pub fn text(&self, pages: &Pages<'_>, offset: u64) -> Result<String, Error> {
        let Some(available) = self.segment.length.checked_sub(offset) else {
            return Err(Error::invalid(WHAT, self.segment.offset, format!("no name at {offset}")));
        };
        let address = self.segment.offset.saturating_add(offset);
        let mut length = FIRST_NBYTES.min(available);
        loop {
            let bytes = pages.bytes(WHAT, address, length)?;
            if bytes.contains(&0) || length == available {
                return Ok(text::until_zero(&bytes));
            }
            length = length.saturating_mul(4).min(available);
        }
    }
}
