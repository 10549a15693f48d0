//! The chunks that a selection touches, with the numbers that its cost depends on. It lists no runs and allocates
//! nothing per chunk, so it visits tens of millions of chunks in a second.

use crate::error::Error;
use crate::grid::axis_overlap::AxisOverlap;
use crate::grid::axis_overlap::AxisSums;
use crate::grid::chunk_grid::ChunkGrid;
use crate::grid::overlap::Overlap;
use crate::selection::Selection;

/// One chunk that a selection touches. The numbers are those of its [`Overlap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch<'a> {
    /// The chunk's index in the grid.
    pub chunk_index: &'a [u64],
    /// Its position in the row-major order of chunks.
    pub linear: u64,
    /// How many elements are shared.
    pub element_count: u64,
    /// How many elements of the chunk lie inside the array.
    pub valid_element_count: u64,
    /// In how many runs the shared elements are copied.
    pub run_count: u64,
    /// The number of `Overlap::block_runs`.
    pub block_run_count: u64,
}

/// The numbers for the axes up to one of them, taken together.
#[derive(Clone, Copy)]
struct Prefix {
    linear: u64,
    elements: u64,
    valid: u64,
    joins: u64,
    block_joins: u64,
}

impl Prefix {
    const START: Self = Self { linear: 0, elements: 1, valid: 1, joins: 0, block_joins: 0 };

    /// The same with one more axis: see `AxisSums::run_count`.
    fn with(self, chunk: u64, sums: AxisSums, grid_length: u64) -> Self {
        Self {
            linear: self.linear * grid_length + chunk,
            elements: self.elements * sums.elements,
            valid: self.valid * sums.valid,
            joins: self.joins * sums.wraps + self.elements * sums.adjacent,
            block_joins: self.block_joins * sums.wholes + self.elements * sums.block_adjacent,
        }
    }

    fn touch(self, chunk_index: &[u64]) -> Touch<'_> {
        Touch {
            chunk_index,
            linear: self.linear,
            element_count: self.elements,
            valid_element_count: self.valid,
            run_count: self.elements - self.joins,
            block_run_count: self.elements - self.block_joins,
        }
    }
}

fn sums(chunk: &AxisOverlap, splits_pairs: bool) -> AxisSums {
    let sums = chunk.sums();
    if splits_pairs && chunk.is_cut_pair() { AxisSums { block_adjacent: 0, ..sums } } else { sums }
}

impl ChunkGrid {
    /// Visits each chunk that a selection touches, in row-major order of the chunks. Stops at the first error.
    pub fn each_touch<E: From<Error>>(
        &self,
        selection: &Selection,
        mut visit: impl FnMut(&Touch<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Selection::Hyperslab(hyperslab) = selection else {
            return (self.overlaps(selection)?).try_for_each(|overlap| visit(&self.touch(&overlap)?));
        };
        hyperslab.check_within(self.shape())?;
        let overlaps = self.axis_overlaps(hyperslab);
        let has_gaps = overlaps.iter().any(|axis| axis.first().is_some_and(AxisOverlap::has_gaps));
        let axes: Vec<Vec<(u64, AxisSums)>> = (overlaps.iter().enumerate())
            .map(|(axis, chunks)| {
                let splits_pairs = has_gaps && axis + 1 < overlaps.len();
                chunks.iter().map(|chunk| (chunk.chunk(), sums(chunk, splits_pairs))).collect()
            })
            .collect();
        if axes.iter().any(Vec::is_empty) {
            return Ok(());
        }
        let grid_shape = self.grid_shape();
        let (mut positions, mut chunk_index) = (vec![0; axes.len()], vec![0; axes.len()]);
        let mut prefixes = vec![Prefix::START; axes.len() + 1];
        let mut turned = 0;
        loop {
            for axis in turned..axes.len() {
                let (chunk, sums) = axes[axis][positions[axis]];
                chunk_index[axis] = chunk;
                prefixes[axis + 1] = prefixes[axis].with(chunk, sums, grid_shape[axis]);
            }
            visit(&prefixes[axes.len()].touch(&chunk_index))?;
            // The fastest axis with a chunk left. The faster axes start again.
            let Some(next) = (0..axes.len()).rev().find(|&axis| positions[axis] + 1 < axes[axis].len())
            else {
                return Ok(());
            };
            positions[next] += 1;
            positions[next + 1..].fill(0);
            turned = next;
        }
    }

    fn touch<'a>(&self, overlap: &'a Overlap) -> Result<Touch<'a>, Error> {
        Ok(Touch {
            chunk_index: overlap.chunk_index(),
            linear: self.linear_index(overlap.chunk_index())?,
            element_count: overlap.element_count(),
            valid_element_count: overlap.valid_element_count(),
            run_count: overlap.run_count(),
            block_run_count: overlap.block_runs().count() as u64,
        })
    }
}
