//! The tables in which HDF5's newer files look up chunks (`H5FA*.c`, `H5EA*.c`): a fixed one, and a growing one.

use std::collections::HashSet;
use std::ops::Range;

use crate::index::block::{Block, HEADER, Inserted};

/// Elements in a page of a table.
const PAGE: u64 = 1024;
/// For a growing table: elements in the index block, and in the smallest data block.
const IN_INDEX_BLOCK: u64 = 4;
const LEAST_DATA_BLOCK: u64 = 16;
/// Groups of data blocks that the index block points to directly, and the most groups that there can be.
const DIRECT_GROUPS: u32 = 4;
const GROUPS: u64 = 29;
/// Signature, version, class, address of the header; checksum.
const PREFIX_NBYTES: u64 = 14;
const CHECKSUM_NBYTES: u64 = 4;
/// The location of a data block in a growing table.
const PLACE_NBYTES: u64 = 4;

const FIRST_BLOCK: u64 = 1;
const GROUP: u64 = 1 << 60;
const DATA_BLOCK: u64 = 2 << 60;
const DATA_PAGE: u64 = 3 << 60;

#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The axis along which the array grows.
    growing_axis: Option<usize>,
    /// The grid of the largest shape that the array may have. The growing axis is as long as it is now.
    grid_shape: Vec<u64>,
    chunk_count: u64,
    element_nbytes: u64,
    /// Whether a chunk's position in that grid is its position in the array's grid.
    is_linear: bool,
    /// Blocks after the header that the file has; `None` for all of them.
    made: Option<HashSet<u64>>,
    /// A lookup beyond the last chunk of a growing table ends at the header.
    stop: u64,
}

impl Table {
    /// Without chunks.
    pub fn new(growing_axis: Option<usize>, now: &[u64], grid_shape: Vec<u64>, element_nbytes: u64) -> Self {
        let chunk_count = grid_shape.iter().product();
        let is_linear = now.iter().skip(1).eq(grid_shape.iter().skip(1));
        let made = Some(HashSet::new());
        Self { growing_axis, grid_shape, chunk_count, element_nbytes, is_linear, made, stop: 0 }
    }

    /// Now with all chunks.
    pub fn fill(&mut self) {
        self.made = None;
        self.stop = u64::MAX;
    }

    /// Whether all chunks count as made, without a list of them.
    pub fn has_all(&self) -> bool {
        self.made.is_none()
    }

    /// Bytes of the header.
    pub fn header_nbytes(&self) -> u64 {
        if self.growing_axis.is_some() { 72 } else { 28 }
    }

    /// The blocks that a lookup visits to find a chunk, starting at the header.
    pub fn path(&self, chunk: u64, chunk_index: &[u64]) -> Vec<Block> {
        let position = self.position(chunk, chunk_index);
        let mut blocks = self.blocks(position);
        let is_behind = self.is_behind(position);
        let there = blocks.iter().take_while(|block| self.has(block)).count();
        blocks.truncate(if is_behind { 1 } else { there });
        blocks.retain(|block| block.nbytes > 0);
        blocks
    }

    /// Chunks around a chunk whose lookup visits no other blocks.
    pub fn same_path(&self, chunk: u64, chunk_index: &[u64]) -> Range<u64> {
        let position = self.position(chunk, chunk_index);
        let is_there = self.blocks(position).iter().all(|block| self.has(block));
        match self.growing_axis {
            _ if !is_there || self.is_behind(position) => 0..0,
            None if self.chunk_count <= PAGE => 0..self.chunk_count,
            _ if !self.is_linear => 0..0,
            None => position / PAGE * PAGE..(position / PAGE + 1) * PAGE,
            Some(0) => DataBlock::of(position).map_or(0..IN_INDEX_BLOCK, |block| block.positions(position)),
            Some(_) => 0..0,
        }
    }

    /// Inserts a chunk. The header records all new blocks, and a new last chunk.
    pub fn insert(&mut self, chunk: u64, chunk_index: &[u64]) -> Inserted {
        let position = self.position(chunk, chunk_index);
        let mut inserted = Inserted::default();
        let (mut above, mut last) = (HEADER, HEADER);
        for block in self.blocks(position) {
            last = block.id;
            if !self.has(&block) {
                if let Some(made) = &mut self.made {
                    made.insert(block.id);
                }
                inserted.changed.push(above);
                inserted.created.push(block);
            } else if block.nbytes > 0 {
                inserted.needed.push(block);
            }
            if block.nbytes > 0 {
                above = block.id;
            }
        }
        inserted.changed.push(last);
        if self.is_behind(position) || (self.growing_axis.is_some() && !inserted.created.is_empty()) {
            inserted.changed.push(HEADER);
        }
        self.stop = self.stop.max(position + 1);
        inserted
    }

    /// The block with the location of a chunk.
    pub fn holder(&self, chunk: u64, chunk_index: &[u64]) -> u64 {
        self.blocks(self.position(chunk, chunk_index)).last().map_or(HEADER, |block| block.id)
    }

