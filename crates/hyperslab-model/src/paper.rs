//! The paper's algorithm 1 as printed, for replication, and its write path (figure 1b) in the same manner.
//!
//! The library cache and the software cache are sets of chunks that evict the least recently used one; the paper does
//! not say which one. An index block is only looked for after a seek. A seek is a step to any chunk except the next one
//! in row-major order, wherever the chunks are stored.

use std::collections::HashSet;

use hyperslab_core::{Selection, Touch};

use crate::device::PageCacheSize;
use crate::error::ModelError;
use crate::lru::Lru;
use crate::operation::Operation;
use crate::stored::{Chunks, Stored};
use crate::variables::Variables;

/// The library whose variables the paper's algorithm computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaperLibrary {
    /// Chunks in one file, with a library cache.
    Hdf5 {
        /// The size of the library cache in bytes. It evicts the least recently used chunk.
        library_cache_nbytes: u64,
        /// How many chunks an index block indexes.
        index_block_chunk_count: u64,
    },
    /// A file for each chunk.
    Zarr,
}

#[derive(Clone, Debug)]
pub(crate) struct OpenPaper {
    stored: Stored,
    library: PaperLibrary,
    in_library: Lru,
    in_software: Lru,
    read_blocks: HashSet<u64>,
    written_blocks: HashSet<u64>,
    written: HashSet<u64>,
}

/// The previous chunk, for each access and kind of request: the algorithm starts again with each access.
#[derive(Default)]
struct Last {
    read: Option<u64>,
    written: Option<u64>,
}

impl OpenPaper {
    pub fn new(stored: Stored, library: PaperLibrary, pages: PageCacheSize) -> Result<Self, ModelError> {
        let (library_nbytes, block) = match library {
            PaperLibrary::Hdf5 { library_cache_nbytes, index_block_chunk_count } => {
                (library_cache_nbytes, index_block_chunk_count)
            }
            PaperLibrary::Zarr => (0, 1),
        };
        if block == 0 {
            return Err(ModelError::parameter(
                "index_block_chunk_count",
                0,
                "give chunks per index block, from 1 up",
            ));
        }
        let count = stored.grid.chunk_count();
        Ok(Self {
            stored,
            library,
            in_library: Lru::new(library_nbytes, Some(count)),
            in_software: Lru::new(pages.nbytes, Some(count)),
            read_blocks: HashSet::new(),
            written_blocks: HashSet::new(),
            written: HashSet::new(),
        })
    }

    pub fn access(&mut self, operation: Operation, selection: &Selection) -> Result<Variables, ModelError> {
        let mut variables = Variables::default();
        let mut last = Last::default();
        let grid = self.stored.grid.clone();
        let copies_nothing = |touch: &Touch<'_>| {
            self.library == PaperLibrary::Zarr
                && touch.run_count == 1
                && touch.element_count == touch.valid_element_count
        };
        let mut copied = Variables::default();
        grid.each_touch(selection, |touch| {
            if !copies_nothing(touch) {
                copied.n_memcpy += touch.run_count;
                copied.s_memcpy += touch.element_count * self.stored.element_nbytes;
            }
            Ok::<(), ModelError>(())
        })?;
        grid.each_touch(selection, |touch| {
            self.visit(operation, touch, &mut last, &mut variables);
            Ok::<(), ModelError>(())
        })?;
        variables += copied;
        self.count_parallel(operation, &mut variables, copied);
        Ok(variables)
    }

    /// Opens the file again. The software cache keeps its chunks.
    pub fn reopen(&mut self) {
        self.in_library.clear();
        self.read_blocks.clear();
    }

    fn visit(&mut self, operation: Operation, touch: &Touch<'_>, last: &mut Last, variables: &mut Variables) {
        let id = touch.linear;
        variables.n_chunk += 1;
        let exists = self.stored.chunks != Chunks::Missing || self.written.contains(&id);
        let is_covered = touch.element_count == touch.valid_element_count;
        if operation == Operation::Read || (exists && !is_covered) {
            self.read(id, last, variables);
        }
        if operation == Operation::Write {
            self.write(id, last, variables);
        }
    }

    fn read(&mut self, id: u64, last: &mut Last, variables: &mut Variables) {
        let nbytes = self.stored.stored_nbytes();
        if !self.in_library.has(id) {
            if self.in_software.uses(id, nbytes) {
                variables.n_cache += 1;
                variables.s_cache += nbytes;
            } else {
                variables.n_rdisk += 1;
                variables.s_rdisk += nbytes;
                if let Some(block) = self.block_of(id).filter(|_| !follows(id, last.read)) {
                    variables.n_rseek += 1;
                    variables.n_rindex += u64::from(self.read_blocks.insert(block));
                }
            }
        }
        self.in_library.uses(id, self.stored.chunk_nbytes());
        last.read = Some(id);
    }

    fn write(&mut self, id: u64, last: &mut Last, variables: &mut Variables) {
        variables.n_wdisk += 1;
        variables.s_wdisk += self.stored.stored_nbytes();
        if let Some(block) = self.block_of(id).filter(|_| !follows(id, last.written)) {
            variables.n_wseek += 1;
            variables.n_windex += u64::from(self.written_blocks.insert(block));
        }
        self.in_software.uses(id, self.stored.stored_nbytes());
        self.in_library.uses(id, self.stored.chunk_nbytes());
        self.written.insert(id);
        last.written = Some(id);
    }

    fn block_of(&self, id: u64) -> Option<u64> {
        match self.library {
            PaperLibrary::Hdf5 { index_block_chunk_count, .. } => Some(id / index_block_chunk_count),
            PaperLibrary::Zarr => None,
        }
    }

    fn count_parallel(&self, operation: Operation, variables: &mut Variables, copied: Variables) {
        let (n_read, s_read, n_written, s_written) = match (self.library, operation) {
            (PaperLibrary::Zarr, _) => {
                (variables.n_rdisk, variables.s_rdisk, variables.n_wdisk, variables.s_wdisk)
            }
            (PaperLibrary::Hdf5 { .. }, Operation::Read) => (copied.n_memcpy, copied.s_memcpy, 0, 0),
            (PaperLibrary::Hdf5 { .. }, Operation::Write) => (0, 0, copied.n_memcpy, copied.s_memcpy),
        };
        (variables.n_rrequest, variables.s_rrequest) = (n_read, s_read);
        (variables.n_wrequest, variables.s_wrequest) = (n_written, s_written);
    }
}

/// Whether a chunk directly follows the one before. The first chunk of an access does if it is the array's first.
fn follows(id: u64, last: Option<u64>) -> bool {
    last.map_or(id == 0, |last| id == last + 1)
}
