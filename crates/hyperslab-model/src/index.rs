//! The blocks of HDF5's chunk indexes: which are read to find a chunk, and which are made when one comes.

use std::collections::HashSet;
use std::ops::Range;

use crate::btree::Btree;
use crate::hdf5::Hdf5;
use crate::stored::Stored;

/// How an HDF5 file finds its chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// The first B-tree: all files but those written with `libver` 1.10 or later.
    BtreeV1,
    /// A table, for arrays that cannot grow, from `libver` 1.10 on.
    FixedArray,
    /// A table that grows, for arrays that grow without bound along one axis, from `libver` 1.10 on.
    ExtensibleArray {
        /// That axis.
        axis: usize,
    },
    /// No index: one chunk, or all of them allocated when the array was made.
    None,
}

/// The number of a block, and its bytes.
type Block = (u64, u64);

/// Elements of a page of a table.
const PAGE: u64 = 1024;
/// Of an extensible array: elements in the index block, and in the least data block.
const IN_INDEX_BLOCK: u64 = 4;
const LEAST_DATA_BLOCK: u64 = 16;
/// Groups of data blocks that the index block points to itself, and all groups that there can be.
const DIRECT_GROUPS: u32 = 4;
const GROUPS: u64 = 29;
/// Signature, version, class, address of the header; checksum.
const PREFIX_NBYTES: u64 = 14;
const CHECKSUM_NBYTES: u64 = 4;

const HEADER: u64 = 0;
const FIRST_BLOCK: u64 = 1;
const GROUP: u64 = 1 << 60;
const DATA_BLOCK: u64 = 2 << 60;
const DATA_PAGE: u64 = 3 << 60;

/// The index of one array, and which of its blocks are in memory.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    kind: IndexKind,
    tree: Btree,
    grid_shape: Vec<u64>,
    chunk_count: u64,
    element_nbytes: u64,
    /// Blocks that the file has; `None`: all of them.
    made: Option<HashSet<u64>>,
    /// What is behind the last chunk of an extensible array is not looked for below the header.
    stop: u64,
    in_memory: HashSet<u64>,
    /// Chunks that need no more blocks than are in memory.
    read: Range<u64>,
    changed: HashSet<u64>,
}

impl Index {
    /// Of an array without chunks.
    pub fn new(hdf5: &Hdf5, stored: &Stored) -> Self {
        let (kind, grid, is_filtered) = (hdf5.index, &stored.grid, stored.is_encoded());
        // Address; if filtered, the length in as many bytes as it may take, and the mask.
        let least = u64::from((1 + (stored.chunk_nbytes().max(1).ilog2() + 8) / 8).min(8));
        let length_nbytes = if hdf5.wide_lengths { 8 } else { least };
        Self {
            kind,
            tree: Btree::new(),
            grid_shape: grid.grid_shape(),
            chunk_count: grid.chunk_count(),
            element_nbytes: if is_filtered { 8 + length_nbytes + 4 } else { 8 },
            made: Some(HashSet::new()),
            stop: 0,
            in_memory: HashSet::new(),
            read: 0..0,
            changed: HashSet::new(),
        }
    }

    /// Now of all chunks, written in row-major order before anybody looked.
    pub fn fill(&mut self) {
        let last: Vec<u64> = self.grid_shape.iter().map(|length| length.saturating_sub(1)).collect();
        self.tree = Btree::row_major(self.chunk_count, &last);
        self.made = None;
        self.stop = u64::MAX;
    }

    /// Whether the file has the index already; `None` where it never has one.
    pub fn exists(&self) -> Option<bool> {
        let has_header = self.made.as_ref().is_none_or(|made| made.contains(&HEADER));
        (self.kind != IndexKind::None).then_some(has_header)
    }

    /// Forget what is in memory: the file is opened anew.
    pub fn forget(&mut self) {
        self.in_memory.clear();
        self.read = 0..0;
        self.changed.clear();
    }

    /// Each block that is read to find a chunk: behind which chunk it lies and how many blocks, if that is known, and its
    /// bytes.
    pub fn lookup(
        &mut self,
        chunk: u64,
        chunk_index: &[u64],
        mut reads: impl FnMut(Option<(u64, u64)>, u64),
    ) {
        match self.kind {
            IndexKind::None => {}
            IndexKind::BtreeV1 => {
                if self.read.contains(&chunk) {
                    return;
                }
                self.read = self.tree.same_path(chunk);
                let nbytes = Btree::node_nbytes(self.grid_shape.len());
                for node in self.tree.path(chunk, chunk_index) {
                    if self.in_memory.insert(node) {
                        reads(self.tree.place(node), nbytes);
                    }
                }
            }
            IndexKind::FixedArray | IndexKind::ExtensibleArray { .. } => {
                let is_behind = self.place(chunk, chunk_index) >= self.stop;
                for (block, nbytes) in self.blocks(chunk, chunk_index) {
                    let is_skipped = is_behind && block != HEADER && self.kind != IndexKind::FixedArray;
                    if is_skipped || self.made.as_ref().is_some_and(|made| !made.contains(&block)) {
                        return;
                    }
                    if self.in_memory.insert(block) {
                        reads(None, nbytes);
                    }
                }
            }
        }
    }

