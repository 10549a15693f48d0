//! What a selection of an array reads. A plan is pure and small, and tells everything before the first byte is fetched.

use std::collections::HashSet;

use crate::array::Array;
use crate::array::segment::Segment;
use crate::error::{Error, checked_product};
use crate::plan::chunk_read::ChunkRead;
use crate::plan::error::PlanError;
use crate::plan::segment_index::SegmentIndex;
use crate::plan::segment_reads::{SegmentReads, check_fill, check_segment, misses};
use crate::selection::orthogonal::Orthogonal;
use crate::unreadable::Unreadable;

/// The most pairs of segments that are checked for shared elements.
const MOST_COMPARED: usize = 1 << 23;

/// What a selection reads of an array, chunk by chunk. Its reads never write the same element of the output, unless
/// segments overlap: see `is_disjoint`.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    shape: Vec<u64>,
    element_nbytes: u64,
    segments: Vec<SegmentReads>,
    read_count: u64,
    is_disjoint: bool,
}

impl ReadPlan {
    /// The plan of a selection of an array.
    pub fn new(array: &Array, selection: &Orthogonal) -> Result<Self, PlanError> {
        let segment_count = array.segments.as_ref().map_or(0, Vec::len);
        Self::of_segments(array, selection, 0..segment_count)
    }

    /// The same for an array of many segments, with an index of these.
    pub fn indexed(array: &Array, index: &SegmentIndex, selection: &Orthogonal) -> Result<Self, PlanError> {
        Self::of_segments(array, selection, index.near(selection))
    }

    fn of_segments(
        array: &Array,
        selection: &Orthogonal,
        numbers: impl IntoIterator<Item = usize>,
    ) -> Result<Self, PlanError> {
        let array_shape = array
            .shape
            .as_ref()
            .ok_or_else(|| Unreadable::unsupported("reading an array without elements"))?;
        selection.check_within(array_shape)?;
        let segments = segments(array)?;
        let shape = selection.shape();
        let element_nbytes = array.element.nbytes();
        check_fill(&array.fill, element_nbytes)?;
        checked_product("the output in bytes", shape.iter().copied().chain([element_nbytes]))?;
        let mut plan = Self { shape, element_nbytes, segments: Vec::new(), read_count: 0, is_disjoint: true };
        for number in numbers {
            let Some(segment) = segments.get(number) else { continue };
            if !misses(segment, selection) {
                check_segment(array, array_shape, segment)?;
                plan.add(number, segment, selection)?;
            }
        }
        plan.is_disjoint = plan.segments_are_disjoint(segments);
        Ok(plan)
    }

    /// Fails unless every selection of an array can be planned.
    pub fn check(array: &Array) -> Result<(), PlanError> {
        check_fill(&array.fill, array.element.nbytes())?;
        let Some(array_shape) = &array.shape else { return Ok(()) };
        segments(array)?.iter().try_for_each(|segment| check_segment(array, array_shape, segment))
    }

    fn add(&mut self, number: usize, segment: &Segment, selection: &Orthogonal) -> Result<(), PlanError> {
        if let Some(reads) = SegmentReads::new(number, segment, selection, self.read_count)? {
            self.read_count = (self.read_count.checked_add(reads.read_count))
                .ok_or(Error::TooLarge { what: "the number of chunks to read" })?;
            self.segments.push(reads);
        }
        Ok(())
    }

    /// The shape of the output.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// How many elements the output has.
    pub fn element_count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The width of an element of the output.
    pub fn element_nbytes(&self) -> u64 {
        self.element_nbytes
    }

    /// How many reads there are.
    pub fn read_count(&self) -> u64 {
        self.read_count
    }

    /// How many chunks are touched.
    pub fn chunk_count(&self) -> u64 {
        self.segments.iter().map(|reads| reads.chunk_count).sum()
    }

    /// Whether a read is the first one of its chunk.
    pub(crate) fn begins_chunk(&self, number: u64) -> bool {
        self.segment_of(number).is_some_and(|reads| reads.begins_chunk(number - reads.first_read))
    }

