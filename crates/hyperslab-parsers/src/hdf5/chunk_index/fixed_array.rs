//! Chunks in a fixed array, with one element for each chunk (HDF5 File Format Specification 3.0, VII.C).

use std::sync::Arc;

use hyperslab_core::{ByteRange, StoredChunk};

use super::array_head::{Head, START_NBYTES, page_elements};
use super::index::ChunkIndex;
use super::page_runs::{PageRun, PagedBlock};
use crate::cursor::Cursor;
use crate::error::Error;
use crate::hdf5::lookup3::{CHECKSUM_NBYTES, checked};
use crate::hdf5::sizes::Sizes;
use crate::pages::Pages;

const HEADER: &str = "a fixed array's header";
const BLOCK: &str = "a fixed array's data block";

/// A part of the array.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Header { address: u64 },
    Block(Arc<Array>),
    Run(PageRun),
}

/// The array, from its header.
#[derive(Debug)]
pub(super) struct Array {
    head: Head,
    block: u64,
    element_count: u64,
    page_elements: u64,
}

/// Notes that the header will be needed.
pub(super) fn want(index: &ChunkIndex, address: u64, pages: &Pages<'_>) {
    pages.want(ByteRange { offset: address, length: header_nbytes(index.sizes) });
}

/// Reads a part: its chunks, and what must be read next.
pub(super) fn step(
    index: &ChunkIndex,
    part: &Part,
    pages: &Pages<'_>,
    found: &mut Vec<StoredChunk>,
) -> Result<Vec<Part>, Error> {
    match part {
        Part::Header { address } => {
            let array = Array::read(index, *address, pages)?;
            Ok(array.map(|array| Part::Block(Arc::new(array))).into_iter().collect())
        }
        Part::Block(array) if array.is_paged() => array.read_prefix(index, pages),
        Part::Block(array) => array.read_block(index, pages, found).map(|()| Vec::new()),
        Part::Run(run) => run.step(index, &index.numbering.row_major()?, pages, found).map(|()| Vec::new()),
    }
}

fn header_nbytes(sizes: Sizes) -> u64 {
    START_NBYTES + 2 + (sizes.length + sizes.offset + CHECKSUM_NBYTES) as u64
}

impl Array {
    /// `None` if no data block exists yet.
    fn read(index: &ChunkIndex, address: u64, pages: &Pages<'_>) -> Result<Option<Self>, Error> {
        let bytes = pages.bytes(HEADER, address, header_nbytes(index.sizes))?;
        let mut cursor = Cursor::new(HEADER, address, checked(HEADER, address, &bytes)?);
        let head = Head::read(index, b"FAHD", "a fixed array", address, &mut cursor)?;
        let page_elements = page_elements(cursor.u8()?);
        let element_count = index.sizes.length(&mut cursor)?;
        let block = index.sizes.address(&mut cursor)?;
        let Some(block) = block else { return Ok(None) };
        let array = Self { head, block, element_count, page_elements };
        pages.want(ByteRange { offset: block, length: array.prefix_nbytes(index.sizes) });
        pages.want(ByteRange { offset: block, length: array.first_nbytes(index.sizes) });
        Ok(Some(array))
    }

    fn is_paged(&self) -> bool {
        self.element_count > self.page_elements
    }

    /// The pages, which follow the block's prefix.
    fn paged(&self, sizes: Sizes) -> PagedBlock {
        PagedBlock {
            address: self.block.saturating_add(self.prefix_nbytes(sizes)),
            first: 0,
            element_count: self.element_count,
            page_elements: self.page_elements,
            format: self.head.format,
        }
    }

    fn bitmap_nbytes(&self) -> u64 {
        if self.is_paged() { self.element_count.div_ceil(self.page_elements).div_ceil(8) } else { 0 }
    }

    /// For a paged block: the size of everything before the pages, including its checksum.
    fn prefix_nbytes(&self, sizes: Sizes) -> u64 {
        START_NBYTES
            .saturating_add((sizes.offset + CHECKSUM_NBYTES) as u64)
            .saturating_add(self.bitmap_nbytes())
    }

    /// The size of what is read first: the prefix of a paged block, or the whole of another block.
    fn first_nbytes(&self, sizes: Sizes) -> u64 {
        let elements = if self.is_paged() { 0 } else { self.element_count };
        let nbytes = elements.saturating_mul(self.head.format.nbytes as u64);
        self.prefix_nbytes(sizes).saturating_add(nbytes)
    }

    fn read_prefix(&self, index: &ChunkIndex, pages: &Pages<'_>) -> Result<Vec<Part>, Error> {
        let nbytes = self.first_nbytes(index.sizes);
        let bytes = pages.bytes(BLOCK, self.block, nbytes)?;
        index.visited.enter(BLOCK, self.block, nbytes, pages.file_length())?;
        let mut cursor = Cursor::new(BLOCK, self.block, checked(BLOCK, self.block, &bytes)?);
        self.head.check_start(index, b"FADB", &mut cursor)?;
        let runs = self.paged(index.sizes).runs(cursor.rest(), 0, pages)?;
        Ok(runs.into_iter().map(Part::Run).collect())
    }

    fn read_block(
        &self,
        index: &ChunkIndex,
        pages: &Pages<'_>,
        found: &mut Vec<StoredChunk>,
    ) -> Result<(), Error> {
        let nbytes = self.first_nbytes(index.sizes);
        let bytes = pages.bytes(BLOCK, self.block, nbytes)?;
        index.visited.enter(BLOCK, self.block, nbytes, pages.file_length())?;
        let mut cursor = Cursor::new(BLOCK, self.block, checked(BLOCK, self.block, &bytes)?);
        self.head.check_start(index, b"FADB", &mut cursor)?;
        index.push_elements((&index.numbering.row_major()?, 0), &self.head.format, cursor, found)
    }
}

#[cfg(test)]
#[path = "fixed_array_tests.rs"]
mod tests;
