//! One read of a plan.

use crate::array::Array;
use crate::array::manifest::ChunkState;
use crate::byte_range::ByteRange;
use crate::plan::coalesce::CoalescePolicy;
use crate::plan::placement::Placement;

/// One read of a plan: a chunk, or a part of an uncompressed one.
#[derive(Clone, Debug)]
pub struct ChunkRead<'a> {
    /// The number of the segment of the array.
    pub segment: usize,
    /// The chunk's linear index in the segment's grid.
    pub chunk: u64,
    /// Whether the stored bytes are the elements, in C order. Any part can then be read without the rest.
    pub is_plain: bool,
    /// The number of elements in the stored chunk.
    pub chunk_element_count: u64,
    /// Where its elements go in the output.
    pub placement: Placement<'a>,
}

impl ChunkRead<'_> {
    /// Whether all stored bytes of the chunk are fetched even if only a part is wanted: fetching a few bytes in vain
    /// costs less than another request, and neighbours come along.
    pub fn is_fetched_whole(&self, element_nbytes: u64, policy: CoalescePolicy) -> bool {
        !self.is_plain || self.chunk_element_count.saturating_mul(element_nbytes) <= policy.gap_nbytes
    }

    /// The stored bytes to fetch in that case. For a plain chunk, no more than its elements.
    pub fn whole_range(&self, stored: ByteRange, element_nbytes: u64) -> ByteRange {
        let elements = self.chunk_element_count.saturating_mul(element_nbytes);
        ByteRange {
            length: if self.is_plain { stored.length.min(elements) } else { stored.length },
            ..stored
        }
    }
}

/// The state of the chunk that a read needs.
pub(crate) fn state<'a>(array: &'a Array, read: &ChunkRead<'_>) -> ChunkState<'a> {
    let segment = array.segments.as_ref().ok().and_then(|segments| segments.get(read.segment));
    segment.map_or(ChunkState::Missing, |segment| segment.manifest.state(read.chunk))
}