    /// The numbers, in increasing order, of the reads whose chunks are stored or inline. `None` unless these are fewer
    /// than one in `sparseness` of the chunks, and the rest is the array's fill value.
    pub(crate) fn stored_reads(&self, array: &Array, sparseness: u64) -> Option<Vec<u64>> {
        let segments = array.segments.as_ref().ok()?;
        let of_plan = || self.segments.iter().filter_map(|reads| Some((reads, segments.get(reads.segment)?)));
        let stored: u64 = of_plan().map(|(_, segment)| segment.manifest.chunk_count()).sum();
        let is_sparse = stored < self.chunk_count() / sparseness;
        if !is_sparse || of_plan().any(|(_, segment)| segment.fill != array.fill) {
            return None;
        }
        let mut numbers = Vec::new();
        for (reads, segment) in of_plan() {
            for chunk in segment.manifest.indices() {
                reads.push_reads_of(chunk, &mut numbers);
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        Some(numbers)
    }

    /// Whether no two segments share an element. Reads can then be executed in any order.
    pub fn is_disjoint(&self) -> bool {
        self.is_disjoint
    }

    /// Whether some elements may be in no segment. The output must then start as the array's fill value.
    pub fn has_gaps(&self) -> bool {
        let covered: u64 = self.segments.iter().map(|reads| reads.element_count).sum();
        !self.is_disjoint || covered != self.element_count()
    }

    /// The reads of each segment, as ranges of their numbers, in the order of the segments.
    pub fn reads_by_segment(&self) -> impl Iterator<Item = std::ops::Range<u64>> + '_ {
        self.segments.iter().map(|reads| reads.first_read..reads.first_read + reads.read_count)
    }

    /// Whether these reads are of one segment, and so never write the same element.
    pub fn are_of_one_segment(&self, reads: &std::ops::Range<u64>) -> bool {
        let Some(last) = reads.end.checked_sub(1).filter(|_| !reads.is_empty()) else { return true };
        self.segment_of(last).is_some_and(|own| own.first_read <= reads.start)
    }

    fn segment_of(&self, number: u64) -> Option<&SegmentReads> {
        if number >= self.read_count {
            return None;
        }
        let after = self.segments.partition_point(|reads| reads.first_read <= number);
        self.segments.get(after.checked_sub(1)?)
    }

    /// Read number `number`; `None` beyond the last one.
    pub fn read(&self, number: u64) -> Option<ChunkRead<'_>> {
        let reads = self.segment_of(number)?;
        Some(reads.read(number - reads.first_read))
    }

    /// Every read.
    pub fn reads(&self) -> impl Iterator<Item = ChunkRead<'_>> {
        (0..self.read_count).filter_map(|number| self.read(number))
    }

    /// Whether the segments that take part share no element. It sweeps along the axis with the most different starts.
    /// If that takes too long, the segments count as overlapping, which is slower to read but still correct.
    fn segments_are_disjoint(&self, segments: &[Segment]) -> bool {
        let mut taking_part: Vec<&Segment> =
            self.segments.iter().filter_map(|reads| segments.get(reads.segment)).collect();
        let shown = |segment: &Segment, axis: usize| segment.shown().nth(axis).copied();
        let start = |segment: &Segment, axis: usize| shown(segment, axis).map(|shown| shown.start());
        let distinct = |axis: usize| {
            let starts: HashSet<_> = taking_part.iter().map(|segment| start(segment, axis)).collect();
            starts.len()
        };
        let Some(axis) = (0..self.shape.len()).max_by_key(|&axis| distinct(axis)) else {
            return taking_part.len() < 2;
        };
        taking_part.sort_by_key(|segment| start(segment, axis));
        let (mut active, mut compared): (Vec<&Segment>, usize) = (Vec::new(), 0);
        for segment in taking_part {
            active.retain(|held| shown(held, axis).map(|shown| shown.stop()) > start(segment, axis));
            compared += active.len();
            if compared > MOST_COMPARED || active.iter().any(|held| !held.is_apart_from(segment)) {
                return false;
            }
            active.push(segment);
        }
        true
    }
}

/// The segments of an array. A virtual array has them only once it is resolved.
fn segments(array: &Array) -> Result<&[Segment], Unreadable> {
    let segments = array.segments.as_deref().map_err(Unreadable::clone)?;
    if !array.virtual_mappings.is_empty() {
        return Err(Unreadable::unsupported("a virtual array whose sources are not open"));
    }
    Ok(segments)
}
