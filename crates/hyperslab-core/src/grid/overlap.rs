//! What a selection shares with a chunk: which elements, and in how many runs they are copied.
//!
//! A **run** is a maximal sequence of elements, consecutive in the selection's order, whose offsets in the
//! chunk's buffer (stored chunk shape, C order) and in the output buffer (selection's shape, C order) both
//! advance by one. `run_count` is its closed form; `Runs` lists the runs themselves.

use crate::error::Error;
use crate::grid::axis_overlap::{AxisOverlap, AxisSums, Run};
use crate::grid::chunk_grid::ChunkGrid;
use crate::grid::runs::Runs;
use crate::row_major::{self, Odometer};
use crate::selection::Selection;
use crate::selection::hyperslab::Hyperslab;
use crate::selection::points::Points;

/// What a selection shares with one chunk.
#[derive(Clone, Debug)]
pub struct Overlap {
    chunk_index: Vec<u64>,
    valid_element_count: u64,
    elements: Elements,
}

#[derive(Clone, Debug)]
enum Elements {
    /// The product of one overlap per axis.
    Product(Vec<AxisOverlap>),
    /// One run of length 1 for each point, in the points' order.
    Listed(Vec<Run>),
}

impl Overlap {
    pub(crate) fn of_hyperslab(grid: &ChunkGrid, chunk_index: &[u64], hyperslab: &Hyperslab) -> Self {
        let axes =
            (hyperslab.axes().iter().zip(chunk_index).zip(grid.shape().iter().zip(grid.chunk_shape())))
                .map(|((&axis, &chunk), (&length, &chunk_length))| {
                    AxisOverlap::new(axis.merged(), chunk, length, chunk_length)
                })
                .collect();
        Self::product(axes)
    }

    pub(crate) fn of_points(grid: &ChunkGrid, chunk_index: &[u64], points: &Points) -> Self {
        let wanted = row_major::ravel(chunk_index, &grid.grid_shape());
        let runs = located_runs(grid, points).filter(|&(chunk, _)| chunk == wanted).map(|(_, run)| run);
        Self::listed(grid, chunk_index.to_vec(), runs.collect())
    }

    fn product(axes: Vec<AxisOverlap>) -> Self {
        Self {
            chunk_index: axes.iter().map(AxisOverlap::chunk).collect(),
            valid_element_count: axes.iter().map(|axis| axis.valid_length).product(),
            elements: Elements::Product(axes),
        }
    }

    fn listed(grid: &ChunkGrid, chunk_index: Vec<u64>, runs: Vec<Run>) -> Self {
        let valid_length = |(axis, &chunk): (usize, &u64)| {
            let chunk_length = grid.chunk_shape()[axis];
            chunk_length.min(grid.shape()[axis] - chunk * chunk_length)
        };
        let valid_element_count = chunk_index.iter().enumerate().map(valid_length).product();
        Self { chunk_index, valid_element_count, elements: Elements::Listed(runs) }
    }

    /// The chunk's index in the grid.
    pub fn chunk_index(&self) -> &[u64] {
        &self.chunk_index
    }

    /// How many elements are shared. A point counts as often as it is listed.
    pub fn element_count(&self) -> u64 {
        match &self.elements {
            Elements::Product(axes) => axes.iter().map(AxisOverlap::element_count).product(),
            Elements::Listed(runs) => runs.len() as u64,
        }
    }

    /// How many elements of the chunk lie inside the array.
    pub fn valid_element_count(&self) -> u64 {
        self.valid_element_count
    }

    /// In how many runs the shared elements are copied: the number that `runs()` would list. A hyperslab does not need
    /// listing.
    pub fn run_count(&self) -> u64 {
        match &self.elements {
            Elements::Product(axes) => AxisSums::run_count(axes.iter().map(AxisOverlap::sums)),
            Elements::Listed(_) => self.runs().count() as u64,
        }
    }

    /// The runs, in the selection's order.
    pub fn runs(&self) -> Runs {
        match &self.elements {
            Elements::Product(axes) => Runs::of_product(axes),
            Elements::Listed(runs) => Runs::of_list(runs.clone()),
        }
    }

