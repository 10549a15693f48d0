//! `Resolved`: a virtual or lazy array with its segments.

use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{Array, SegmentIndex};
use hyperslab_engine::Stores;

/// An array with segments, and the files that hold them.
pub(crate) struct Resolved {
    pub(crate) array: Array,
    pub(crate) stores: Stores,
    /// Looks up the segments of a selection, unless all segments are here.
    pub(crate) index: Option<SegmentIndex>,
    /// Tells the array, in the chunk cache, from arrays of files and from the same array resolved by another thread.
    pub(crate) number: u64,
}

impl Resolved {
    pub(crate) fn new(array: Array, stores: Stores) -> Self {
        Self::numbered(array, stores, next_numbers(1))
    }

    /// The same, sharing the cached chunks of the array with this number.
    pub(crate) fn numbered(array: Array, stores: Stores, number: u64) -> Self {
        let index = array.segments.as_deref().ok().and_then(SegmentIndex::new);
        Self { array, stores, index, number }
    }
}

/// The next number to give.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// So many numbers that no other arrays of this process have: the first of them.
pub(crate) fn next_numbers(count: usize) -> u64 {
    NEXT_NUMBER.fetch_add(count as u64, Ordering::Relaxed)
}
