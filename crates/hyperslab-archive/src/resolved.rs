//! `Resolved`: a virtual array, or one that was described without its chunks, as one with segments.

use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{Array, SegmentIndex};
use hyperslab_engine::Stores;

/// An array with segments, and the files that these lie in.
pub(crate) struct Resolved {
    pub(crate) array: Array,
    pub(crate) stores: Stores,
    /// Finds the segments of a selection, unless there are none.
    pub(crate) index: Option<SegmentIndex>,
    /// Tells it, in the cache of chunks, from arrays of files and from one that another thread resolved.
    pub(crate) number: u64,
}

impl Resolved {
    pub(crate) fn new(array: Array, stores: Stores) -> Self {
        Self::numbered(array, stores, next_number())
    }

    /// Whose chunks in the cache are those of others with this number.
    pub(crate) fn numbered(array: Array, stores: Stores, number: u64) -> Self {
        let index = array.segments.as_deref().ok().and_then(SegmentIndex::new);
        Self { array, stores, index, number }
    }
}

/// The number of the next one, above those of arrays of files.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1 << 32);

/// A number that no array of this process has.
fn next_number() -> u64 {
    NEXT_NUMBER.fetch_add(1, Ordering::Relaxed)
}
