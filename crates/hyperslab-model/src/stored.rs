//! The array that is accessed, as far as costs depend on it: a layout, which chunks exist, and where they are.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use hyperslab_core::{ByteRange, ChunkGrid, ChunkState, Manifest};

use crate::btree::{Btree, row_major_node_count, same_node_count};
use crate::device::Unit;
use crate::error::ModelError;
use crate::hdf5::Hdf5;
use crate::index::{Index, IndexKind};

/// Bytes of a file of HDF5 before its chunks and their index.
const ARRAY_NBYTES: u64 = 1400;

/// Which chunks exist before the first access.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunks {
    /// None: they are made by the accesses.
    Missing,
    /// All, written one after the other in row-major order: the simulated writer.
    RowMajor,
    /// Those of a real file.
    Listed(Arc<Manifest>),
}

/// An array in a layout.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its shape, and that of its chunks.
    pub grid: ChunkGrid,
    /// Width of an element.
    pub element_nbytes: u64,
    /// Decoded bytes per stored byte; `None` without codecs, when any part of a chunk can be read.
    pub ratio: Option<f64>,
    /// Which chunks exist.
    pub chunks: Chunks,
}

impl Stored {
    /// An array whose numbers make sense.
    pub fn new(
        grid: ChunkGrid,
        element_nbytes: u64,
        ratio: Option<f64>,
        chunks: Chunks,
    ) -> Result<Self, ModelError> {
        if element_nbytes == 0 {
            return Err(ModelError::parameter("element_nbytes", 0, "give the width of an element in bytes"));
        }
        if let Some(ratio) = ratio.filter(|ratio| !(ratio.is_finite() && *ratio > 0.0)) {
            return Err(ModelError::parameter("ratio", ratio, "give decoded bytes per stored byte, above 0"));
        }
        let whole = u128::from(grid.chunk_count())
            * u128::from(grid.chunk_element_count())
            * u128::from(element_nbytes);
        if whole > u128::from(u64::MAX >> 2) {
            return Err(hyperslab_core::Error::TooLarge { what: "the array in bytes" }.into());
        }
        Ok(Self { grid, element_nbytes, ratio, chunks })
    }

    /// Decoded bytes of a chunk; edge chunks are whole.
    pub fn chunk_nbytes(&self) -> u64 {
        self.grid.chunk_element_count() * self.element_nbytes
    }

    /// Stored bytes of a chunk that is not in a real file.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn stored_nbytes(&self) -> u64 {
        let nbytes = self.chunk_nbytes();
        self.ratio.map_or(nbytes, |ratio| ((nbytes as f64 / ratio).ceil() as u64).max(1))
    }

    /// Bytes of all chunks, if their sizes are known before; else more than any.
    pub(crate) fn most_nbytes(&self, unit: Unit) -> u64 {
        let is_known = unit == Unit::Chunk && !matches!(self.chunks, Chunks::Listed(_));
        if is_known { self.grid.chunk_count().saturating_mul(self.stored_nbytes()) } else { u64::MAX }
    }

    /// Whether chunks pass through codecs.
    pub fn is_encoded(&self) -> bool {
        self.ratio.is_some()
    }
}

/// Where chunks lie in one file, or will.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    base: Base,
    /// Chunks that came later.
    new: HashMap<u64, ByteRange>,
    stored_nbytes: u64,
    node_nbytes: u64,
    end: u64,
    /// How many nodes were made before chunks of an interval: the one asked for last.
    nodes_before: (Range<u64>, u64),
}

#[derive(Clone, Debug)]
enum Base {
    Missing,
    RowMajor,
    Listed(Arc<Manifest>),
}

impl Places {
    /// Of an array, and of the nodes of a B-tree between its chunks, if it has one.
    pub fn new(stored: &Stored, kind: IndexKind) -> Self {
        let (base, end) = match &stored.chunks {
            Chunks::Missing => (Base::Missing, 0),
            Chunks::RowMajor => (Base::RowMajor, 0),
            Chunks::Listed(manifest) => {
                let ends = manifest.stored().map(|chunk| chunk.range.end());
                (Base::Listed(Arc::clone(manifest)), ends.max().unwrap_or(0))
            }
        };
        let node_nbytes =
            if kind == IndexKind::BtreeV1 { Btree::node_nbytes(stored.grid.shape().len()) } else { 0 };
        Self {
            base,
            new: HashMap::new(),
            stored_nbytes: stored.stored_nbytes(),
            node_nbytes,
            end,
            nodes_before: (0..0, 0),
        }
    }

    /// Where a chunk is, if it was written.
    pub fn of(&mut self, chunk: u64) -> Option<ByteRange> {
        match &self.base {
            Base::RowMajor => {
                // Nodes are made between chunks; the first one was there before them.
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

    /// What is before the places: of a file with a B-tree its first node, and what says that there is an array. Places of
    /// a real file are counted from its begin.
    pub fn base_nbytes(&self) -> u64 {
        if matches!(self.base, Base::Listed(_)) { 0 } else { ARRAY_NBYTES + self.node_nbytes }
    }

    /// Where the file ends, from there on.
    pub fn nbytes(&self, chunk_count: u64) -> u64 {
        match &self.base {
            Base::RowMajor => {
                let nodes = if self.node_nbytes > 0 { row_major_node_count(chunk_count) } else { 0 };
                chunk_count * self.stored_nbytes + nodes.saturating_sub(1) * self.node_nbytes
            }
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

    /// Room for a chunk at the end, whether it was somewhere before or not.
    pub fn allocate(&mut self, chunk: u64) -> ByteRange {
        let range = ByteRange { offset: self.end, length: self.stored_nbytes };
        self.end += self.stored_nbytes;
        self.new.insert(chunk, range);
        range
    }

    /// Room for something else.
    pub fn skip(&mut self, nbytes: u64) {
        self.end += nbytes;
    }
}

/// The index of an array's chunks as its file has it.
pub(crate) fn index_of(stored: &Stored, hdf5: &Hdf5) -> Result<Index, ModelError> {
    let mut index = Index::new(hdf5, stored);
    match &stored.chunks {
        Chunks::Missing => {}
        Chunks::RowMajor => index.fill(),
        Chunks::Listed(manifest) => {
            // Chunks were allocated in the order in which they came.
            let mut chunks: Vec<(u64, u64)> =
                manifest.stored().map(|chunk| (chunk.range.offset, chunk.index)).collect();
            chunks.sort_unstable();
            let in_order = chunks.iter().zip(0..).all(|(&(_, chunk), place)| chunk == place);
            if in_order && chunks.len() as u64 == stored.grid.chunk_count() {
                index.fill();
            } else if !chunks.is_empty() {
                index.create();
                for (_, chunk) in chunks {
                    index.insert(chunk, &stored.grid.chunk_index(chunk)?);
                }
            }
        }
    }
    index.forget();
    Ok(index)
}
