//! What can be wrong with a selection, a grid, or the two together.

use thiserror::Error;

/// The most elements that an array can have: what an `i64`, so NumPy's int64, can count.
pub const MAX_ELEMENT_COUNT: u64 = i64::MAX as u64;

/// An invalid request. Every variant names the culprit; the message adds the remedy.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// Two sequences that need one entry per axis have different lengths.
    #[error("{what} has {ndim} axes but {other} has {expected}: give one entry per axis in both")]
    NdimMismatch {
        /// The sequence at fault.
        what: &'static str,
        /// Its length.
        ndim: usize,
        /// What it was compared with.
        other: &'static str,
        /// The length of that.
        expected: usize,
    },
    /// A block, a stride or a chunk without elements.
    #[error("{what} is 0 on axis {axis}: it must be at least 1")]
    Zero {
        /// "block", "stride" or "chunk shape".
        what: &'static str,
        /// The axis at fault.
        axis: usize,
    },
    /// Blocks of a hyperslab share elements.
    #[error(
        "blocks overlap on axis {axis}: stride {stride} is less than block {block}; use at least {block}"
    )]
    OverlappingBlocks {
        /// The axis at fault.
        axis: usize,
        /// Distance between the starts of blocks.
        stride: u64,
        /// Length of a block.
        block: u64,
    },
    /// An index or an element count beyond `MAX_ELEMENT_COUNT`.
    #[error("{what} exceeds 2^63 - 1: no array holds that many elements")]
    TooLarge {
        /// What overflows.
        what: &'static str,
    },
    /// A selection of so many pieces of chunks that we do not list them.
    #[error("more than {limit} pieces of chunks are selected on one axis: ask for fewer at a time")]
    TooScattered {
        /// The most that a plan lists on one axis.
        limit: u64,
    },
    /// A selection reaches outside its array.
    #[error("axis {axis}: index {index} is outside an array of length {length}; use one below {length}")]
    OutOfBounds {
        /// The axis at fault.
        axis: usize,
        /// The first index outside, or for a hyperslab the last one selected.
        index: u64,
        /// The array's length on that axis.
        length: u64,
    },
    /// A chunk that the grid does not have.
    #[error(
        "axis {axis}: chunk index {index} is outside a grid of {length} chunks; use an index below {length}"
    )]
    NoSuchChunk {
        /// The axis at fault.
        axis: usize,
        /// The chunk index asked for.
        index: u64,
        /// The grid's length on that axis.
        length: u64,
    },
    /// A linear chunk index beyond the last chunk.
    #[error("linear chunk index {linear} is outside a grid of {count} chunks; use an index below {count}")]
    NoSuchLinearChunk {
        /// The linear index asked for.
        linear: u64,
        /// How many chunks there are.
        count: u64,
    },
    /// Points that have no axes.
    #[error("points need at least one axis: the only element of an array without axes is its hyperslab")]
    PointsWithoutAxes,
    /// The coordinates of points do not divide into whole points.
    #[error(
        "{length} coordinates are not a whole number of points with {ndim} axes: give {ndim} coordinates per point"
    )]
    RaggedPoints {
        /// The number of coordinates given.
        length: usize,
        /// The number of coordinates of one point.
        ndim: usize,
    },
}

/// The product. Fails if it is too large. Zeros count as ones, so they do not hide an overflow of the others.
pub(crate) fn checked_product(
    what: &'static str,
    factors: impl IntoIterator<Item = u64>,
) -> Result<u64, Error> {
    factors
        .into_iter()
        .try_fold(1_u64, |product, factor| product.checked_mul(factor.max(1)))
        .filter(|&product| product <= MAX_ELEMENT_COUNT)
        .ok_or(Error::TooLarge { what })
}

pub(crate) fn same_ndim(
    what: &'static str,
    ndim: usize,
    other: &'static str,
    expected: usize,
) -> Result<(), Error> {
    if ndim == expected { Ok(()) } else { Err(Error::NdimMismatch { what, ndim, other, expected }) }
}
