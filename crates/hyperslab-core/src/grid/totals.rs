//! Sums over every chunk that a selection touches. For a hyperslab, no chunk is visited.

use crate::error::Error;
use crate::grid::axis_overlap::AxisSums;
use crate::grid::chunk_grid::ChunkGrid;
use crate::grid::overlap::Overlaps;
use crate::selection::Selection;
use crate::selection::hyperslab::Hyperslab;

/// What a selection touches and copies in a grid: chunks, runs and elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SelectionTotals {
    /// Chunks that hold at least one selected element.
    pub chunk_count: u64,
    /// Runs in all of these chunks.
    pub run_count: u64,
    /// Elements selected.
    pub element_count: u64,
    /// Elements in these chunks as stored: all are decoded to read the selection.
    pub decoded_element_count: u64,
    /// Elements of these chunks that lie inside the array.
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

    /// Decoded elements per selected element; `None` if nothing is selected.
    #[allow(clippy::cast_precision_loss)] // 53 bits are enough for a ratio
    pub fn read_amplification(&self) -> Option<f64> {
        (self.element_count > 0).then(|| self.decoded_element_count as f64 / self.element_count as f64)
    }
}

impl ChunkGrid {
    /// The sums over every chunk that a selection touches.
    pub fn totals(&self, selection: &Selection) -> Result<SelectionTotals, Error> {
        selection.check_within(self.shape())?;
        Ok(match selection {
            Selection::Hyperslab(hyperslab) => SelectionTotals::of_hyperslab(self, hyperslab),
            Selection::Points(points) => {
                SelectionTotals::of_overlaps(self, Overlaps::of_points(self, points))
            }
        })
    }
}
