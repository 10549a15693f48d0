//! One read of a plan.

use crate::array::Array;
use crate::array::manifest::ChunkState;
use crate::byte_range::ByteRange;
use crate::plan::coalesce::CoalescePolicy;
use crate::plan::placement::Placement;

/// One read of a plan: a chunk, or a part of an uncompressed one.
#[derive(Clone, Debug)]
pub struct ChunkRead<'a> {
    /// Which segment of the array.
    pub segment: usize,
    /// The chunk's linear index in the segment's grid.
    pub chunk: u64,
    /// Its bytes are its elements, in C order: any part can be read without the rest.
    pub is_plain: bool,
    /// Elements in the stored chunk.
    pub chunk_element_count: u64,
    /// Where its elements go.
    pub placement: Placement<'a>,
}

impl ChunkRead<'_> {
    /// Whether all of the chunk's stored bytes are fetched, whatever part of it is asked for: to read few bytes in vain
    /// costs less than a request, and neighbours come with one.
    pub fn is_fetched_whole(&self, element_nbytes: u64, policy: CoalescePolicy) -> bool {
        !self.is_plain || self.chunk_element_count.saturating_mul(element_nbytes) <= policy.gap_nbytes
    }

    /// The stored bytes to fetch where that is so: of a plain chunk no more than its elements.
    pub fn whole_range(&self, stored: ByteRange, element_nbytes: u64) -> ByteRange {
        let elements = self.chunk_element_count.saturating_mul(element_nbytes);
        ByteRange {
            length: if self.is_plain { stored.length.min(elements) } else { stored.length },
            ..stored
        }
    }
}

/// What is known of the chunk of a read.
pub(crate) fn state<'a>(array: &'a Array, read: &ChunkRead<'_>) -> ChunkState<'a> {
    let segment = array.segments.as_ref().ok().and_then(|segments| segments.get(read.segment));
    segment.map_or(ChunkState::Missing, |segment| segment.manifest.state(read.chunk))
}