    /// Whether a position is after the last chunk of a growing table.
    fn is_behind(&self, position: u64) -> bool {
        self.growing_axis.is_some() && position >= self.stop
    }

    fn has(&self, block: &Block) -> bool {
        block.id == HEADER || self.made.as_ref().is_none_or(|made| made.contains(&block.id))
    }

    /// The blocks that lead to a chunk, starting at the header.
    fn blocks(&self, position: u64) -> Vec<Block> {
        let header = Block::whole(HEADER, self.header_nbytes());
        if self.growing_axis.is_some() {
            self.growing_blocks(header, position)
        } else {
            self.fixed_blocks(header, position)
        }
    }

    fn of(&self, count: u64) -> u64 {
        count * self.element_nbytes
    }

    fn fixed_blocks(&self, header: Block, position: u64) -> Vec<Block> {
        let count = self.chunk_count;
        if count <= PAGE {
            let nbytes = PREFIX_NBYTES + self.of(count) + CHECKSUM_NBYTES;
            return vec![header, Block::whole(FIRST_BLOCK, nbytes)];
        }
        let page_count = count.div_ceil(PAGE);
        let nbytes = PREFIX_NBYTES + page_count.div_ceil(8) + CHECKSUM_NBYTES;
        let made_nbytes = nbytes + self.of(count) + page_count * CHECKSUM_NBYTES;
        let page = position / PAGE;
        let page_nbytes = self.of(PAGE.min(count - page * PAGE)) + CHECKSUM_NBYTES;
        vec![
            header,
            Block { id: FIRST_BLOCK, nbytes, made_nbytes },
            Block { id: DATA_PAGE | page, nbytes: page_nbytes, made_nbytes: 0 },
        ]
    }

    fn growing_blocks(&self, header: Block, position: u64) -> Vec<Block> {
        let data_pointers = 2 * (1 << (DIRECT_GROUPS / 2)) - 2;
        let pointers = data_pointers + GROUPS - u64::from(DIRECT_GROUPS);
        let nbytes = PREFIX_NBYTES + self.of(IN_INDEX_BLOCK) + 8 * pointers + CHECKSUM_NBYTES;
        let mut blocks = vec![header, Block::whole(FIRST_BLOCK, nbytes)];
        let Some(data) = DataBlock::of(position) else { return blocks };
        let prefix_nbytes = PREFIX_NBYTES + PLACE_NBYTES;
        let page_count = if data.length > PAGE { data.length / PAGE } else { 0 };
        if data.group >= DIRECT_GROUPS {
            let block_count = 1_u64 << (data.group / 2);
            let bitmap_nbytes = block_count * page_count.div_ceil(8);
            let nbytes = prefix_nbytes + bitmap_nbytes + 8 * block_count + CHECKSUM_NBYTES;
            blocks.push(Block::whole(GROUP | u64::from(data.group), nbytes));
        }
        let number = (u64::from(data.group) << 40) | data.number;
        let made_nbytes = prefix_nbytes + CHECKSUM_NBYTES + self.of(data.length);
        if page_count == 0 {
            blocks.push(Block::whole(DATA_BLOCK | number, made_nbytes));
        } else {
            // The pages follow what is before them, which is never read.
            let made_nbytes = made_nbytes + page_count * CHECKSUM_NBYTES;
            blocks.push(Block { id: DATA_BLOCK | number, nbytes: 0, made_nbytes });
            let id = DATA_PAGE | (number << 16) | (data.position / PAGE);
            blocks.push(Block { id, nbytes: self.of(PAGE) + CHECKSUM_NBYTES, made_nbytes: 0 });
        }
        blocks
    }

    /// The position of a chunk in the table, where the growing axis is the slowest.
    fn position(&self, chunk: u64, chunk_index: &[u64]) -> u64 {
        let Some(axis) = self.growing_axis else {
            let along = chunk_index.iter().zip(&self.grid_shape);
            return if self.is_linear {
                chunk
            } else {
                along.fold(0, |sum, (index, length)| sum * length + index)
            };
        };
        let others = (0..chunk_index.len()).filter(|&other| other != axis);
        others.fold(chunk_index.get(axis).copied().unwrap_or(0), |position, other| {
            position * self.grid_shape[other] + chunk_index[other]
        })
    }
}

/// A data block of a growing table, and a position in it.
struct DataBlock {
    group: u32,
    number: u64,
    length: u64,
    position: u64,
}

impl DataBlock {
    /// `None` for the first positions, which are in the index block.
    fn of(position: u64) -> Option<Self> {
        let beyond = position.checked_sub(IN_INDEX_BLOCK)?;
        let group = (beyond / LEAST_DATA_BLOCK + 1).ilog2();
        let in_group = beyond - LEAST_DATA_BLOCK * ((1 << group) - 1);
        let length = LEAST_DATA_BLOCK << group.div_ceil(2);
        Some(Self { group, number: in_group / length, length, position: in_group % length })
    }

    /// The table's positions around this one that are in this block and in the same page.
    fn positions(&self, position: u64) -> Range<u64> {
        let length = self.length.min(PAGE);
        let first = position - self.position % length;
        first..first + length
    }
}