    /// The bytes of the block that is made before the first chunk is written.
    pub fn create(&mut self) -> u64 {
        let (block, nbytes) = match self.kind {
            IndexKind::None => return 0,
            IndexKind::BtreeV1 => (HEADER, Btree::node_nbytes(self.grid_shape.len())),
            IndexKind::FixedArray => (HEADER, 28),
            IndexKind::ExtensibleArray { .. } => (HEADER, 72),
        };
        let is_new = self.made.as_mut().is_some_and(|made| made.insert(block));
        if !is_new {
            return 0;
        }
        self.in_memory.insert(block);
        self.changed.insert(block);
        nbytes
    }

    /// Add a chunk; the bytes of each block that is made for it.
    pub fn insert(&mut self, chunk: u64, chunk_index: &[u64]) -> Vec<u64> {
        match self.kind {
            IndexKind::None => Vec::new(),
            IndexKind::BtreeV1 => {
                let inserted = self.tree.insert(chunk, chunk_index);
                self.changed.extend(inserted.changed);
                self.changed.extend(&inserted.created);
                self.in_memory.extend(&inserted.created);
                let made = inserted.created.iter().filter(|&&node| node != HEADER);
                made.map(|_| Btree::node_nbytes(self.grid_shape.len())).collect()
            }
            IndexKind::FixedArray | IndexKind::ExtensibleArray { .. } => {
                self.stop = self.stop.max(self.place(chunk, chunk_index) + 1);
                let mut created = Vec::new();
                for (block, nbytes) in self.blocks(chunk, chunk_index) {
                    if self.made.as_mut().is_some_and(|made| made.insert(block)) {
                        self.in_memory.insert(block);
                        created.push(nbytes);
                    }
                    self.changed.insert(block);
                }
                created
            }
        }
    }

    /// How many blocks were changed and not written yet; they are now.
    pub fn write(&mut self) -> u64 {
        let count = self.changed.len() as u64;
        self.changed.clear();
        count
    }

    /// The blocks that lead to a chunk, from the header.
    fn blocks(&self, chunk: u64, chunk_index: &[u64]) -> Vec<Block> {
        match self.kind {
            IndexKind::ExtensibleArray { .. } => self.extensible_blocks(self.place(chunk, chunk_index)),
            _ => self.fixed_blocks(chunk),
        }
    }

    fn fixed_blocks(&self, chunk: u64) -> Vec<Block> {
        let of = |count: u64| count * self.element_nbytes;
        let mut blocks = vec![(HEADER, 28)];
        if self.chunk_count <= PAGE {
            blocks.push((FIRST_BLOCK, PREFIX_NBYTES + of(self.chunk_count) + CHECKSUM_NBYTES));
            return blocks;
        }
        let bitmap_nbytes = self.chunk_count.div_ceil(PAGE).div_ceil(8);
        blocks.push((FIRST_BLOCK, PREFIX_NBYTES + bitmap_nbytes + CHECKSUM_NBYTES));
        let page = chunk / PAGE;
        let in_page = PAGE.min(self.chunk_count - page * PAGE);
        blocks.push((DATA_PAGE | page, of(in_page) + CHECKSUM_NBYTES));
        blocks
    }

    fn extensible_blocks(&self, place: u64) -> Vec<Block> {
        let of = |count: u64| count * self.element_nbytes;
        let data_pointers = 2 * (1 << (DIRECT_GROUPS / 2)) - 2;
        let pointers = data_pointers + GROUPS - u64::from(DIRECT_GROUPS);
        let index_block_nbytes = PREFIX_NBYTES + of(IN_INDEX_BLOCK) + 8 * pointers + CHECKSUM_NBYTES;
        let mut blocks = vec![(HEADER, 72), (FIRST_BLOCK, index_block_nbytes)];
        let Some(beyond) = place.checked_sub(IN_INDEX_BLOCK) else { return blocks };
        let group = (beyond / LEAST_DATA_BLOCK + 1).ilog2();
        let in_group = beyond - LEAST_DATA_BLOCK * ((1 << group) - 1);
        let (block_count, block_length) = (1_u64 << (group / 2), LEAST_DATA_BLOCK << group.div_ceil(2));
        let block = (u64::from(group) << 40) | (in_group / block_length);
        // The place of a block in the array takes four bytes more.
        let prefix_nbytes = PREFIX_NBYTES + 4;
        let page_count = if block_length > PAGE { block_length / PAGE } else { 0 };
        if group >= DIRECT_GROUPS {
            let bitmap_nbytes = block_count * page_count.div_ceil(8);
            let nbytes = prefix_nbytes + bitmap_nbytes + 8 * block_count + CHECKSUM_NBYTES;
            blocks.push((GROUP | u64::from(group), nbytes));
        }
        if page_count > 0 {
            let page = in_group % block_length / PAGE;
            blocks.push((DATA_PAGE | (block << 16) | page, of(PAGE) + CHECKSUM_NBYTES));
        } else {
            blocks.push((DATA_BLOCK | block, prefix_nbytes + of(block_length) + CHECKSUM_NBYTES));
        }
        blocks
    }

    /// The place of a chunk in a table, where the axis that grows is the slowest.
    fn place(&self, chunk: u64, chunk_index: &[u64]) -> u64 {
        let IndexKind::ExtensibleArray { axis } = self.kind else { return chunk };
        let others = (0..chunk_index.len()).filter(|&other| other != axis);
        others.fold(chunk_index.get(axis).copied().unwrap_or(0), |place, other| {
            place * self.grid_shape[other] + chunk_index[other]
        })
    }
}
