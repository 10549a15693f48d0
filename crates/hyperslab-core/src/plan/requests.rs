//! The requests of a plan and what it costs. They are computed by the same steps as reading.

use std::collections::HashSet;

use crate::array::Array;
use crate::array::manifest::{ChunkState, FileIndex};
use crate::byte_range::ByteRange;
use crate::plan::batches::Batches;
use crate::plan::chunk_read::{ChunkRead, state};
use crate::plan::coalesce::{CoalescePolicy, coalesce, parts};
use crate::plan::read_plan::ReadPlan;

/// Bytes to fetch from one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// The file's number in the tree's table; 0 is the opened file.
    pub file: FileIndex,
    /// The range in it.
    pub range: ByteRange,
}

/// What a plan costs if no chunk is in memory yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanTotals {
    /// How many chunks are touched.
    pub chunk_count: u64,
    /// How many of these were never written. They cost nothing.
    pub missing_chunk_count: u64,
    /// How many requests are made.
    pub request_count: u64,
    /// Bytes of these requests.
    pub fetched_nbytes: u64,
    /// Bytes that the codecs produce, or that are read of uncompressed chunks.
    pub decoded_nbytes: u64,
    /// Bytes of the output.
    pub output_nbytes: u64,
}

impl PlanTotals {
    /// The total cost of the plans of groups of points. A chunk that two groups touch counts once, but its requests and
    /// its decoding count as often as they happen.
    pub fn of_points(plans: &[ReadPlan], array: &Array, point_count: u64, policy: CoalescePolicy) -> Self {
        let (mut sum, mut seen) = (Self::default(), HashSet::new());
        for plan in plans {
            let totals = plan.totals(array, policy);
            sum.request_count = sum.request_count.saturating_add(totals.request_count);
            sum.fetched_nbytes = sum.fetched_nbytes.saturating_add(totals.fetched_nbytes);
            sum.decoded_nbytes = sum.decoded_nbytes.saturating_add(totals.decoded_nbytes);
            for read in plan.reads().filter(|read| seen.insert((read.segment, read.chunk))) {
                sum.missing_chunk_count += u64::from(state(array, &read) == ChunkState::Missing);
            }
        }
        let output_nbytes = point_count.saturating_mul(array.element.nbytes());
        Self { chunk_count: seen.len() as u64, output_nbytes, ..sum }
    }

    /// Decoded bytes per output byte; `None` if nothing is selected.
    #[allow(clippy::cast_precision_loss)] // 53 bits are enough for a ratio
    pub fn read_amplification(&self) -> Option<f64> {
        (self.output_nbytes > 0).then(|| self.decoded_nbytes as f64 / self.output_nbytes as f64)
    }
}

impl ReadPlan {
    /// What the plan costs. The work grows with the requests, and with the chunks touched unless few of many are
    /// stored.
    pub fn totals(&self, array: &Array, policy: CoalescePolicy) -> PlanTotals {
        let mut totals = PlanTotals {
            chunk_count: self.chunk_count(),
            output_nbytes: self.element_count() * self.element_nbytes(),
            ..PlanTotals::default()
        };
        let mut stored_chunk_count = 0;
        for batches in Batches::of(self, array, policy) {
            for number in (0..batches.read_count()).filter_map(|position| batches.number(position)) {
                let Some(read) = self.read(number) else { continue };
                if state(array, &read) == ChunkState::Missing {
                    continue;
                }
                stored_chunk_count += u64::from(self.begins_chunk(number));
                let elements =
                    if read.is_plain { read.placement.element_count() } else { read.chunk_element_count };
                let decoded = elements.saturating_mul(self.element_nbytes());
                totals.decoded_nbytes = totals.decoded_nbytes.saturating_add(decoded);
            }
            self.requests_of(&batches, array, policy, &mut |_| false, &mut |_, range| {
                // Counted, not made one by one: a damaged table can claim any length.
                let count = range.length.div_ceil(policy.part_nbytes.max(1));
                totals.request_count = totals.request_count.saturating_add(count);
                totals.fetched_nbytes = totals.fetched_nbytes.saturating_add(range.length);
            });
        }
        totals.missing_chunk_count = totals.chunk_count.saturating_sub(stored_chunk_count);
        totals
    }

    /// The requests that a read makes of stores with this policy, if no chunk is in memory, in the order of files and
    /// offsets. The number of threads makes no difference.
    pub fn requests(&self, array: &Array, policy: CoalescePolicy) -> Vec<Request> {
        self.requests_unless(array, policy, |_, _| false)
    }

    /// The same if some chunks are in memory. `is_kept` is called for each read of a whole stored chunk, with the
    /// number of bytes that are decoded together with it.
    pub fn requests_unless(
        &self,
        array: &Array,
        policy: CoalescePolicy,
        mut is_kept: impl FnMut(&ChunkRead<'_>, u64) -> bool,
    ) -> Vec<Request> {
        let mut requests = Vec::new();
        for batches in Batches::of(self, array, policy) {
            let decoded_nbytes = batches.decoded_nbytes();
            let mut is_kept = |read: &ChunkRead<'_>| is_kept(read, decoded_nbytes);
            self.requests_of(&batches, array, policy, &mut is_kept, &mut |file, range| {
                requests.extend(parts(range, policy.part_nbytes).map(|range| Request { file, range }));
            });
        }
        requests.sort_unstable();
        requests
    }

    fn requests_of(
        &self,
        batches: &Batches,
        array: &Array,
        policy: CoalescePolicy,
        is_kept: &mut impl FnMut(&ChunkRead<'_>) -> bool,
        each: &mut impl FnMut(FileIndex, ByteRange),
    ) {
        let width = self.element_nbytes();
        let mut whole: Vec<Request> = Vec::new();
        for batch in 0..batches.count() {
            for number in batches.positions(batch).filter_map(|position| batches.number(position)) {
                let Some(read) = self.read(number) else { continue };
                let ChunkState::Stored { file, range, .. } = state(array, &read) else { continue };
                if read.is_fetched_whole(width, policy) {
                    if !is_kept(&read) {
                        whole.push(Request { file, range: read.whole_range(range, width) });
                    }
                    continue;
                }
                let Ok(()) = read.placement.row_groups(range, width, policy, |_, range| {
                    each(file, range);
                    Ok::<(), std::convert::Infallible>(())
                });
            }
            whole.sort_unstable();
            for of_file in whole.chunk_by(|one, other| one.file == other.file) {
                let sorted: Vec<ByteRange> = of_file.iter().map(|request| request.range).collect();
                for merged in coalesce(&sorted, policy) {
                    each(of_file[0].file, merged.range);
                }
            }
            whole.clear();
        }
    }
}
