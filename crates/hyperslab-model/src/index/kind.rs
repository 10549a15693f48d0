//! HDF5's chunk indexes by name.

/// How an HDF5 file finds the chunks of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// The first B-tree: all files but those written with `libver` 1.10 or later.
    BtreeV1,
    /// The second B-tree, for arrays that grow without bound along several axes, from `libver` 1.10 on.
    BtreeV2,
    /// A table, for arrays that cannot grow, from `libver` 1.10 on.
    FixedArray,
    /// A table that grows, for arrays that grow without bound along one axis, from `libver` 1.10 on.
    ExtensibleArray {
        /// That axis.
        axis: usize,
    },
    /// No index: one chunk, or all of them allocated when the array was made.
    None,
    /// No chunks: the array lies in one piece.
    Contiguous,
}
