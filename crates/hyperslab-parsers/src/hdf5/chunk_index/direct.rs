//! Chunks without an index: a single chunk, or consecutive chunks (HDF5 File Format Specification 3.0, VII.A, VII.B).

use hyperslab_core::{ByteRange, StoredChunk};

use super::index::{ChunkIndex, push};
use crate::error::Error;
use crate::pages::Pages;

/// The only chunk of an array.
pub(super) fn single(index: &ChunkIndex, range: ByteRange, filter_mask: u32, found: &mut Vec<StoredChunk>) {
    if index.numbering.chunk_count() > 0 {
        push(0, (range, filter_mask), found);
    }
}

/// Consecutive chunks, numbered over the maximum shape. None of them is missing.
pub(super) fn implicit(
    index: &ChunkIndex,
    address: u64,
    pages: &Pages<'_>,
    found: &mut Vec<StoredChunk>,
) -> Result<(), Error> {
    let order = index.numbering.row_major()?;
    let mut counter = order.from(0);
    let mut offset = address;
    let mut left = index.numbering.chunk_count();
    // Each number takes up bytes of the file, even outside the current shape, so the file's length bounds the loop.
    while left > 0 {
        let range = ByteRange { offset, length: index.chunk_nbytes };
        if let Some(position) = counter.next() {
            if range.end() > pages.file_length() {
                return Err(past_the_end(range, pages)); // the file's length bounds how many chunks an unlimited grid may list
            }
            push(position, (range, 0), found);
            left -= 1;
        }
        let next = offset.checked_add(index.chunk_nbytes).filter(|&next| next <= pages.file_length());
        offset = match next {
            Some(next) => next,
            None if left == 0 => return Ok(()),
            None => return Err(past_the_end(range, pages)),
        };
    }
    Ok(())
}

fn past_the_end(range: ByteRange, pages: &Pages<'_>) -> Error {
    let ByteRange { offset, length } = range;
    Error::Truncated { what: "chunks in a row", offset, length, file_length: pages.file_length() }
}

#[cfg(test)]
#[path = "direct_tests.rs"]
mod tests;
