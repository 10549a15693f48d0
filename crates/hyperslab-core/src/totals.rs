//! Sums over every chunk that a selection touches, for a hyperslab without visiting the chunks.

use crate::grid::ChunkGrid;
use crate::hyperslab::Hyperslab;
use crate::overlap::{AxisOverlap, Overlaps};

/// What a selection costs a grid, in chunks, runs and elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SelectionTotals {
    /// Chunks that hold at least one selected element.
    pub chunk_count: u64,
    /// Runs over all of these chunks.
    pub run_count: u64,
    /// Elements selected.
    pub element_count: u64,
    /// Elements in these chunks as they are stored, so decoded to read the selection.
    pub decoded_element_count: u64,
    /// Elements of these chunks inside the array.
    pub valid_element_count: u64,
}

impl SelectionTotals {
    pub(crate) fn of_hyperslab(grid: &ChunkGrid, hyperslab: &Hyperslab) -> Self {
        let axes: Vec<AxisSums> =
            grid.axis_overlaps(hyperslab).iter().map(|overlaps| AxisSums::over(overlaps)).collect();
        let chunk_count = axes.iter().map(|axis| axis.chunks).product();
        Self {
            chunk_count,
            run_count: AxisSums::run_count(axes.iter().copied()),
            element_count: axes.iter().map(|axis| axis.elements).product(),
            decoded_element_count: chunk_count * grid.chunk_element_count(),
            valid_element_count: axes.iter().map(|axis| axis.valid).product(),
        }
    }

    pub(crate) fn of_overlaps(grid: &ChunkGrid, overlaps: Overlaps) -> Self {
        overlaps.fold(Self::default(), |totals, overlap| Self {
            chunk_count: totals.chunk_count + 1,
            run_count: totals.run_count + overlap.run_count(),
            element_count: totals.element_count + overlap.element_count(),
            decoded_element_count: totals.decoded_element_count + grid.chunk_element_count(),
            valid_element_count: totals.valid_element_count + overlap.valid_element_count(),
        })
    }

    /// Elements decoded per element selected; `None` if nothing is selected.
    #[allow(clippy::cast_precision_loss)] // a ratio is for people and models: 53 bits do
    pub fn read_amplification(&self) -> Option<f64> {
        (self.element_count > 0).then(|| self.decoded_element_count as f64 / self.element_count as f64)
    }
}

/// What the run count of a hyperslab needs to know about one axis, summed over chunks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AxisSums {
    pub(crate) chunks: u64,
    pub(crate) valid: u64,
    pub(crate) elements: u64,
    /// Elements that directly follow another one on this axis.
    pub(crate) adjacent: u64,
    /// The same as `Overlap::block_runs` has it.
    pub(crate) block_adjacent: u64,
    /// Chunks in which the end of this axis is followed, in both buffers, by the start of the next line.
    pub(crate) wraps: u64,
    /// Chunks in which this axis is selected whole, without gaps: the least reason for a wrap.
    pub(crate) wholes: u64,
}

impl AxisSums {
    fn over(overlaps: &[AxisOverlap]) -> Self {
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

    /// Every element starts a run, except those that join the element before them.
    ///
    /// In row-major order the step to an element advances one axis and resets all faster ones. The element
    /// joins if it is adjacent on the advancing axis and every faster axis wraps; slower axes do not matter.
    /// So the joins are, summed over the advancing axis d,
    /// `Π(e < d) elements[e] · adjacent[d] · Π(e > d) wraps[e]`, and because each factor
    /// belongs to one axis, the formula holds for one chunk and for the sums over a product of chunks alike.
    pub(crate) fn run_count(axes: impl Iterator<Item = Self>) -> u64 {
        let (elements, joins) = axes.fold((1, 0), |(elements, joins), axis| {
            (elements * axis.elements, joins * axis.wraps + elements * axis.adjacent)
        });
        elements - joins
    }
}
