//! Chunks in an extensible array (HDF5 File Format Specification 3.0, VII.D), which can grow without limit.
//!
//! There is one element for each chunk. The index block holds the first elements, then pointers to data blocks, then
//! pointers to secondary blocks ("super blocks"), which point to more data blocks. Super block `u` has 2^(u/2) data
//! blocks of 2^((u+1)/2) times the minimum element count, both exponents rounded down. The first super blocks do not
//! exist as blocks: the index block points to their data blocks.

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

const HEADER: &str = "an extensible array's header";
const INDEX_BLOCK: &str = "an extensible array's index block";
const SUPER_BLOCK: &str = "an extensible array's secondary block";
const DATA_BLOCK: &str = "an extensible array's data block";

/// A part of the array.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Header { address: u64 },
    IndexBlock(Arc<Array>),
    SuperBlock { array: Arc<Array>, address: u64, number: u32 },
    DataBlock { array: Arc<Array>, address: u64, first: u64, element_count: u64 },
    Run(PageRun),
}

/// The array, from its header.
#[derive(Debug)]
pub(super) struct Array {
    head: Head,
    index_block: u64,
    /// Bytes of a block's first position in the array, which each block repeats.
    first_width: usize,
    /// Elements in the index block.
    index_elements: u64,
    /// Elements of the smallest data block, a power of two.
    min_elements: u64,
    /// The number of super blocks.
    super_count: u32,
    /// How many super blocks have their data blocks on the index block.
    direct_count: u32,
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
            Ok(array.map(|array| Part::IndexBlock(Arc::new(array))).into_iter().collect())
        }
        Part::IndexBlock(array) => array.read_index_block(index, pages, found),
        Part::SuperBlock { array, address, number } => {
            array.read_super_block(index, *address, *number, pages)
        }
        Part::DataBlock { array, address, first, element_count } => {
            array.read_data_block(index, (*address, *first, *element_count), pages, found)
        }
        Part::Run(run) => {
            run.step(index, &index.numbering.unlimited_first()?, pages, found).map(|()| Vec::new())
        }
    }
}

fn header_nbytes(sizes: Sizes) -> u64 {
    START_NBYTES + 6 + (6 * sizes.length + sizes.offset + CHECKSUM_NBYTES) as u64
}

/// The number of data blocks of a super block.
fn block_count(number: u32) -> u64 {
    1_u64.checked_shl(number / 2).unwrap_or(u64::MAX)
}

impl Array {
    /// `None` if no index block exists yet.
    fn read(index: &ChunkIndex, address: u64, pages: &Pages<'_>) -> Result<Option<Self>, Error> {
        let bytes = pages.bytes(HEADER, address, header_nbytes(index.sizes))?;
        let mut cursor = Cursor::new(HEADER, address, checked(HEADER, address, &bytes)?);
        let head = Head::read(index, b"EAHD", "an extensible array", address, &mut cursor)?;
        let max_nbits = cursor.u8()?;
        let index_elements = u64::from(cursor.u8()?);
        let (min_elements, min_pointers) = (cursor.u8()?, cursor.u8()?);
        let page_elements = page_elements(cursor.u8()?);
        cursor.skip(6 * index.sizes.length)?; // statistics
        let index_block = index.sizes.address(&mut cursor)?;
        let counts = super_block_counts(max_nbits, min_elements, min_pointers);
        let Some((super_count, direct_count)) = counts else {
            let parameters = (max_nbits, min_elements, min_pointers);
            return Err(cursor.invalid(format!("impossible parameters {parameters:?}")));
        };
        let Some(index_block) = index_block else { return Ok(None) };
        let array = Self {
            head,
            index_block,
            first_width: usize::from(max_nbits.div_ceil(8)),
            index_elements,
            min_elements: u64::from(min_elements),
            super_count,
            direct_count,
            page_elements,
        };
        pages.want(ByteRange { offset: index_block, length: array.index_block_nbytes(index.sizes) });
        Ok(Some(array))
    }

    /// The number of elements in each data block of a super block.
    fn block_elements(&self, number: u32) -> u64 {
        1_u64.checked_shl(number.div_ceil(2)).unwrap_or(u64::MAX).saturating_mul(self.min_elements)
    }

