//! What a selection of an array reads: a plan is pure, small, and says everything before the first byte is
//! fetched.

use std::collections::HashSet;

use thiserror::Error;

use crate::array::Array;
use crate::axis::AxisSelection;
use crate::byte_range::ByteRange;
use crate::coalesce::{CoalescePolicy, coalesce};
use crate::error::{Error, checked_product, same_ndim};
use crate::hyperslab::Hyperslab;
use crate::manifest::{ChunkState, FileIndex};
use crate::placement::{AxisIndices, Placement};
use crate::segment::Segment;
use crate::segment_reads::{SegmentReads, check_fill, check_segment, misses};
use crate::unreadable::Unreadable;

/// Most pairs of segments that are looked at for an element that both hold.
const MOST_COMPARED: usize = 1 << 23;

/// Why there is no plan.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// The selection does not fit the array.
    #[error(transparent)]
    Selection(#[from] Error),
    /// The array cannot be read, or not this way.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// A selection axis by axis: the product of what is asked of each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Orthogonal {
    axes: Vec<AxisIndices>,
}

impl Orthogonal {
    /// The product of these axes.
    pub fn new(axes: Vec<AxisIndices>) -> Result<Self, Error> {
        checked_product("the size of the selection", axes.iter().map(AxisIndices::len))?;
        Ok(Self { axes })
    }

    /// Everything in an array of this shape.
    pub fn all(shape: &[u64]) -> Result<Self, Error> {
        Hyperslab::all(shape).map(|all| Self::from(&all))
    }

    /// One entry per axis.
    pub fn axes(&self) -> &[AxisIndices] {
        &self.axes
    }

    /// The shape of the output.
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(AxisIndices::len).collect()
    }

    /// Fails unless an array of this shape has every element selected.
    pub fn check_within(&self, shape: &[u64]) -> Result<(), Error> {
        same_ndim("the selection", self.axes.len(), "the array", shape.len())?;
        let mut axes = self.axes.iter().zip(shape).enumerate();
        match axes.find(|(_, (asked, length))| asked.stop() > **length) {
            None => Ok(()),
            Some((axis, (asked, &length))) => {
                Err(Error::OutOfBounds { axis, index: asked.stop() - 1, length })
            }
        }
    }
}

impl From<&Hyperslab> for Orthogonal {
    fn from(hyperslab: &Hyperslab) -> Self {
        let axes: &[AxisSelection] = hyperslab.axes();
        Self { axes: axes.iter().copied().map(AxisIndices::Regular).collect() }
    }
}

/// What a selection reads of an array, chunk by chunk. Its reads never write the same place of the output,
/// unless
/// segments overlap, which `is_disjoint` tells.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    shape: Vec<u64>,
    element_nbytes: u64,
    segments: Vec<SegmentReads>,
    read_count: u64,
    is_disjoint: bool,
}

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

/// Uncompressed chunks up to this size are fetched whole, so that neighbours come with one request: to read so few
/// bytes in vain costs less than a request.
const SMALL_CHUNK_NBYTES: u64 = 4 << 10;

impl ChunkRead<'_> {
    /// Whether all of the chunk's stored bytes are fetched, whatever part of it is asked for.
    pub fn is_fetched_whole(&self, element_nbytes: u64) -> bool {
        !self.is_plain || self.chunk_element_count.saturating_mul(element_nbytes) <= SMALL_CHUNK_NBYTES
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

/// What a plan costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanTotals {
    /// Chunks touched.
    pub chunk_count: u64,
    /// Of these, never written: they cost nothing.
    pub missing_chunk_count: u64,
    /// Bytes to fetch: of an uncompressed chunk only what is asked for, without what comes along in a request.
    pub fetched_nbytes: u64,
    /// Bytes that come out of the codecs, or are read plain.
    pub decoded_nbytes: u64,
    /// Bytes of the output.
    pub output_nbytes: u64,
}

impl PlanTotals {
    /// What the plans of groups of points cost together; a chunk that two of them touch counts once.
    pub fn of_points(plans: &[ReadPlan], array: &Array, point_count: u64) -> Self {
        let (mut sum, mut seen) = (Self::default(), std::collections::HashSet::new());
        for plan in plans {
            let totals = plan.totals(array);
            sum.fetched_nbytes = sum.fetched_nbytes.saturating_add(totals.fetched_nbytes);
            sum.decoded_nbytes = sum.decoded_nbytes.saturating_add(totals.decoded_nbytes);
            for read in plan.reads().filter(|read| seen.insert((read.segment, read.chunk))) {
                sum.missing_chunk_count += u64::from(state(array, &read) == ChunkState::Missing);
            }
        }
        let output_nbytes = point_count.saturating_mul(array.element.nbytes());
        Self { chunk_count: seen.len() as u64, output_nbytes, ..sum }
    }

    /// Bytes decoded per byte of the output; `None` if nothing is selected.
    #[allow(clippy::cast_precision_loss)] // a ratio is for people and models: 53 bits do
    pub fn read_amplification(&self) -> Option<f64> {
        (self.output_nbytes > 0).then(|| self.decoded_nbytes as f64 / self.output_nbytes as f64)
    }
}

/// Bytes to fetch from one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// Which file of the tree's table; 0 is the opened one.
    pub file: FileIndex,
    /// Where in it.
    pub range: ByteRange,
}

impl ReadPlan {
    /// The plan of a selection of an array.
    pub fn new(array: &Array, selection: &Orthogonal) -> Result<Self, PlanError> {
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
        for (number, segment) in segments.iter().enumerate() {
            if !misses(segment, selection) {
                check_segment(array, array_shape, segment)?;
                plan.add(number, segment, selection)?;
            }
        }
        plan.is_disjoint = plan.segments_are_disjoint(segments);
        Ok(plan)
    }

