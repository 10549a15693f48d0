//! From the index of a chunked array to its stored chunks, in small steps that can be made again.
//!
//! ```text
//! let index = ChunkIndex::new(&layout, &shape, &max_shape, sizes)?;
//! let mut tasks = index.start();
//! loop: for each task: index.step(&task, &pages, &mut found)
//!     Ok(more)     => more tasks; what they need is already noted in the pages
//!     NotHeld      => keep the task for the next round; nothing was found by it
//! ```
//!
//! Chunks come in no particular order, and only those of the current shape: arrays that shrank leave others.

mod btree1;
mod btree2_chunks;
mod direct;
mod element;
mod extensible_array;
mod fixed_array;
mod numbering;
mod page_runs;

use std::sync::Arc;

use hyperslab_core::{ByteRange, StoredChunk};

use self::element::ElementFormat;
use self::numbering::{Numbering, Order};
use super::btree2;
use super::layout::{ChunkedLayout, IndexKind};
use super::sizes::Sizes;
use super::visited::Visited;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

/// What leads to the chunks of one array.
#[derive(Debug)]
pub(crate) struct ChunkIndex {
    kind: IndexKind,
    sizes: Sizes,
    numbering: Numbering,
    /// What an unfiltered chunk is long.
    chunk_nbytes: u64,
    /// Where the chunks start that are looked for, unless all are.
    sought: Option<Vec<Vec<u64>>>,
    visited: Visited,
}

/// A part of an index that is to be read.
#[derive(Clone, Debug)]
pub(crate) struct IndexTask(Task);

#[derive(Clone, Debug)]
enum Task {
    BTree1(btree1::Node),
    Single { range: ByteRange, filter_mask: u32 },
    Implicit { address: u64 },
    FixedArray(fixed_array::Part),
    ExtensibleArray(extensible_array::Part),
    BTree2Header { address: u64 },
    BTree2Node(Arc<btree2::Header>, btree2::Node),
}

impl ChunkIndex {
    /// The index of an array of this layout, shape and maximum shape.
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
            Error::invalid("a chunked layout", 0, "chunks of no bytes, or of more than 2^64")
        })?;
        let (kind, visited) = (layout.kind.clone(), Visited::default());
        Ok(Self { kind, sizes, numbering, chunk_nbytes, sought: None, visited })
    }

    /// Look for the chunks with these linear indices only. Some indexes are read as a whole all the same.
    pub fn look_for(&mut self, indices: &[u64]) {
        self.sought = Some(indices.iter().map(|&index| self.numbering.start(index)).collect());
    }

    /// What to read first.
    pub fn start(&self) -> Vec<IndexTask> {
        let task = match self.kind {
            IndexKind::Unallocated => return Vec::new(),
            IndexKind::BTree1 { address } => Task::BTree1(btree1::Node::root(address)),
            IndexKind::Single { address, filtered } => {
                let (length, filter_mask) = filtered.unwrap_or((self.chunk_nbytes, 0));
                Task::Single { range: ByteRange { offset: address, length }, filter_mask }
            }
            IndexKind::Implicit { address } => Task::Implicit { address },
            IndexKind::FixedArray { address, .. } => Task::FixedArray(fixed_array::Part::Header { address }),
            IndexKind::ExtensibleArray { address, .. } => {
                Task::ExtensibleArray(extensible_array::Part::Header { address })
            }
            IndexKind::BTree2 { address } => Task::BTree2Header { address },
        };
        vec![IndexTask(task)]
    }

    /// Note what the tasks of `start` will need, so that it comes with whatever else the round fetches.
    pub fn want(&self, pages: &Pages<'_>) {
        match self.kind {
            IndexKind::Unallocated | IndexKind::Single { .. } | IndexKind::Implicit { .. } => {}
            IndexKind::BTree1 { address } => btree1::want(self, address, pages),
            IndexKind::FixedArray { address, .. } => fixed_array::want(self, address, pages),
            IndexKind::ExtensibleArray { address, .. } => extensible_array::want(self, address, pages),
            IndexKind::BTree2 { address } => btree2::Header::want(address, self.sizes, pages),
        }
    }

    /// Read one part. What it found is added to `found`; what must be read next comes back, noted as needed.
    ///
    /// After `NotHeld` the step is to be made again when the next round came; nothing was found then.
    pub fn step(
        &self,
        task: &IndexTask,
        pages: &Pages<'_>,
        found: &mut Vec<StoredChunk>,
    ) -> Result<Vec<IndexTask>, Error> {
        let tasks = match &task.0 {
            Task::BTree1(node) => wrapped(btree1::step(self, *node, pages, found)?, Task::BTree1),
            Task::Single { range, filter_mask } => {
                direct::single(self, *range, *filter_mask, found);
                Vec::new()
            }
            Task::Implicit { address } => {
                direct::implicit(self, *address, pages, found)?;
                Vec::new()
            }
            Task::FixedArray(part) => wrapped(fixed_array::step(self, part, pages, found)?, Task::FixedArray),
            Task::ExtensibleArray(part) => {
                wrapped(extensible_array::step(self, part, pages, found)?, Task::ExtensibleArray)
            }
            Task::BTree2Header { address } => btree2_chunks::start(self, *address, pages)?,
            Task::BTree2Node(header, node) => btree2_chunks::step(self, header, *node, pages, found)?,
        };
        Ok(tasks)
    }

    /// Add the chunks of consecutive elements, from a number of the order on, until the cursor ends.
    fn push_elements(
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

/// Whether a chunk's place, eight bytes an axis, stands before another's, as all libraries sort them: places beyond the
/// shape too.
fn is_before(place: &[u8], other: &[u8]) -> bool {
    place.chunks_exact(8).map(word).lt(other.chunks_exact(8).map(word))
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(u64::MAX, |&eight: &[u8; 8]| u64::from_le_bytes(eight))
}

/// Add a chunk. One that lies past the end of the file is damaged by itself: reading it says so, the others are whole.
fn push(index: u64, (range, filter_mask): (ByteRange, u32), found: &mut Vec<StoredChunk>) {
    found.push(StoredChunk { index, file: 0, range, filter_mask });
}

fn wrapped<T>(parts: Vec<T>, wrap: fn(T) -> Task) -> Vec<IndexTask> {
    parts.into_iter().map(|part| IndexTask(wrap(part))).collect()
}

#[cfg(test)]
mod testing;
