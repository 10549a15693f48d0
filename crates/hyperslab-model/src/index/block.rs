//! The parts of a chunk index, and what an insertion does to them.

/// The first block of every index. In the first B-tree this is the root.
pub(crate) const HEADER: u64 = 0;

/// A part of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub id: u64,
    /// How many bytes are read of it. With 0, it is never read.
    pub nbytes: u64,
    /// How many bytes of the file it takes when it is created.
    pub made_nbytes: u64,
}

impl Block {
    /// A block that is read as it was created.
    pub fn whole(id: u64, nbytes: u64) -> Self {
        Self { id, nbytes, made_nbytes: nbytes }
    }
}

/// What inserting a chunk into an index does to its blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// Blocks that are visited, in order. Those that were created for this chunk need not be read.
    pub needed: Vec<Block>,
    /// Blocks created, in order.
    pub created: Vec<Block>,
    /// Older blocks that change.
    pub changed: Vec<u64>,
}