    /// Fails unless every selection of an array has a plan.
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

    /// Width of an element of the output.
    pub fn element_nbytes(&self) -> u64 {
        self.element_nbytes
    }

    /// How many reads there are.
    pub fn read_count(&self) -> u64 {
        self.read_count
    }

    /// Whether no two segments hold the same element: then reads can be carried out in any order.
    pub fn is_disjoint(&self) -> bool {
        self.is_disjoint
    }

    /// Whether some elements may lie in no segment, so that the array's fill value must be there first.
    pub fn has_gaps(&self) -> bool {
        let covered: u64 = self.segments.iter().map(|reads| reads.element_count).sum();
        !self.is_disjoint || covered != self.element_count()
    }

    /// The reads of each segment, as intervals of their numbers, in the order of the segments.
    pub fn reads_by_segment(&self) -> impl Iterator<Item = std::ops::Range<u64>> + '_ {
        self.segments.iter().map(|reads| reads.first_read..reads.first_read + reads.read_count)
    }

    /// Whether reads are of one segment, so that they never write the same element.
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

    /// What the plan costs; the work is proportional to the chunks touched.
    pub fn totals(&self, array: &Array) -> PlanTotals {
        let mut totals = PlanTotals {
            chunk_count: self.segments.iter().map(|reads| reads.chunk_count).sum(),
            output_nbytes: self.element_count() * self.element_nbytes,
            ..PlanTotals::default()
        };
        let mut last = None;
        for read in self.reads() {
            let is_new = last.replace((read.segment, read.chunk)) != Some((read.segment, read.chunk));
            self.count(&read, array, is_new, &mut totals);
        }
        totals
    }

    fn count(&self, read: &ChunkRead<'_>, array: &Array, is_new: bool, totals: &mut PlanTotals) {
        let stored_nbytes = match state(array, read) {
            ChunkState::Missing => {
                totals.missing_chunk_count += u64::from(is_new);
                return;
            }
            ChunkState::Inline(_) => 0,
            ChunkState::Stored { range, .. } => range.length,
        };
        let asked = read.placement.element_count() * self.element_nbytes;
        let whole = read.chunk_element_count.saturating_mul(self.element_nbytes);
        let (fetched, decoded) = if read.is_plain {
            (asked.min(stored_nbytes), asked)
        } else if is_new {
            (stored_nbytes, whole)
        } else {
            (0, 0) // another part of a chunk that was counted
        };
        totals.fetched_nbytes = totals.fetched_nbytes.saturating_add(fetched);
        totals.decoded_nbytes = totals.decoded_nbytes.saturating_add(decoded);
    }

    /// The requests that fetch everything, merged by a store's policy, in the order of files and offsets.
    pub fn requests(&self, array: &Array, policy: CoalescePolicy) -> Vec<Request> {
        let mut ranges: Vec<Request> = Vec::new();
        for read in self.reads() {
            let ChunkState::Stored { file, range, .. } = state(array, &read) else { continue };
            if read.is_fetched_whole(self.element_nbytes) {
                ranges.push(Request { file, range: read.whole_range(range, self.element_nbytes) });
            } else {
                ranges.extend(self.plain_ranges(&read, range, policy).map(|range| Request { file, range }));
            }
        }
        merged(ranges, policy)
    }

    fn plain_ranges(
        &self,
        read: &ChunkRead<'_>,
        chunk: ByteRange,
        policy: CoalescePolicy,
    ) -> impl Iterator<Item = ByteRange> + use<> {
        let mut ranges: Vec<ByteRange> = Vec::new();
        let element_nbytes = self.element_nbytes;
        let _ = read.placement.rows(|row| {
            let span = (row.count - 1) * row.step + 1;
            let offset = chunk.offset.saturating_add(row.chunk_offset * element_nbytes);
            let range = ByteRange { offset, length: span * element_nbytes };
            match ranges.last_mut() {
                Some(last) if last.offset <= offset && policy.joins(*last, range) => {
                    last.length = last.end().max(range.end()) - last.offset;
                }
                _ => ranges.push(range),
            }
            Ok::<(), ()>(())
        });
        ranges.into_iter()
    }

    /// Whether the segments that take part are pairwise apart: a sweep along the axis on which they start at most
    /// places. Where that takes too long they are taken to overlap, which is slower to read, but as right.
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

/// Requests merged by a store's policy, in the order of files and offsets.
pub fn merged(mut requests: Vec<Request>, policy: CoalescePolicy) -> Vec<Request> {
    requests.sort_unstable();
    let merge = |of_file: &[Request]| {
        let sorted: Vec<ByteRange> = of_file.iter().map(|request| request.range).collect();
        let file = of_file.first().map_or(0, |request| request.file);
        coalesce(&sorted, policy).into_iter().map(move |merged| Request { file, range: merged.range })
    };
    requests.chunk_by(|one, other| one.file == other.file).flat_map(merge).collect()
}

/// The segments of an array; of a virtual one only once it is resolved.
fn segments(array: &Array) -> Result<&[Segment], Unreadable> {
    let segments = array.segments.as_deref().map_err(Unreadable::clone)?;
    if !array.virtual_mappings.is_empty() {
        return Err(Unreadable::unsupported("a virtual array whose sources are not open"));
    }
    Ok(segments)
}

/// What is known of the chunk of a read.
fn state<'a>(array: &'a Array, read: &ChunkRead<'_>) -> ChunkState<'a> {
    let segment = array.segments.as_ref().ok().and_then(|segments| segments.get(read.segment));
    segment.map_or(ChunkState::Missing, |segment| segment.manifest.state(read.chunk))
}
