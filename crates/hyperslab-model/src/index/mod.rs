//! The blocks of HDF5's chunk indexes: which are read to find a chunk, and which are created or changed to insert one.

pub(crate) mod block;
pub(crate) mod btree;
mod btree2;
pub(crate) mod kind;
mod tables;

use std::collections::HashSet;
use std::ops::Range;

use hyperslab_core::ChunkGrid;

use crate::error::ModelError;
use crate::index::block::{Block, HEADER};
use crate::index::btree::Btree;
use crate::index::btree2::Btree2;
use crate::index::kind::{IndexFacts, IndexKind};
use crate::index::tables::Table;
use crate::stored::{Chunks, Stored};

/// The grid of the largest shape that an array may have. An axis without a limit counts as it is now.
fn most_grid(stored: &Stored, facts: IndexFacts<'_>) -> Result<Vec<u64>, ModelError> {
    let now = stored.grid.shape();
    let Some(most) = facts.max_shape else { return Ok(stored.grid.grid_shape()) };
    if most.len() != now.len() || most.iter().zip(now).any(|(most, now)| most < now) {
        let given = format!("{most:?}");
        return Err(ModelError::parameter(
            "max_shape",
            given,
            "give a length for each axis, and none below the shape",
        ));
    }
    let shape = most.iter().zip(now).map(|(&most, &now)| if most == u64::MAX { now } else { most });
    Ok(ChunkGrid::new(shape.collect(), stored.grid.chunk_shape().to_vec())?.grid_shape())
}

/// A block that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRead {
    /// Its location, if known: after which chunk, and after how many of the blocks there.
    pub behind: Option<(u64, u64)>,
    pub nbytes: u64,
    /// Whether the system has it in its page cache, since it was read before the file was opened again.
    pub is_cached: bool,
}

#[derive(Clone, Debug)]
enum Structure {
    None,
    Btree(Btree),
    Btree2(Btree2),
    Table(Table),
}

/// The index of one array, and which of its blocks are in memory.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    structure: Structure,
    grid_shape: Vec<u64>,
    has_header: bool,
    in_memory: HashSet<u64>,
    /// Blocks that were read or made since the first access, also before the file was opened again.
    known: HashSet<u64>,
    /// Chunks whose blocks are all in memory.
    read: Range<u64>,
    changed: HashSet<u64>,
}

impl Index {
    /// For an array without chunks yet.
    pub fn new(stored: &Stored, facts: IndexFacts<'_>) -> Result<Self, ModelError> {
        let (grid_shape, ndim) = (stored.grid.grid_shape(), stored.grid.shape().len());
        let (kind, wide_lengths) = (facts.kind, facts.wide_lengths);
        // The address; with filters also the length, in as many bytes as it may take, and the mask.
        let least = u64::from((1 + (stored.chunk_nbytes().max(1).ilog2() + 8) / 8).min(8));
        let length_nbytes = if wide_lengths { 8 } else { least };
        let element_nbytes = if stored.is_encoded() { 8 + length_nbytes + 4 } else { 8 };
        let most = most_grid(stored, facts)?;
        let table = |growing_axis| Table::new(growing_axis, &grid_shape, most.clone(), element_nbytes);
        let structure = match kind {
            IndexKind::None | IndexKind::Contiguous | IndexKind::Compact => Structure::None,
            IndexKind::BtreeV1 => Structure::Btree(Btree::new(ndim)),
            IndexKind::BtreeV2 => Structure::Btree2(Btree2::new(element_nbytes + 8 * ndim as u64)),
            IndexKind::FixedArray => Structure::Table(table(None)),
            IndexKind::ExtensibleArray { axis } => Structure::Table(table(Some(axis))),
        };
        Ok(Self {
            structure,
            grid_shape,
            has_header: false,
            in_memory: HashSet::new(),
            known: HashSet::new(),
            read: 0..0,
            changed: HashSet::new(),
        })
    }

