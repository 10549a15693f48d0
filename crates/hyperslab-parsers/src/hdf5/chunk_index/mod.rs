//! From the index of a chunked array to its stored chunks, in small steps that can be repeated.
//!
//! ```text
//! let index = ChunkIndex::new(&layout, &shape, &max_shape, sizes)?;
//! let mut tasks = index.start();
//! loop: for each task: index.step(&task, &pages, &mut found)
//!     Ok(more)     => more tasks; what they need is already noted in the pages
//!     NotHeld      => keep the task for the next round; it found nothing
//! ```
//!
//! Chunks come in no particular order, and only those within the current shape: arrays that shrank leave others behind.

mod array_head;
mod btree1;
mod btree2_chunks;
mod direct;
mod element;
mod extensible_array;
mod fixed_array;
mod index;
mod numbering;
mod page_runs;

use std::sync::Arc;

use hyperslab_core::{ByteRange, StoredChunk};

pub(crate) use self::index::ChunkIndex;
use super::btree2;
use super::layout::IndexKind;
use crate::error::Error;
use crate::pages::Pages;

/// A part of an index that must be read.
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

    /// Notes what the tasks of `start` will need, so the next round fetches it along with the rest.
    pub fn want(&self, pages: &Pages<'_>) {
        match self.kind {
            IndexKind::Unallocated | IndexKind::Single { .. } | IndexKind::Implicit { .. } => {}
            IndexKind::BTree1 { address } => {
                btree1::want(self, address, pages);
                btree1::expect(self, address, pages);
            }
            IndexKind::FixedArray { address, .. } => fixed_array::want(self, address, pages),
            IndexKind::ExtensibleArray { address, .. } => extensible_array::want(self, address, pages),
            IndexKind::BTree2 { address } => btree2::Header::want(address, self.sizes, pages),
        }
    }

    /// Reads one part. Adds its chunks to `found`, and returns what must be read next, noted as needed.
    ///
    /// After `NotHeld`, repeat the step when the next round has come. Nothing was found then.
    pub fn step(
        &self,
        task: &IndexTask,
        pages: &Pages<'_>,
        found: &mut Vec<StoredChunk>,
    ) -> Result<Vec<IndexTask>, Error> {
        let tasks = match &task.0 {
            Task::BTree1(node) => wrapped(btree1::step(self, node, pages, found)?, Task::BTree1),
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
            Task::BTree2Header { address } => {
                wrapped(btree2_chunks::start(self, *address, pages)?, |(header, node)| {
                    Task::BTree2Node(header, node)
                })
            }
            Task::BTree2Node(header, node) => {
                let below = btree2_chunks::step(self, header, *node, pages, found)?;
                wrapped(below, |node| Task::BTree2Node(Arc::clone(header), node))
            }
        };
        Ok(tasks)
    }
}

fn wrapped<T>(parts: Vec<T>, wrap: impl Fn(T) -> Task) -> Vec<IndexTask> {
    parts.into_iter().map(|part| IndexTask(wrap(part))).collect()
}

#[cfg(test)]
mod testing;
