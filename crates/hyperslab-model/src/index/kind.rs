//! HDF5's chunk indexes by name.

/// What the blocks of an index depend on, besides the array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexFacts<'a> {
    pub kind: IndexKind,
    /// Whether the lengths of filtered chunks take eight bytes.
    pub wide_lengths: bool,
    /// The largest shape of the array, with `u64::MAX` for an axis without a limit.
    pub max_shape: Option<&'a [u64]>,
}

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
    /// No chunks: the array is in its object header, which is read when it is opened.
    Compact,
}
