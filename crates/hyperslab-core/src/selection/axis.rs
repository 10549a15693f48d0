//! One axis of a hyperslab: blocks of indices at a regular distance.

use crate::error::{Error, MAX_ELEMENT_COUNT};

/// The indices `start + i * stride + j` for every `i < count` and `j < block`, in increasing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AxisSelection {
    start: u64,
    stride: u64,
    count: u64,
    block: u64,
}

impl AxisSelection {
    /// Only the first index.
    pub(crate) const FIRST: Self = Self { start: 0, stride: 1, count: 1, block: 1 };

    /// A validated axis. Errors call it axis number `axis`.
    pub fn new(axis: usize, start: u64, stride: u64, count: u64, block: u64) -> Result<Self, Error> {
        if block == 0 {
            return Err(Error::Zero { what: "block", axis });
        }
        if stride == 0 {
            return Err(Error::Zero { what: "stride", axis });
        }
        if stride < block && count > 1 {
            return Err(Error::OverlappingBlocks { axis, stride, block });
        }
        (count.saturating_sub(1))
            .checked_mul(stride)
            .and_then(|reach| reach.checked_add(block)?.checked_add(start))
            .filter(|&stop| stop <= MAX_ELEMENT_COUNT)
            .ok_or(Error::TooLarge { what: "the last index of the hyperslab" })?;
        Ok(Self { start, stride, count, block })
    }

    /// The first index selected.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The distance between the starts of neighbouring blocks.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// How many blocks there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many indices each block has.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// How many indices are selected.
    pub fn len(&self) -> u64 {
        self.count * self.block
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One more than the last index selected; `start` if there is none.
    pub fn stop(&self) -> u64 {
        if self.is_empty() { self.start } else { self.start + (self.count - 1) * self.stride + self.block }
    }

    /// Whether the indices selected are one interval.
    pub fn is_contiguous(&self) -> bool {
        self.count <= 1 || self.stride == self.block
    }

    /// The index at `position` in the selection. The position must be below `len()`.
    pub(crate) fn nth(&self, position: u64) -> u64 {
        self.start + position / self.block * self.stride + position % self.block
    }

    /// The `count` indices starting at position `start`.
    pub fn interval(axis: usize, start: u64, count: u64) -> Result<Self, Error> {
        Self::new(axis, start, count.max(1), u64::from(count > 0), count.max(1))
    }

    /// The position of an index in the selection, if it is selected.
    pub(crate) fn position_at(&self, index: u64) -> Option<u64> {
        let position = self.position_of(index);
        (position < self.len() && self.nth(position) == index).then_some(position)
    }

    /// The largest number of positions from the first one, at most `count`, that are again blocks at a regular
    /// distance.
    pub(crate) fn even(&self, count: u64) -> u64 {
        if count > self.block { count - count % self.block } else { count }
    }

    /// The first `count` positions, which must be even, and the rest. Each is blocks at a regular distance.
    pub(crate) fn split(self, count: u64) -> (Self, [Self; 2]) {
        let none = Self { count: 0, ..self };
        if count >= self.block {
            let blocks = count / self.block;
            let rest = Self { start: self.start + blocks * self.stride, count: self.count - blocks, ..self };
            return (Self { count: blocks, ..self }, [if rest.is_empty() { none } else { rest }, none]);
        }
        let part = |start: u64, block: u64| Self { start, stride: block.max(1), count: 1, block };
        let others = Self { start: self.start.saturating_add(self.stride), count: self.count - 1, ..self };
        (part(self.start, count), [part(self.start + count, self.block - count), others])
    }

    /// The same indices, counted from `to` instead of `from`. No index may be below `from`.
    pub(crate) fn moved(self, from: u64, to: u64) -> Result<Self, Error> {
        Self::new(0, self.start - from + to, self.stride, self.count, self.block)
    }

    /// Whether no index is in both. `true` is certain, `false` is not.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        if self.stop() <= other.start || other.stop() <= self.start || self.is_empty() || other.is_empty() {
            return true;
        }
        // Blocks repeat with the greatest common divisor of the strides. If they are apart within it, they are apart
        // everywhere.
        let period = if self.count == 1 || other.count == 1 {
            match (self.count, other.count) {
                (1, 1) => return false,
                (1, _) => return self.is_in_gap_of(other),
                _ => return other.is_in_gap_of(self),
            }
        } else {
            divisor(self.stride, other.stride)
        };
        let ahead = |one: &Self, two: &Self| {
            let distance = (two.start % period + period - one.start % period) % period;
            one.block <= distance && distance + two.block <= period
        };
        ahead(self, other) || ahead(other, self)
    }

    /// Whether the single block of this selection overlaps no block of another.
    fn is_in_gap_of(&self, other: &Self) -> bool {
        other.position_of(self.start) == other.position_of(self.stop())
    }

    /// How many indices below `bound` are selected. This is also the position of the first index not below it.
    pub(crate) fn position_of(&self, bound: u64) -> u64 {
        let distance = bound.saturating_sub(self.start);
        let whole_blocks = distance / self.stride;
        if whole_blocks >= self.count {
            return self.len();
        }
        whole_blocks * self.block + (distance % self.stride).min(self.block)
    }

    /// The same indices, with touching blocks merged into one.
    pub(crate) fn merged(self) -> Self {
        if self.is_empty() || !self.is_contiguous() {
            return self;
        }
        Self { stride: self.len(), count: 1, block: self.len(), ..self }
    }
}

/// The greatest common divisor.
fn divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn all(selected: AxisSelection) -> Vec<u64> {
        (0..selected.len()).map(|position| selected.nth(position)).collect()
    }

    #[test]
    fn splits_keep_every_index() {
        for (stride, count, block) in [(5, 4, 3), (1, 9, 1), (4, 3, 4), (9, 1, 7), (3, 5, 1)] {
            let whole = AxisSelection::new(0, 2, stride, count, block).unwrap();
            for wanted in 1..=whole.len() {
                let even = whole.even(wanted);
                assert!(0 < even && even <= wanted);
                let (head, rest) = whole.split(even);
                assert_eq!(head.len(), even);
                let parts = [head, rest[0], rest[1]];
                let joined: Vec<u64> = parts.into_iter().flat_map(all).collect();
                assert_eq!(joined, all(whole), "{whole:?} at {even}");
            }
        }
    }

    #[test]
    fn selections_said_to_be_apart_share_no_index() {
        let mut selections = Vec::new();
        for (start, stride, count) in
            (0..5).flat_map(|a| (1..6).flat_map(move |b| (1..4).map(move |c| (a, b, c))))
        {
            selections.extend(
                (1..=stride).filter_map(|block| AxisSelection::new(0, start, stride, count, block).ok()),
            );
        }
        for (one, other) in selections.iter().flat_map(|one| selections.iter().map(move |other| (one, other)))
        {
            let shared = all(*one).iter().any(|&index| other.position_at(index).is_some());
            assert!(!(one.is_apart_from(other) && shared), "{one:?} {other:?}");
            if one.count() == 1 || other.count() == 1 || one.stride() == other.stride() && one.count() > 2 {
                let reach = one.stop().min(other.stop()) > one.start().max(other.start()) + one.stride();
                assert!(shared || one.is_apart_from(other) || !reach, "{one:?} {other:?}");
            }
        }
    }
}
