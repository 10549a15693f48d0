//! Fewer, larger requests out of many small byte ranges: pure, with the store's policy as an argument.

use crate::byte_range::ByteRange;

/// What a store prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoalescePolicy {
    /// Bytes that may be fetched in vain between two ranges.
    pub gap_nbytes: u64,
    /// Ranges are not merged beyond this; a single larger one stays whole.
    pub most_nbytes: u64,
}

impl CoalescePolicy {
    /// For files on this machine: a request costs about as much as copying these few bytes.
    pub const LOCAL: Self = Self { gap_nbytes: 4 << 10, most_nbytes: 4 << 20 };
    /// For files far away: a request costs as much as many kilobytes.
    pub const REMOTE: Self = Self { gap_nbytes: 64 << 10, most_nbytes: 16 << 20 };

    /// Whether `next`, which does not start before `held`, should come with it.
    pub fn joins(&self, held: ByteRange, next: ByteRange) -> bool {
        let gap = next.offset.saturating_sub(held.end());
        let nbytes = next.end().max(held.end()) - held.offset;
        gap <= self.gap_nbytes && nbytes <= self.most_nbytes
    }
}

/// One request, and which of the ranges it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// What to fetch.
    pub range: ByteRange,
    /// The ranges inside, by their places in the list that was given.
    pub members: std::ops::Range<usize>,
}

/// Requests for ranges that are sorted by offset; equal and overlapping ones are fetched once.
pub fn coalesce(sorted: &[ByteRange], policy: CoalescePolicy) -> Vec<Merged> {
    let mut merged: Vec<Merged> = Vec::new();
    for (place, &range) in sorted.iter().enumerate() {
        match merged.last_mut() {
            Some(last) if policy.joins(last.range, range) => {
                last.range.length = range.end().max(last.range.end()) - last.range.offset;
                last.members.end = place + 1;
            }
            _ => merged.push(Merged { range, members: place..place + 1 }),
        }
    }
    merged
}