    /// The index of an array's chunks in its file.
    pub fn of(stored: &Stored, facts: IndexFacts<'_>) -> Result<Self, ModelError> {
        let mut index = Self::new(stored, facts)?;
        match &stored.chunks {
            Chunks::Missing => {}
            Chunks::RowMajor => index.fill(),
            Chunks::Listed(manifest) => {
                // Chunks were allocated in the order in which they came.
                let mut chunks: Vec<(u64, u64)> =
                    manifest.stored().map(|chunk| (chunk.range.offset, chunk.index)).collect();
                chunks.sort_unstable();
                let in_order = chunks.iter().zip(0..).all(|(&(_, chunk), position)| chunk == position);
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
        index.known.clear();
        Ok(index)
    }

    /// The same index for an array that has grown along its first axis. Chunks `0..count` are in it, as they were
    /// before, unless it was built chunk by chunk, and so has its own list of them.
    pub fn grown(&mut self, stored: &Stored, facts: IndexFacts<'_>, count: u64) -> Result<(), ModelError> {
        let is_listed = match &self.structure {
            Structure::None | Structure::Btree2(_) => true,
            Structure::Btree(tree) => !tree.is_row_major(),
            Structure::Table(table) => !table.has_all(),
        };
        self.grid_shape = stored.grid.grid_shape();
        if is_listed {
            return Ok(());
        }
        let mut built = Self::new(stored, facts)?;
        built.create();
        for chunk in 0..count {
            built.insert(chunk, &stored.grid.chunk_index(chunk)?);
        }
        built.forget();
        // Nodes of the first B-tree have other numbers there.
        let moved = |blocks: &HashSet<u64>| match (&self.structure, &built.structure) {
            (Structure::Btree(_), Structure::Btree(new)) => {
                blocks.iter().filter_map(|&node| new.renumbered(node)).collect()
            }
            _ => blocks.clone(),
        };
        (built.in_memory, built.changed) = (moved(&self.in_memory), moved(&self.changed));
        built.known = moved(&self.known);
        *self = built;
        Ok(())
    }

    /// Now with all chunks, written in row-major order before the first access.
    pub fn fill(&mut self) {
        let chunk_count = self.grid_shape.iter().product();
        match &mut self.structure {
            Structure::None => {}
            Structure::Btree(tree) => tree.fill(chunk_count, &self.grid_shape),
            Structure::Btree2(tree) => tree.fill(chunk_count),
            Structure::Table(table) => table.fill(),
        }
        self.has_header = true;
    }

    /// Whether the file already has the index; `None` if it never has one.
    pub fn exists(&self) -> Option<bool> {
        (!matches!(self.structure, Structure::None)).then_some(self.has_header)
    }

    /// Forgets what is in memory, as if the file were opened again.
    pub fn forget(&mut self) {
        self.in_memory.clear();
        self.read = 0..0;
        self.changed.clear();
    }

    /// The blocks that are read to find a chunk.
    pub fn lookup(&mut self, chunk: u64, chunk_index: &[u64]) -> Vec<BlockRead> {
        if self.read.contains(&chunk) {
            return Vec::new();
        }
        let (path, same) = match &self.structure {
            Structure::None => return Vec::new(),
            Structure::Btree(tree) => (tree.path(chunk, chunk_index), tree.same_path(chunk)),
            Structure::Btree2(tree) => tree.path(chunk),
            Structure::Table(table) => (table.path(chunk, chunk_index), table.same_path(chunk, chunk_index)),
        };
        self.read = same;
        self.read_missing(&path)
    }

    /// Bytes of the block that is created before the first chunk is written.
    pub fn create(&mut self) -> u64 {
        let nbytes = match &self.structure {
            Structure::None => return 0,
            Structure::Btree(tree) => tree.block(HEADER).nbytes,
            Structure::Btree2(_) => Btree2::HEADER_NBYTES,
            Structure::Table(table) => table.header_nbytes(),
        };
        if std::mem::replace(&mut self.has_header, true) {
            return 0;
        }
        self.in_memory.insert(HEADER);
        self.known.insert(HEADER);
        self.changed.insert(HEADER);
        nbytes
    }

    /// Inserts a chunk. Returns the blocks that are read for it, and the bytes of those that are created.
    pub fn insert(&mut self, chunk: u64, chunk_index: &[u64]) -> (Vec<BlockRead>, u64) {
        let inserted = match &mut self.structure {
            Structure::None => return (Vec::new(), 0),
            Structure::Btree(tree) => tree.insert(chunk, chunk_index),
            Structure::Btree2(tree) => tree.insert(chunk),
            Structure::Table(table) => table.insert(chunk, chunk_index),
        };
        self.read = 0..0;
        let created = inserted.created.iter().filter(|block| self.in_memory.insert(block.id));
        let made_nbytes = created.map(|block| block.made_nbytes).sum();
        let read = self.read_missing(&inserted.needed);
        self.known.extend(inserted.created.iter().map(|block| block.id));
        self.changed.extend(inserted.created.iter().map(|block| block.id));
        self.changed.extend(inserted.changed);
        (read, made_nbytes)
    }

    /// A chunk has moved. It was looked up before.
    pub fn replace(&mut self, chunk: u64, chunk_index: &[u64]) {
        match &self.structure {
            Structure::None => {}
            Structure::Btree(tree) => self.changed.extend(tree.holders(chunk)),
            Structure::Btree2(tree) => self.changed.extend(tree.holder(chunk)),
            Structure::Table(table) => self.changed.extend([table.holder(chunk, chunk_index)]),
        }
    }

    /// How many blocks were changed and not written yet. They count as written from now on.
    pub fn write(&mut self) -> u64 {
        let count = self.changed.len() as u64;
        self.changed.clear();
        count
    }

    /// The given blocks that are not in memory. They are from now on.
    fn read_missing(&mut self, blocks: &[Block]) -> Vec<BlockRead> {
        let missing = blocks.iter().filter(|block| self.in_memory.insert(block.id));
        let behind = |id| match &self.structure {
            Structure::Btree(tree) => tree.position(id),
            _ => None,
        };
        let known = &mut self.known;
        let read = |block: &Block| BlockRead {
            behind: behind(block.id),
            nbytes: block.nbytes,
            is_cached: !known.insert(block.id),
        };
        missing.map(read).collect()
    }
}
