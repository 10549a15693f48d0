//! Pages of the data blocks of fixed and extensible arrays. Each page of elements has its own checksum.

use hyperslab_core::{ByteRange, StoredChunk};

use super::element::ElementFormat;
use super::index::ChunkIndex;
use super::numbering::Order;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::hdf5::lookup3::{CHECKSUM_NBYTES, checked};
use crate::pages::Pages;

const PAGE: &str = "a page of a chunk index";
/// How many pages are read in one step. This bounds how many bytes are copied together.
const RUN_PAGES: u64 = 64;

/// The pages of one data block.
#[derive(Clone, Copy, Debug)]
pub(super) struct PagedBlock {
    /// The offset of the first page.
    pub address: u64,
    /// The number of its first element.
    pub first: u64,
    /// The number of elements in the block.
    pub element_count: u64,
    /// The number of elements in a page. The last page may have fewer.
    pub page_elements: u64,
    /// How elements are stored.
    pub format: ElementFormat,
}

/// Consecutive pages of a block that were written.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRun {
    block: PagedBlock,
    start: u64,
    stop: u64,
}

impl PagedBlock {
    /// How many pages.
    pub fn page_count(&self) -> u64 {
        self.element_count.div_ceil(self.page_elements.max(1))
    }

    /// Bytes of all pages.
    pub fn nbytes(&self) -> u64 {
        let elements = self.element_count.saturating_mul(self.format.nbytes as u64);
        elements.saturating_add(self.page_count().saturating_mul(CHECKSUM_NBYTES as u64))
    }

    /// Bytes of a whole page.
    fn page_nbytes(&self) -> u64 {
        self.page_elements.saturating_mul(self.format.nbytes as u64).saturating_add(CHECKSUM_NBYTES as u64)
    }

    /// The runs of pages whose bits are set in the bitmap, from bit `first_bit` on, noted as needed.
    ///
    /// Fails if the block does not fit into the file, which bounds the number of runs.
    pub fn runs(&self, bitmap: &[u8], first_bit: u64, pages: &Pages<'_>) -> Result<Vec<PageRun>, Error> {
        let file_length = pages.file_length();
        if self.address.checked_add(self.nbytes()).is_none_or(|end| end > file_length) {
            let (offset, length) = (self.address, self.nbytes());
            return Err(Error::Truncated { what: "the pages of a chunk index", offset, length, file_length });
        }
        let mut runs: Vec<PageRun> = Vec::new();
        for page in 0..self.page_count() {
            if !is_set(bitmap, first_bit.saturating_add(page)) {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.stop == page && page - run.start < RUN_PAGES => run.stop = page + 1,
                _ => runs.push(PageRun { block: *self, start: page, stop: page + 1 }),
            }
        }
        for run in &runs {
            pages.want(run.range());
        }
        Ok(runs)
    }
}

impl PageRun {
    fn range(&self) -> ByteRange {
        let page_nbytes = self.block.page_nbytes();
        let offset = self.block.address.saturating_add(self.start.saturating_mul(page_nbytes));
        let stop = self.stop.saturating_mul(page_nbytes).min(self.block.nbytes());
        let end = self.block.address.saturating_add(stop);
        ByteRange { offset, length: end.saturating_sub(offset) }
    }

    /// The chunks of every page.
    pub fn step(
        &self,
        index: &ChunkIndex,
        order: &Order<'_>,
        pages: &Pages<'_>,
        found: &mut Vec<StoredChunk>,
    ) -> Result<(), Error> {
        let ByteRange { mut offset, length } = self.range();
        let bytes = pages.bytes(PAGE, offset, length)?;
        index.visited.enter(PAGE, offset, length, pages.file_length())?;
        let page_nbytes = usize::try_from(self.block.page_nbytes()).unwrap_or(usize::MAX);
        let mut number = self.block.first.saturating_add(self.start.saturating_mul(self.block.page_elements));
        for page in bytes.chunks(page_nbytes) {
            let cursor = Cursor::new(PAGE, offset, checked(PAGE, offset, page)?);
            index.push_elements((order, number), &self.block.format, cursor, found)?;
            number = number.saturating_add(self.block.page_elements);
            offset = offset.saturating_add(page.len() as u64);
        }
        Ok(())
    }
}

/// A bit of a bitmap. Bit 0 is the most significant bit of the first byte.
fn is_set(bitmap: &[u8], bit: u64) -> bool {
    let byte = usize::try_from(bit / 8).ok().and_then(|position| bitmap.get(position));
    byte.is_some_and(|byte| byte & (0x80 >> (bit % 8)) != 0)
}

#[cfg(test)]
mod tests {
    use super::is_set;

    #[test]
    fn bits_count_from_the_most_significant() {
        let bitmap = [0b1000_0001, 0b0100_0000];
        let set: Vec<u64> = (0..20).filter(|&bit| is_set(&bitmap, bit)).collect();
        assert_eq!(set, [0, 7, 9]);
    }
}
