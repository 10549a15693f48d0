//! Hand-made index structures, and a walk that checks the contract of `step`.

use hyperslab_core::StoredChunk;

use super::*;
use crate::hdf5::layout::ChunkedLayout;
use crate::hdf5::lookup3::lookup3;
use crate::hdf5::sizes::Sizes;
use crate::pages::{Memory, Policy};

/// Addresses and lengths of eight bytes, without a user block.
pub(super) const SIZES: Sizes = Sizes { offset: 8, length: 8, base: 0 };
/// An undefined address.
pub(super) const UNDEFINED: u64 = u64::MAX;

/// A file under construction. Chunks are one byte long, so any offset in it will do.
pub(super) struct Image(pub Vec<u8>);

impl Image {
    /// A file of zeros.
    pub fn new(length: usize) -> Self {
        Self(vec![0; length])
    }

    /// Writes bytes at an offset.
    pub fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes bytes and their checksum at an offset.
    pub fn put_checked(&mut self, offset: usize, bytes: &[u8]) {
        self.put(offset, bytes);
        self.put(offset + bytes.len(), &lookup3(bytes).to_le_bytes());
    }
}

/// Bytes joined together.
pub(super) fn bytes(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// Addresses joined together.
pub(super) fn words(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    numbers.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// A layout of chunks of this shape, with one byte for each element.
pub(super) fn layout(kind: IndexKind, chunk_shape: &[u64], filtered: bool) -> ChunkedLayout {
    ChunkedLayout {
        version: 4,
        chunk_shape: chunk_shape.to_vec(),
        element_nbytes: 1,
        filtered,
        plain_edge_chunks: false,
        kind,
    }
}

/// All chunks, sorted, and how many rounds it took. Pages are small, so many steps are repeated.
pub(super) fn walk(
    file: &[u8],
    layout: &ChunkedLayout,
    shape: &[u64],
    max_shape: &[Option<u64>],
) -> Result<(Vec<StoredChunk>, u64), Error> {
    let index = ChunkIndex::new(layout, shape, max_shape, SIZES)?;
    let source = Memory(file);
    let mut pages =
        Pages::new(&source, Policy { page_nbytes: 16, first_nbytes: 16, last_nbytes: 0, gap_pages: 0 });
    pages.fetch()?;
    index.want(&pages);
    let (mut tasks, mut found) = (index.start(), Vec::new());
    while !tasks.is_empty() {
        let mut waiting = Vec::new();
        while let Some(task) = tasks.pop() {
            let before = found.len();
            match index.step(&task, &pages, &mut found) {
                Ok(more) => tasks.extend(more),
                Err(Error::NotHeld { .. }) => waiting.push(task),
                Err(error) => return Err(error),
            }
            assert!(waiting.is_empty() || found.len() >= before);
        }
        if !waiting.is_empty() {
            assert!(pages.fetch()?, "a step misses bytes that it did not ask for");
        }
        tasks = waiting;
    }
    found.sort_by_key(|chunk| chunk.index);
    Ok((found, pages.statistics().round_count))
}

/// Index, offset, length and mask of each chunk.
pub(super) fn rows(found: &[StoredChunk]) -> Vec<(u64, u64, u64, u32)> {
    found
        .iter()
        .map(|chunk| (chunk.index, chunk.range.offset, chunk.range.length, chunk.filter_mask))
        .collect()
}
