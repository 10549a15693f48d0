//! The page cache and the device behind it.

use hyperslab_core::ByteRange;

use crate::lru::{Lru, UNBOUNDED};
use crate::variables::Variables;

/// Bytes of a page.
const PAGE_NBYTES: u64 = 4096;

/// The parameters of the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCacheSize {
    /// Bytes that it may hold; 0: every read is the device's.
    pub nbytes: u64,
    /// Bytes that a read may skip forward and still be in sequence, since the system reads ahead.
    pub read_ahead_nbytes: u64,
}

/// What is cached together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Chunks, which are always read whole.
    Chunk,
    /// Pages, where parts of chunks are read.
    Page,
}

#[derive(Clone, Debug)]
pub(crate) struct Device {
    cache: Lru,
    unit: Unit,
    read_ahead_nbytes: u64,
    read_end: Option<u64>,
    write_end: Option<u64>,
}

impl Device {
    /// Keys of chunks are below `chunk_count`; all that can be read is at most `most_nbytes`.
    pub fn new(size: PageCacheSize, unit: Unit, chunk_count: u64, most_nbytes: u64) -> Self {
        let key_stop = (unit == Unit::Chunk).then_some(chunk_count);
        let capacity = if most_nbytes <= size.nbytes { UNBOUNDED } else { size.nbytes };
        Self {
            cache: Lru::new(capacity, key_stop),
            unit,
            read_ahead_nbytes: size.read_ahead_nbytes,
            read_end: None,
            write_end: None,
        }
    }

    /// Bytes of a chunk, at their place in the file that has all of them.
    pub fn read(&mut self, chunk: u64, range: ByteRange, variables: &mut Variables) {
        let missed = self.missed(chunk, range);
        if missed == 0 {
            variables.n_cache += 1;
            variables.s_cache += range.length;
            return;
        }
        variables.n_rdisk += 1;
        variables.s_rdisk += missed;
        let skipped = self.read_end.and_then(|end| range.offset.checked_sub(end));
        variables.n_rseek += u64::from(skipped.is_none_or(|skipped| skipped > self.read_ahead_nbytes));
        self.read_end = Some(range.end());
    }

    /// The same for a chunk in a file of its own: there is no order of files.
    pub fn read_file(&mut self, chunk: u64, nbytes: u64, variables: &mut Variables) {
        if self.cache.uses(chunk, nbytes) {
            variables.n_cache += 1;
            variables.s_cache += nbytes;
        } else {
            variables.n_rdisk += 1;
            variables.s_rdisk += nbytes;
        }
    }

    /// Bytes of a chunk; they are cached from now on.
    pub fn write(&mut self, chunk: u64, range: ByteRange, variables: &mut Variables) {
        self.missed(chunk, range);
        variables.n_wdisk += 1;
        variables.s_wdisk += range.length;
        variables.n_wseek += u64::from(self.write_end != Some(range.offset));
        self.write_end = Some(range.end());
    }

    /// The same for a chunk in a file of its own.
    pub fn write_file(&mut self, chunk: u64, nbytes: u64, variables: &mut Variables) {
        self.cache.uses(chunk, nbytes);
        variables.n_wdisk += 1;
        variables.s_wdisk += nbytes;
        variables.n_create += 1;
    }

    /// Bytes that are not cached; they are from now on.
    fn missed(&mut self, chunk: u64, range: ByteRange) -> u64 {
        match self.unit {
            Unit::Chunk if self.cache.uses(chunk, range.length) => 0,
            Unit::Chunk => range.length,
            Unit::Page => {
                let pages = range.offset / PAGE_NBYTES..range.end().div_ceil(PAGE_NBYTES);
                pages.map(|page| if self.cache.uses(page, PAGE_NBYTES) { 0 } else { PAGE_NBYTES }).sum()
            }
        }
    }
}
