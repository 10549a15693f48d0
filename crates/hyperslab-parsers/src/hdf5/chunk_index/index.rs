//! The index of one array: what every step that reads a part of it knows, and the chunks it adds.

use hyperslab_core::{ByteRange, StoredChunk};

use super::element::ElementFormat;
use super::numbering::{Numbering, Order};
use crate::cursor::Cursor;
use crate::error::Error;
use crate::hdf5::layout::{ChunkedLayout, IndexKind};
use crate::hdf5::sizes::Sizes;
use crate::hdf5::visited::Visited;

/// What leads to the chunks of one array.
#[derive(Debug)]
pub(crate) struct ChunkIndex {
    pub(super) kind: IndexKind,
    pub(super) sizes: Sizes,
    pub(super) numbering: Numbering,
    pub(super) element_nbytes: u64,
    /// The length of an unfiltered chunk.
    pub(super) chunk_nbytes: u64,
    /// Where the chunks we look for start, as keys of B-trees of version 1 say it; `None` for all chunks.
    pub(super) sought: Option<Vec<Vec<u8>>>,
    pub(super) visited: Visited,
}

impl ChunkIndex {
    /// The index for an array of this layout, shape and maximum shape.
    pub fn new(
        layout: &ChunkedLayout,
        shape: &[u64],
        max_shape: &[Option<u64>],
        sizes: Sizes,
    ) -> Result<Self, Error> {
        let numbering = Numbering::new(&layout.chunk_shape, shape, max_shape)?;
        let mut lengths = layout.chunk_shape.iter();
        let chunk_nbytes =
            lengths.try_fold(layout.element_nbytes, |nbytes, &length| nbytes.checked_mul(length));
        let chunk_nbytes = chunk_nbytes.filter(|&nbytes| nbytes > 0).ok_or_else(|| {
            Error::invalid("a chunked layout", 0, "chunks of 0 bytes, or of more than 2^64")
        })?;
        let (kind, visited, element_nbytes) =
            (layout.kind.clone(), Visited::default(), layout.element_nbytes);
        Ok(Self { kind, sizes, numbering, element_nbytes, chunk_nbytes, sought: None, visited })
    }

    /// Looks only for the chunks with these linear indices. Some indexes are still read as a whole.
    pub fn look_for(&mut self, indices: &[u64]) {
        let position = |&index: &u64| {
            let axes = self.numbering.start(index).into_iter();
            axes.chain([0]).flat_map(u64::to_le_bytes).collect() // it starts with a whole element
        };
        self.sought = Some(indices.iter().map(position).collect());
    }

    /// Adds the chunks of consecutive elements, starting at a number, until the cursor ends.
    pub(super) fn push_elements(
        &self,
        (order, first): (&Order<'_>, u64),
        format: &ElementFormat,
        mut cursor: Cursor<'_>,
        found: &mut Vec<StoredChunk>,
    ) -> Result<(), Error> {
        let count = cursor.remaining().checked_div(format.nbytes).unwrap_or_default();
        let left = self.numbering.chunk_count().saturating_sub(found.len() as u64);
        found.reserve(count.min(usize::try_from(left).unwrap_or(usize::MAX)));
        let mut counter = order.from(first);
        for _ in 0..count {
            let stored = format.read(&mut cursor)?;
            if let (Some(index), Some(stored)) = (counter.next(), stored) {
                push(index, stored, found);
            }
        }
        Ok(())
    }
}

/// Whether a chunk's position, in eight bytes for each axis, comes before another's. All libraries sort chunks in this
/// order, including positions beyond the shape.
pub(super) fn is_before(position: &[u8], other: &[u8]) -> bool {
    position.chunks_exact(8).map(word).lt(other.chunks_exact(8).map(word))
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(u64::MAX, |&eight: &[u8; 8]| u64::from_le_bytes(eight))
}

/// Adds a chunk. Only that chunk counts as damaged if it lies past the end of the file: reading it will report this.
pub(super) fn push(index: u64, (range, filter_mask): (ByteRange, u32), found: &mut Vec<StoredChunk>) {
    found.push(StoredChunk { index, file: 0, range, filter_mask });
}
