//! Merges many small byte ranges into fewer, larger requests. Pure: the store's policy is an argument.

use crate::byte_range::ByteRange;
use crate::plan::defaults::FIRST_IN_FLIGHT;

/// How requests to a store should be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoalescePolicy {
    /// The most bytes fetched in vain between two ranges. Uncompressed chunks up to this size are fetched whole.
    pub gap_nbytes: u64,
    /// Ranges are not merged beyond this size. A single larger range stays whole.
    pub most_nbytes: u64,
    /// A larger request is split into several of this size and a rest.
    pub part_nbytes: u64,
    /// How reads are grouped into batches.
    pub batch: BatchLimits,
}

/// The size of a batch: reads that are fetched together and then decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// The limit of stored bytes.
    pub stored_nbytes: u64,
    /// The limit of decoded bytes, so threads have several batches to share.
    pub decoded_nbytes: u64,
    /// The limit of reads.
    pub reads: u64,
    /// Few reads are spread over this many batches.
    pub side_by_side: u64,
}

impl CoalescePolicy {
    /// For local files: a request costs about as much as copying this many bytes.
    pub const LOCAL: Self = Self {
        gap_nbytes: 4 << 10,
        most_nbytes: 4 << 20,
        part_nbytes: 0x7fff_f000, // the most that Linux reads in one call
        batch: BatchLimits {
            stored_nbytes: 256 << 10,
            decoded_nbytes: 512 << 10,
            reads: 256,
            side_by_side: 1,
        },
    };
    /// For remote files: a request costs as much as many kilobytes.
    pub const REMOTE: Self = Self {
        gap_nbytes: 64 << 10,
        most_nbytes: 16 << 20,
        part_nbytes: 2 << 20,
        batch: BatchLimits {
            stored_nbytes: 2 << 20,
            decoded_nbytes: u64::MAX,
            reads: 256,
            side_by_side: FIRST_IN_FLIGHT as u64,
        },
    };

    /// Whether `next`, which does not start before `held`, should be merged into it.
    pub fn joins(&self, held: ByteRange, next: ByteRange) -> bool {
        let gap = next.offset.saturating_sub(held.end());
        let nbytes = next.end().max(held.end()) - held.offset;
        gap <= self.gap_nbytes && nbytes <= self.most_nbytes
    }
}

/// One request, and which of the ranges it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The range to fetch.
    pub range: ByteRange,
    /// The ranges inside, by their positions in the given list.
    pub members: std::ops::Range<usize>,
}

/// The requests that fetch a range.
pub fn parts(range: ByteRange, part_nbytes: u64) -> impl Iterator<Item = ByteRange> {
    let part_nbytes = part_nbytes.max(1);
    (0..range.length.div_ceil(part_nbytes)).map(move |number| {
        let start = number * part_nbytes;
        ByteRange {
            offset: range.offset.saturating_add(start),
            length: part_nbytes.min(range.length - start),
        }
    })
}

/// Requests for ranges that are sorted by offset. Equal and overlapping ranges are fetched once.
pub fn coalesce(sorted: &[ByteRange], policy: CoalescePolicy) -> Vec<Merged> {
    let mut merged: Vec<Merged> = Vec::new();
    for (position, &range) in sorted.iter().enumerate() {
        match merged.last_mut() {
            Some(last) if policy.joins(last.range, range) => {
                last.range.length = range.end().max(last.range.end()) - last.range.offset;
                last.members.end = position + 1;
            }
            _ => merged.push(Merged { range, members: position..position + 1 }),
        }
    }
    merged
}
