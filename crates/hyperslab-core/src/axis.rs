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
    /// A validated axis; `axis` is its number, for the message of an error.
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

    /// The index at `position` in the selection, which must be below `len()`.
    pub(crate) fn nth(&self, position: u64) -> u64 {
        self.start + position / self.block * self.stride + position % self.block
    }

    /// How many indices below `bound` are selected; also the position of the first one not below it.
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
