//! The parts of a chunk index, and what an insertion does to them.

/// The first block of every index: of the first B-tree its root.
pub(crate) const HEADER: u64 = 0;

/// A part of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub id: u64,
    /// Bytes that are read of it; 0: it is never read.
    pub nbytes: u64,
    /// Bytes of the file that are taken when it is made.
    pub made_nbytes: u64,
}

impl Block {
    /// One that is read as it is made.
    pub fn whole(id: u64, nbytes: u64) -> Self {
        Self { id, nbytes, made_nbytes: nbytes }
    }
}

/// What putting a chunk into an index does to its blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// Blocks that are looked at, in order; those that were made for it need not be read.
    pub needed: Vec<Block>,
    /// Blocks made, in order.
    pub created: Vec<Block>,
    /// Older blocks changed.
    pub changed: Vec<u64>,
}
