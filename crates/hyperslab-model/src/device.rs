//! The page cache and the device behind it.

use hyperslab_core::ByteRange;

use crate::lru::{Lru, UNBOUNDED};
use crate::read_ahead::{OpenFile, PAGE_NBYTES};
use crate::variables::Variables;

/// If read-ahead is not simulated page by page, a read that skips at most this many bytes counts as sequential:
/// read-ahead has them.
const MOST_SKIPPED_NBYTES: u64 = 16384;

/// The parameters of the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCacheSize {
    /// Its size in bytes. With 0, every read goes to the device.
    pub nbytes: u64,
    /// How many bytes the system reads ahead at most, in a single file that holds everything; 0 for none.
    pub read_ahead_nbytes: u64,
}

/// The unit of caching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Chunks, which are always read whole.
    Chunk,
    /// Pages, if parts of chunks are read.
    Page,
}

/// A file whose pages are simulated, and the offset in it that locations count from.
#[derive(Clone, Debug)]
struct OneFile {
    open: OpenFile,
    base: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Device {
    cache: Lru,
    unit: Unit,
    size: PageCacheSize,
    file: Option<OneFile>,
    read_end: Option<u64>,
    write_end: Option<u64>,
}

impl Device {
    /// Keys of chunks are below `chunk_count`. Reads cover at most `most_nbytes` in total.
    pub fn new(size: PageCacheSize, unit: Unit, chunk_count: u64, most_nbytes: u64) -> Self {
        let key_stop = (unit == Unit::Chunk).then_some(chunk_count);
        let capacity = if most_nbytes <= size.nbytes { UNBOUNDED } else { size.nbytes };
        Self { cache: Lru::new(capacity, key_stop), unit, size, file: None, read_end: None, write_end: None }
    }

    /// Everything is in one file, in `nbytes` starting at `base`, and read-ahead is simulated. Opening the file has
    /// read what is before `base`.
    pub fn with_read_ahead(mut self, base: u64, nbytes: u64) -> Self {
        let PageCacheSize { nbytes: cache_nbytes, read_ahead_nbytes } = self.size;
        if read_ahead_nbytes > 0 {
            let mut open = OpenFile::new(base + nbytes, cache_nbytes, read_ahead_nbytes);
            open.read(ByteRange { offset: 0, length: base.min(PAGE_NBYTES) / 2 }, &mut Variables::default());
            self.file = Some(OneFile { open, base });
        }
        self
    }

    /// Whether there is a page cache.
    pub fn keeps_pages(&self) -> bool {
        self.size.nbytes > 0
    }

    /// There are more chunks now.
    pub fn grow(&mut self, chunk_count: u64) {
        self.cache.grow(chunk_count);
    }

    /// Bytes of a chunk, at their offset in the single file.
    pub fn read(&mut self, chunk: u64, range: ByteRange, variables: &mut Variables) {
        let missed = self.missed(chunk, range);
        if let Some(OneFile { open, base }) = &mut self.file {
            let is_asked = open.read(ByteRange { offset: *base + range.offset, ..range }, variables);
            variables.n_rdisk += u64::from(is_asked);
            variables.n_cache += u64::from(!is_asked);
            // What is read for the first time was read ahead, so its bytes come from the device.
            variables.s_cache += range.length.saturating_sub(missed);
            return;
        }
        if missed == 0 {
            variables.n_cache += 1;
            variables.s_cache += range.length;
            return;
        }
        variables.n_rdisk += 1;
        variables.s_rdisk += missed;
        let skipped = self.read_end.and_then(|end| range.offset.checked_sub(end));
        let in_sequence = self.size.read_ahead_nbytes.min(MOST_SKIPPED_NBYTES);
        if skipped.is_none_or(|skipped| skipped > in_sequence) {
            variables.n_rseek += 1;
            variables.s_rseek += missed;
        } else {
            variables.s_rneed += missed;
        }
        self.read_end = Some(range.end());
    }

    /// A block of an index, at its offset from the base. Blocks before the first chunk have no offset.
    pub fn read_index(&mut self, offset: Option<u64>, nbytes: u64, variables: &mut Variables) {
        if let Some(OneFile { open, base }) = &mut self.file {
            let offset = offset.map_or(base.saturating_sub(nbytes), |offset| *base + offset);
            open.read(ByteRange { offset, length: nbytes }, variables);
        }
    }

    /// The same for a chunk in a file of its own. Files have no order.
    pub fn read_file(&mut self, chunk: u64, nbytes: u64, variables: &mut Variables) {
        if self.cache.uses(chunk, nbytes) {
            variables.n_cache += 1;
            variables.s_cache += nbytes;
        } else {
            variables.n_rdisk += 1;
            variables.s_rdisk += nbytes;
            variables.s_rneed += nbytes;
        }
    }

    /// One request for neighbouring chunks in a file, each with its number and bytes.
    pub fn read_parts(&mut self, parts: impl Iterator<Item = (u64, u64)>, variables: &mut Variables) {
        let (mut cached, mut missed) = (0, 0);
        for (chunk, nbytes) in parts {
            *(if self.cache.uses(chunk, nbytes) { &mut cached } else { &mut missed }) += nbytes;
        }
        variables.n_cache += u64::from(missed == 0);
        variables.n_rdisk += u64::from(missed > 0);
        variables.s_cache += cached;
        variables.s_rdisk += missed;
        variables.s_rneed += missed;
    }

    /// Bytes of a chunk. They are cached from now on.
    pub fn write(&mut self, chunk: u64, range: ByteRange, variables: &mut Variables) {
        self.missed(chunk, range);
        if let Some(OneFile { open, base }) = &mut self.file {
            open.write(ByteRange { offset: *base + range.offset, ..range }, variables);
        }
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

    /// The file is opened again. What the system has cached stays.
    pub fn reopen(&mut self) {
        (self.read_end, self.write_end) = (None, None);
        if let Some(file) = &mut self.file {
            file.open.reopen();
        }
    }

    /// The bytes that are not cached. They are from now on.
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
