//! Where the chunks of an array are, or will be, in one file.

use crate::index::btree::{Btree, row_major_node_count, same_node_count};
use crate::index::kind::IndexKind;
use crate::stored::{Chunks, Stored};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use hyperslab_core::{ByteRange, ChunkState, Manifest};

/// Bytes of an HDF5 file before its chunks and their index.
const ARRAY_NBYTES: u64 = 1400;

/// Where chunks are, or will be, in one file.
#[derive(Clone, Debug)]
pub(crate) struct ChunkLocations {
    base: Base,
    /// How many chunks were there in row-major order.
    count: u64,
    /// Chunks that were added later, or moved.
    new: HashMap<u64, ByteRange>,
    stored_nbytes: u64,
    node_nbytes: u64,
    end: u64,
    /// How many nodes were created before the chunks of a range; for the last range asked for.
    nodes_before: (Range<u64>, u64),
}

#[derive(Clone, Debug)]
enum Base {
    Missing,
    RowMajor,
    Listed(Arc<Manifest>),
}

impl ChunkLocations {
    /// For an array. If it has a B-tree, its nodes lie between the chunks.
    pub fn new(stored: &Stored, kind: IndexKind) -> Self {
        let node_nbytes =
            if kind == IndexKind::BtreeV1 { Btree::node_nbytes(stored.grid.shape().len()) } else { 0 };
        let count = stored.grid.chunk_count();
        let (base, end) = match &stored.chunks {
            Chunks::Missing => (Base::Missing, 0),
            Chunks::RowMajor => {
                (Base::RowMajor, row_major_nbytes(count, stored.stored_nbytes(), node_nbytes))
            }
            Chunks::Listed(manifest) => {
                let ends = manifest.stored().map(|chunk| chunk.range.end());
                (Base::Listed(Arc::clone(manifest)), ends.max().unwrap_or(0))
            }
        };
        Self {
            base,
            count,
            new: HashMap::new(),
            stored_nbytes: stored.stored_nbytes(),
            node_nbytes,
            end,
            nodes_before: (0..0, 0),
        }
    }

    /// The location of a chunk, if it was written.
    pub fn of(&mut self, chunk: u64) -> Option<ByteRange> {
        match &self.base {
            Base::RowMajor
                if chunk >= self.count || !self.new.is_empty() && self.new.contains_key(&chunk) =>
            {
                self.new.get(&chunk).copied()
            }
            Base::RowMajor => {
                // Nodes are created between chunks. The first node exists before any chunk.
                if self.node_nbytes > 0 && !self.nodes_before.0.contains(&chunk) {
                    let nodes = row_major_node_count(chunk).saturating_sub(1);
                    self.nodes_before = (same_node_count(chunk), nodes);
                }
                let offset = chunk * self.stored_nbytes + self.nodes_before.1 * self.node_nbytes;
                Some(ByteRange { offset, length: self.stored_nbytes })
            }
            Base::Missing => self.new.get(&chunk).copied(),
            Base::Listed(manifest) => match (self.new.get(&chunk), manifest.state(chunk)) {
                (Some(&range), _) | (None, ChunkState::Stored { range, .. }) => Some(range),
                _ => None,
            },
        }
    }

    /// Bytes before the first chunk: the first node of a B-tree, and the metadata of the array. Locations in
    /// a real file count from its start.
    pub fn base_nbytes(&self) -> u64 {
        if matches!(self.base, Base::Listed(_)) { 0 } else { ARRAY_NBYTES + self.node_nbytes }
    }

    /// Where the file ends, counting from there.
    pub fn nbytes(&self, chunk_count: u64) -> u64 {
        match &self.base {
            Base::RowMajor => row_major_nbytes(chunk_count, self.stored_nbytes, self.node_nbytes),
            Base::Missing | Base::Listed(_) => self.end,
        }
    }

    /// Whether any chunk was written.
    pub fn has_any(&self) -> bool {
        let before = match &self.base {
            Base::Missing => false,
            Base::RowMajor => true,
            Base::Listed(manifest) => manifest.chunk_count() > 0,
        };
        before || !self.new.is_empty()
    }

    /// Allocates room for a chunk at the end, whether it had a location before or not.
    pub fn allocate(&mut self, chunk: u64) -> ByteRange {
        let range = ByteRange { offset: self.end, length: self.stored_nbytes };
        self.end += self.stored_nbytes;
        self.new.insert(chunk, range);
        range
    }

    /// Allocates room for something else.
    pub fn skip(&mut self, nbytes: u64) {
        self.end += nbytes;
    }
}

/// Bytes of chunks that were written in row-major order, with the nodes between them, if they have nodes.
fn row_major_nbytes(chunk_count: u64, stored_nbytes: u64, node_nbytes: u64) -> u64 {
    let nodes = if node_nbytes > 0 { row_major_node_count(chunk_count) } else { 0 };
    chunk_count * stored_nbytes + nodes.saturating_sub(1) * node_nbytes
}
