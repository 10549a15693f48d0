//! The index of an array's chunks, read when the chunks are needed and not with the file's tree.

use hyperslab_core::StoredChunk;

use super::chunk_index::ChunkIndex;
use super::layout::ChunkedLayout;
use super::sizes::Sizes;
use crate::error::Error;
use crate::pages::Pages;

/// What leads to the chunks of an array, in a file whose tree has been parsed before.
#[derive(Clone, Debug)]
pub struct LazyIndex {
    pub(super) layout: ChunkedLayout,
    pub(super) shape: Vec<u64>,
    pub(super) max_shape: Vec<Option<u64>>,
    pub(super) sizes: Sizes,
}

impl LazyIndex {
    /// All stored chunks, in no particular order, from the file as it is now.
    pub fn chunks(&self, pages: &mut Pages<'_>) -> Result<Vec<StoredChunk>, Error> {
        self.found(pages, None)
    }

    /// The stored chunks with these linear indices, and perhaps others that came with them. If the index is damaged,
    /// some chunks may be missed that it holds elsewhere.
    pub fn some_chunks(&self, pages: &mut Pages<'_>, indices: &[u64]) -> Result<Vec<StoredChunk>, Error> {
        self.found(pages, Some(indices))
    }

    fn found(&self, pages: &mut Pages<'_>, indices: Option<&[u64]>) -> Result<Vec<StoredChunk>, Error> {
        let mut index = ChunkIndex::new(&self.layout, &self.shape, &self.max_shape, self.sizes)?;
        if let Some(indices) = indices {
            index.look_for(indices);
        }
        index.want(pages);
        let (mut tasks, mut found) = (index.start(), Vec::new());
        while !tasks.is_empty() {
            let (mut waiting, mut missed) = (Vec::new(), None);
            for task in tasks {
                match index.step(&task, pages, &mut found) {
                    Ok(more) => waiting.extend(more),
                    Err(error) if error.is_not_held() => {
                        waiting.push(task);
                        missed = Some(error);
                    }
                    Err(error) => return Err(error),
                }
            }
            if let Some(missed) = missed
                && !pages.fetch()?
            {
                return Err(missed);
            }
            tasks = waiting;
        }
        Ok(found)
    }
}
