//! What one axis of a hyperslab shares with the chunks of a grid, and what counting runs needs to know about it.

use crate::grid::chunk_grid::ChunkGrid;
use crate::selection::axis::AxisSelection;
use crate::selection::hyperslab::Hyperslab;

/// Elements that are contiguous in a chunk's buffer and in the output buffer: one `memcpy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Where the run starts in the chunk's buffer, in elements.
    pub chunk_offset: u64,
    /// Where the run starts in the output buffer, in elements.
    pub buffer_offset: u64,
    /// How many elements it has.
    pub length: u64,
}

impl Run {
    pub(crate) fn scaled(self, chunk_stride: u64, buffer_stride: u64) -> Self {
        Self {
            chunk_offset: self.chunk_offset * chunk_stride,
            buffer_offset: self.buffer_offset * buffer_stride,
            length: self.length,
        }
    }

    pub(crate) fn is_followed_by(&self, next: &Self) -> bool {
        self.chunk_offset + self.length == next.chunk_offset
            && self.buffer_offset + self.length == next.buffer_offset
    }
}

/// What one axis of a hyperslab shares with one chunk's interval on that axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisOverlap {
    selected: AxisSelection,
    chunk: u64,
    pub(crate) chunk_length: u64,
    pub(crate) valid_length: u64,
    /// The positions in the selection, and so on the output's axis, that lie in the chunk: `first..stop`.
    first: u64,
    stop: u64,
}

impl AxisOverlap {
    /// The overlap of `selected` with chunk number `chunk`. Touching blocks of `selected` must have been merged.
    pub(crate) fn new(selected: AxisSelection, chunk: u64, length: u64, chunk_length: u64) -> Self {
        let start = chunk * chunk_length;
        let valid_length = chunk_length.min(length - start);
        let first = selected.position_of(start);
        let stop = selected.position_of(start + valid_length);
        Self { selected, chunk, chunk_length, valid_length, first, stop }
    }

    /// The overlaps with every chunk that is touched. Each one starts the search for the next.
    pub(crate) fn all(selected: AxisSelection, length: u64, chunk_length: u64) -> Vec<Self> {
        let selected = selected.merged();
        let at = |position: u64| {
            (position < selected.len())
                .then(|| Self::new(selected, selected.nth(position) / chunk_length, length, chunk_length))
        };
        std::iter::successors(at(0), |overlap| at(overlap.stop)).collect()
    }

    pub(crate) fn chunk(&self) -> u64 {
        self.chunk
    }

    pub(crate) fn element_count(&self) -> u64 {
        self.stop - self.first
    }

    /// How many elements the output has on this axis.
    pub(crate) fn buffer_length(&self) -> u64 {
        self.selected.len()
    }

    /// Where the element at `position` in the selection lies in the chunk.
    fn chunk_offset(&self, position: u64) -> u64 {
        self.selected.nth(position) - self.chunk * self.chunk_length
    }

    /// Whether this axis is selected completely and in order, and neither buffer has anything else on it.
    pub(crate) fn is_whole(&self) -> bool {
        self.element_count() == self.chunk_length && self.chunk_length == self.buffer_length()
    }

    /// Every shared element as a run of its own.
    pub(crate) fn elements(&self) -> Vec<Run> {
        let run_at =
            |position| Run { chunk_offset: self.chunk_offset(position), buffer_offset: position, length: 1 };
        (self.first..self.stop).map(run_at).collect()
    }

    /// The shared parts of the selection's blocks.
    pub(crate) fn blocks(&self) -> Vec<Run> {
        let block = self.selected.block();
        let run_at = |position: u64| {
            (position < self.stop).then(|| Run {
                chunk_offset: self.chunk_offset(position),
                buffer_offset: position,
                length: (block - position % block).min(self.stop - position),
            })
        };
        std::iter::successors(run_at(self.first), |run| run_at(run.buffer_offset + run.length)).collect()
    }

    /// Whether the whole selection has gaps on this axis, in this chunk or not.
    pub(crate) fn has_gaps(&self) -> bool {
        !self.selected.is_contiguous()
    }

    /// Whether the chunk holds two indices of a longer interval.
    pub(crate) fn is_cut_pair(&self) -> bool {
        self.element_count() == 2 && self.buffer_length() > 2 && !self.has_gaps()
    }

    fn block_count(&self) -> u64 {
        if self.element_count() == 0 {
            return 0;
        }
        (self.stop - 1) / self.selected.block() - self.first / self.selected.block() + 1
    }

    /// Whether in both buffers the last element on this axis is followed by the first element of the next line.
    fn wraps(&self) -> bool {
        self.element_count() > 0
            && self.element_count() == self.buffer_length()
            && self.chunk_offset(self.first) == 0
            && self.chunk_offset(self.stop - 1) == self.chunk_length - 1
    }

    pub(crate) fn sums(&self) -> AxisSums {
        AxisSums {
            chunks: 1,
            valid: self.valid_length,
            elements: self.element_count(),
            adjacent: self.element_count() - self.block_count(),
            block_adjacent: self.element_count() - self.block_count(),
            wraps: u64::from(self.wraps()),
            wholes: u64::from(self.is_whole()),
        }
    }
}

/// What counting the runs of a hyperslab needs to know about one axis, summed over chunks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AxisSums {
    pub(crate) chunks: u64,
    pub(crate) valid: u64,
    pub(crate) elements: u64,
    /// Elements that directly follow another element on this axis.
    pub(crate) adjacent: u64,
    /// The same, with the rules of `Overlap::block_runs`.
    pub(crate) block_adjacent: u64,
    /// Chunks in which the end of this axis is followed, in both buffers, by the start of the next line.
    pub(crate) wraps: u64,
    /// Chunks in which this axis is selected completely, without gaps: the minimum for a wrap.
    pub(crate) wholes: u64,
}

impl AxisSums {
    pub(crate) fn over(overlaps: &[AxisOverlap]) -> Self {
        overlaps.iter().map(AxisOverlap::sums).fold(Self::default(), |total, axis| Self {
            chunks: total.chunks + axis.chunks,
            valid: total.valid + axis.valid,
            elements: total.elements + axis.elements,
            adjacent: total.adjacent + axis.adjacent,
            block_adjacent: total.block_adjacent + axis.block_adjacent,
            wraps: total.wraps + axis.wraps,
            wholes: total.wholes + axis.wholes,
        })
    }

    /// Every element starts a run, except elements that join the one before them.
    ///
    /// In row-major order, the step to an element advances one axis and resets all faster ones. The element joins if it
    /// is adjacent on the advancing axis and every faster axis wraps; slower axes do not matter. So the number of
    /// joins, summed over the advancing axis d, is `Π(e < d) elements[e] · adjacent[d] · Π(e > d) wraps[e]`. Each
    /// factor belongs to one axis, so the formula holds both for one chunk and for sums over a product of chunks.
    pub(crate) fn run_count(axes: impl Iterator<Item = Self>) -> u64 {
        let (elements, joins) = axes.fold((1, 0), |(elements, joins), axis| {
            (elements * axis.elements, joins * axis.wraps + elements * axis.adjacent)
        });
        elements - joins
    }
}

impl ChunkGrid {
    /// For each axis, the overlap with each chunk touched. The hyperslab touches the product of these.
    pub(crate) fn axis_overlaps(&self, hyperslab: &Hyperslab) -> Vec<Vec<AxisOverlap>> {
        (hyperslab.axes().iter().zip(self.shape()).zip(self.chunk_shape()))
            .map(|((&axis, &length), &chunk_length)| AxisOverlap::all(axis, length, chunk_length))
            .collect()
    }
}