    /// The runs by HDF5's rules, which go along blocks. HDF5 does not join elements across a gap, even if they happen
    /// to be contiguous. If another axis has gaps, it treats two indices of a longer interval in a chunk as two blocks.
    pub fn block_runs(&self) -> Runs {
        match &self.elements {
            Elements::Product(axes) => Runs::of_blocks(axes, axes.iter().any(AxisOverlap::has_gaps)),
            Elements::Listed(_) => self.runs(),
        }
    }

    /// Whether the selection covers the valid part of the chunk, so a write need not read the chunk first.
    pub fn fully_covers(&self) -> bool {
        self.distinct_element_count() == self.valid_element_count
    }

    fn distinct_element_count(&self) -> u64 {
        match &self.elements {
            Elements::Product(_) => self.element_count(),
            Elements::Listed(runs) => {
                let mut offsets: Vec<u64> = runs.iter().map(|run| run.chunk_offset).collect();
                offsets.sort_unstable();
                offsets.dedup();
                offsets.len() as u64
            }
        }
    }
}

impl ChunkGrid {
    /// What a selection shares with one chunk; possibly nothing.
    pub fn overlap(&self, chunk_index: &[u64], selection: &Selection) -> Result<Overlap, Error> {
        self.check_chunk(chunk_index)?;
        selection.check_within(self.shape())?;
        Ok(match selection {
            Selection::Hyperslab(hyperslab) => Overlap::of_hyperslab(self, chunk_index, hyperslab),
            Selection::Points(points) => Overlap::of_points(self, chunk_index, points),
        })
    }

    /// What a selection shares with each chunk that it touches, in row-major order of the chunks.
    ///
    /// The work is proportional to the chunks touched, or to the number of points, not to the size of the array.
    pub fn overlaps(&self, selection: &Selection) -> Result<Overlaps, Error> {
        selection.check_within(self.shape())?;
        Ok(match selection {
            Selection::Hyperslab(hyperslab) => Overlaps::of_hyperslab(self.axis_overlaps(hyperslab)),
            Selection::Points(points) => Overlaps::of_points(self, points),
        })
    }
}

/// The overlaps of a selection with the chunks it touches, in row-major order of the chunks.
#[derive(Clone, Debug)]
pub struct Overlaps(Source);

#[derive(Clone, Debug)]
enum Source {
    Product { axes: Vec<Vec<AxisOverlap>>, odometer: Odometer },
    Listed(std::vec::IntoIter<Overlap>),
}

impl Overlaps {
    pub(crate) fn of_hyperslab(axes: Vec<Vec<AxisOverlap>>) -> Self {
        let odometer = Odometer::new(axes.iter().map(Vec::len).collect());
        Self(Source::Product { axes, odometer })
    }

    pub(crate) fn of_points(grid: &ChunkGrid, points: &Points) -> Self {
        let mut located: Vec<(u64, Run)> = located_runs(grid, points).collect();
        // The sort is stable: within a chunk the points keep their order.
        located.sort_by_key(|&(chunk, _)| chunk);
        let grid_shape = grid.grid_shape();
        let overlap = |group: &[(u64, Run)]| {
            let chunk_index = row_major::unravel(group[0].0, &grid_shape);
            Overlap::listed(grid, chunk_index, group.iter().map(|&(_, run)| run).collect())
        };
        let overlaps: Vec<Overlap> =
            located.chunk_by(|(chunk, _), (other, _)| chunk == other).map(overlap).collect();
        Self(Source::Listed(overlaps.into_iter()))
    }
}

impl Iterator for Overlaps {
    type Item = Overlap;

    fn next(&mut self) -> Option<Overlap> {
        match &mut self.0 {
            Source::Listed(overlaps) => overlaps.next(),
            Source::Product { axes, odometer } => {
                let chosen = odometer.read()?.iter().zip(axes).map(|(&position, axis)| axis[position]);
                let overlap = Overlap::product(chosen.collect());
                odometer.turn();
                Some(overlap)
            }
        }
    }
}

/// One run of length 1 for each point, with the linear index of the chunk that holds it.
fn located_runs(grid: &ChunkGrid, points: &Points) -> impl Iterator<Item = (u64, Run)> {
    points.iter().zip(0..).map(|(point, buffer_offset)| {
        let (chunk, chunk_offset) = grid.locate(point);
        (chunk, Run { chunk_offset, buffer_offset, length: 1 })
    })
}