    /// The number of a super block's first element: the super blocks before it have 2^u - 1 times the minimum element
    /// count.
    fn super_block_first(&self, number: u32) -> u64 {
        let before = (1_u64.checked_shl(number).unwrap_or(u64::MAX) - 1).saturating_mul(self.min_elements);
        before.saturating_add(self.index_elements)
    }

    /// The number of data blocks on the index block.
    fn direct_block_count(&self) -> u64 {
        (0..self.direct_count).map(block_count).fold(0, u64::saturating_add)
    }

    fn index_block_nbytes(&self, sizes: Sizes) -> u64 {
        let pointers = self.direct_block_count() + u64::from(self.super_count - self.direct_count);
        START_NBYTES
            + (sizes.offset + CHECKSUM_NBYTES) as u64
            + self.index_elements * self.head.format.nbytes as u64
            + pointers * sizes.offset as u64
    }

    /// The number of pages of each data block of a super block; 0 if the blocks are not paged.
    fn page_count(&self, number: u32) -> u64 {
        let elements = self.block_elements(number);
        if elements > self.page_elements { elements.div_ceil(self.page_elements) } else { 0 }
    }

    /// Bytes of a super block's bitmap: whole bytes for each of its data blocks.
    fn bitmap_nbytes(&self, number: u32) -> u64 {
        block_count(number).saturating_mul(self.page_count(number).div_ceil(8))
    }

    fn super_block_nbytes(&self, number: u32, sizes: Sizes) -> u64 {
        let fixed = START_NBYTES + (sizes.offset + self.first_width + CHECKSUM_NBYTES) as u64;
        let pointers = block_count(number).saturating_mul(sizes.offset as u64);
        fixed.saturating_add(self.bitmap_nbytes(number)).saturating_add(pointers)
    }

    /// The size of a data block without its elements.
    fn prefix_nbytes(&self, sizes: Sizes) -> u64 {
        START_NBYTES + (sizes.offset + self.first_width + CHECKSUM_NBYTES) as u64
    }

    /// The part of a data block that is read at once: only the prefix if it is paged, otherwise all of it.
    fn data_block_nbytes(&self, element_count: u64, sizes: Sizes) -> u64 {
        let elements = if element_count > self.page_elements { 0 } else { element_count };
        self.prefix_nbytes(sizes).saturating_add(elements.saturating_mul(self.head.format.nbytes as u64))
    }

    fn read_index_block(
        self: &Arc<Self>,
        index: &ChunkIndex,
        pages: &Pages<'_>,
        found: &mut Vec<StoredChunk>,
    ) -> Result<Vec<Part>, Error> {
        let (address, nbytes) = (self.index_block, self.index_block_nbytes(index.sizes));
        let bytes = pages.bytes(INDEX_BLOCK, address, nbytes)?;
        index.visited.enter(INDEX_BLOCK, address, nbytes, pages.file_length())?;
        let mut cursor = Cursor::new(INDEX_BLOCK, address, checked(INDEX_BLOCK, address, &bytes)?);
        self.head.check_start(index, b"EAIB", &mut cursor)?;
        let elements_nbytes =
            usize::try_from(self.index_elements).unwrap_or(usize::MAX) * self.head.format.nbytes;
        let elements = Cursor::new(INDEX_BLOCK, cursor.offset(), cursor.take(elements_nbytes)?);
        index.push_elements((&index.numbering.unlimited_first()?, 0), &self.head.format, elements, found)?;
        let mut parts = Vec::new();
        for number in 0..self.direct_count {
            self.data_blocks(index, number, &mut cursor, pages, &mut parts)?;
        }
        if parts.iter().any(|part| self.is_paged(part)) {
            return Err(Error::unsupported("an extensible array with pages below its index block"));
        }
        for number in self.direct_count..self.super_count {
            let Some(address) = index.sizes.address(&mut cursor)? else { continue };
            let length = self.super_block_nbytes(number, index.sizes);
            pages.want(ByteRange { offset: address, length });
            parts.push(Part::SuperBlock { array: Arc::clone(self), address, number });
        }
        Ok(parts)
    }

    fn is_paged(&self, part: &Part) -> bool {
        matches!(part, Part::DataBlock { element_count, .. } if *element_count > self.page_elements)
    }

