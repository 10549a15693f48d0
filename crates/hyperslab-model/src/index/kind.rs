//! HDF5's chunk indexes by name.

/// How an HDF5 file finds the chunks of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// The first B-tree, in all files except those written with `libver` 1.10 or later.
    BtreeV1,
    /// The second B-tree, for arrays with several unlimited axes, with `libver` 1.10 or later.
    BtreeV2,
    /// A fixed table, for arrays without unlimited axes, with `libver` 1.10 or later.
    FixedArray,
    /// A growing table, for arrays with one unlimited axis, with `libver` 1.10 or later.
    ExtensibleArray {
        /// That axis.
        axis: usize,
    },
    /// No index: there is one chunk, or all chunks were allocated when the array was created.
    None,
    /// No chunks: the array is in one piece.
    Contiguous,
}
