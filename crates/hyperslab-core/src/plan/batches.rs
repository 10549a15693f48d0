//! Divides the reads of a plan into batches, which one thread fetches together. Batches depend on the plan alone and
//! never on the reader, so the requests of a read can be told beforehand.

use std::ops::Range;

use crate::array::Array;
use crate::array::manifest::ChunkState;
use crate::plan::chunk_read::state;
use crate::plan::coalesce::{BatchLimits, CoalescePolicy};
use crate::plan::read_plan::ReadPlan;

/// How many reads are used to estimate the size of all.
const ESTIMATED_READS: u64 = 16;
/// If fewer than one chunk in this many is stored, only stored chunks are read.
const SPARSENESS: u64 = 8;

/// Reads of a plan that can be executed in any order, in batches. No read occurs twice.
#[derive(Clone, Debug)]
pub struct Batches {
    reads: Reads,
    most: u64,
    decoded_nbytes: u64,
    stored_nbytes_per_read: u64,
}

#[derive(Clone, Debug)]
enum Reads {
    All(Range<u64>),
    /// Strictly increasing. All other reads are of chunks that were never written.
    Stored(Vec<u64>),
}

impl Reads {
    fn count(&self) -> u64 {
        match self {
            Self::All(numbers) => numbers.end - numbers.start,
            Self::Stored(numbers) => numbers.len() as u64,
        }
    }

    fn number(&self, position: u64) -> Option<u64> {
        match self {
            Self::All(numbers) => Some(numbers.start + position).filter(|number| *number < numbers.end),
            Self::Stored(numbers) => numbers.get(usize::try_from(position).ok()?).copied(),
        }
    }
}

impl Batches {
    /// The batches of a plan for an array's store. All reads together; or, if segments overlap, one group for each
    /// segment in order, because the later segment counts.
    pub fn of(plan: &ReadPlan, array: &Array, policy: CoalescePolicy) -> Vec<Self> {
        let together = plan.is_disjoint().then(|| {
            let reads = plan.stored_reads(array, SPARSENESS);
            reads.map_or_else(|| Reads::All(0..plan.read_count()), Reads::Stored)
        });
        let apart = plan.reads_by_segment().filter(|_| !plan.is_disjoint()).map(Reads::All);
        together.into_iter().chain(apart).map(|reads| Self::new(plan, array, reads, policy.batch)).collect()
    }

    fn new(plan: &ReadPlan, array: &Array, reads: Reads, limits: BatchLimits) -> Self {
        let width = plan.element_nbytes();
        let (mut stored, mut decoded, mut count) = (0_u64, 0_u64, 0_u64);
        let first = (0..ESTIMATED_READS).map_while(|position| reads.number(position));
        for read in first.filter_map(|number| plan.read(number)) {
            let asked = read.placement.element_count() * width;
            let whole = read.chunk_element_count.saturating_mul(width);
            let (fetched, made) = match state(array, &read) {
                ChunkState::Stored { range, .. } if !read.is_plain => (range.length, whole),
                ChunkState::Sought { .. } if !read.is_plain => (whole, whole), // roughly an upper bound
                _ => (asked, asked),
            };
            (stored, decoded) = (stored.saturating_add(fetched), decoded.saturating_add(made));
            count += 1;
        }
        let (stored, decoded) = (stored / count.max(1), decoded / count.max(1));
        let fitting = (limits.stored_nbytes / stored.max(1)).min(limits.decoded_nbytes / decoded.max(1));
        let spread = reads.count().div_ceil(limits.side_by_side.max(1));
        Self {
            most: fitting.min(limits.reads).min(spread).max(1),
            decoded_nbytes: decoded.saturating_mul(reads.count()),
            stored_nbytes_per_read: stored,
            reads,
        }
    }

    /// How many reads a batch has at most.
    pub fn most_reads(&self) -> u64 {
        self.most
    }

    /// About how many stored bytes a read takes.
    pub fn stored_nbytes_per_read(&self) -> u64 {
        self.stored_nbytes_per_read
    }

    /// Whether reads of chunks that were never written are skipped. The output must then start as the array's fill
    /// value.
    pub fn leaves_out_missing(&self) -> bool {
        matches!(self.reads, Reads::Stored(_))
    }

    /// How many batches there are.
    pub fn count(&self) -> u64 {
        self.read_count().div_ceil(self.most)
    }

    /// How many reads they contain together.
    pub fn read_count(&self) -> u64 {
        self.reads.count()
    }

    /// About how many bytes all reads decode to.
    pub fn decoded_nbytes(&self) -> u64 {
        self.decoded_nbytes
    }

    /// The positions, among all reads, of the reads of batch number `batch`; empty beyond the last batch.
    pub fn positions(&self, batch: u64) -> Range<u64> {
        let first = batch.saturating_mul(self.most).min(self.read_count());
        first..first.saturating_add(self.most).min(self.read_count())
    }

    /// The number in the plan of the read at a position; `None` beyond the last position. Each position has another
    /// number.
    pub fn number(&self, position: u64) -> Option<u64> {
        self.reads.number(position)
    }

    /// The range from the lowest to the highest read number.
    pub fn span(&self) -> Range<u64> {
        match self.read_count().checked_sub(1) {
            None => 0..0,
            Some(last) => self.number(0).unwrap_or(0)..self.number(last).map_or(0, |number| number + 1),
        }
    }
}