    /// The data blocks of a super block, given their addresses.
    fn data_blocks(
        self: &Arc<Self>,
        index: &ChunkIndex,
        number: u32,
        cursor: &mut Cursor<'_>,
        pages: &Pages<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<(), Error> {
        let element_count = self.block_elements(number);
        let mut first = self.super_block_first(number);
        for _ in 0..block_count(number) {
            if let Some(address) = index.sizes.address(cursor)? {
                let length = self.data_block_nbytes(element_count, index.sizes);
                pages.want(ByteRange { offset: address, length });
                parts.push(Part::DataBlock { array: Arc::clone(self), address, first, element_count });
            }
            first = first.saturating_add(element_count);
        }
        Ok(())
    }

    fn read_super_block(
        self: &Arc<Self>,
        index: &ChunkIndex,
        address: u64,
        number: u32,
        pages: &Pages<'_>,
    ) -> Result<Vec<Part>, Error> {
        let nbytes = self.super_block_nbytes(number, index.sizes);
        let bytes = pages.bytes(SUPER_BLOCK, address, nbytes)?;
        index.visited.enter(SUPER_BLOCK, address, nbytes, pages.file_length())?;
        let mut cursor = Cursor::new(SUPER_BLOCK, address, checked(SUPER_BLOCK, address, &bytes)?);
        self.head.check_start(index, b"EASB", &mut cursor)?;
        cursor.skip(self.first_width)?;
        let bitmap = cursor.take(usize::try_from(self.bitmap_nbytes(number)).unwrap_or(usize::MAX))?;
        let mut parts = Vec::new();
        self.data_blocks(index, number, &mut cursor, pages, &mut parts)?;
        let mut runs = Vec::new();
        for part in parts.iter().filter(|part| self.is_paged(part)) {
            runs.append(&mut self.page_runs(index, number, part, bitmap, pages)?);
        }
        parts.extend(runs.into_iter().map(Part::Run));
        Ok(parts)
    }

    /// The written pages of a data block. Reading the block itself then only checks its prefix.
    fn page_runs(
        &self,
        index: &ChunkIndex,
        number: u32,
        part: &Part,
        bitmap: &[u8],
        pages: &Pages<'_>,
    ) -> Result<Vec<PageRun>, Error> {
        let Part::DataBlock { address, first, element_count, .. } = *part else { return Ok(Vec::new()) };
        let block = PagedBlock {
            address: address.saturating_add(self.prefix_nbytes(index.sizes)),
            first,
            element_count,
            page_elements: self.page_elements,
            format: self.head.format,
        };
        // The bits of all data blocks are contiguous, although each block has room for whole bytes.
        let position = first.saturating_sub(self.super_block_first(number)) / element_count.max(1);
        block.runs(bitmap, position.saturating_mul(self.page_count(number)), pages)
    }

    fn read_data_block(
        &self,
        index: &ChunkIndex,
        (address, first, element_count): (u64, u64, u64),
        pages: &Pages<'_>,
        found: &mut Vec<StoredChunk>,
    ) -> Result<Vec<Part>, Error> {
        let nbytes = self.data_block_nbytes(element_count, index.sizes);
        let bytes = pages.bytes(DATA_BLOCK, address, nbytes)?;
        index.visited.enter(DATA_BLOCK, address, nbytes, pages.file_length())?;
        let mut cursor = Cursor::new(DATA_BLOCK, address, checked(DATA_BLOCK, address, &bytes)?);
        self.head.check_start(index, b"EADB", &mut cursor)?;
        cursor.skip(self.first_width)?;
        // A paged block has nothing more to read here.
        index.push_elements(
            (&index.numbering.unlimited_first()?, first),
            &self.head.format,
            cursor,
            found,
        )?;
        Ok(Vec::new())
    }
}

/// The number of super blocks, and of those on the index block; `None` for impossible parameters.
fn super_block_counts(max_nbits: u8, min_elements: u8, min_pointers: u8) -> Option<(u32, u32)> {
    if max_nbits > 64 || !min_elements.is_power_of_two() || !min_pointers.is_power_of_two() {
        return None;
    }
    let super_count = u32::from(max_nbits).checked_sub(min_elements.ilog2())? + 1;
    let direct_count = 2 * min_pointers.ilog2();
    (direct_count <= super_count).then_some((super_count, direct_count))
}

#[cfg(test)]
#[path = "extensible_array_tests.rs"]
mod tests;
