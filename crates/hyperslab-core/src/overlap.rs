//! What a selection shares with a chunk: which elements, and in how many runs they are copied.
//!
//! A **run** is a maximal sequence of elements, consecutive in the selection's order, whose offsets in the
//! chunk's buffer (stored chunk shape, C order) and in the output buffer (selection's shape, C order) both
//! advance by one. `run_count` is its closed form; `Runs` lists the runs themselves.

use crate::axis::AxisSelection;
use crate::grid::ChunkGrid;
use crate::hyperslab::Hyperslab;
use crate::points::Points;
use crate::row_major::{self, Odometer};
use crate::runs::{Run, Runs};
use crate::totals::AxisSums;

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
    /// One run of length 1 per point, in the points' order.
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
            chunk_index: axes.iter().map(|axis| axis.chunk).collect(),
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

    /// How many elements are shared; a point counts as often as it is listed.
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

    /// In how many runs the shared elements are copied: what `runs()` would list, without listing it for a
    /// hyperslab.
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

    /// The runs as HDF5 has them, which goes along blocks: it does not join what happens to follow behind a gap, and
    /// takes two indices that a chunk has of a longer interval for two blocks, if another axis has gaps.
    pub fn block_runs(&self) -> Runs {
        match &self.elements {
            Elements::Product(axes) => Runs::of_blocks(axes, axes.iter().any(AxisOverlap::has_gaps)),
            Elements::Listed(_) => self.runs(),
        }
    }

    /// Whether the selection has every element of the chunk that lies inside the array, so that a write need
    /// not read the chunk first.
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

/// What one axis of a hyperslab shares with one chunk's interval on that axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisOverlap {
    selected: AxisSelection,
    chunk: u64,
    pub(crate) chunk_length: u64,
    pub(crate) valid_length: u64,
    /// The positions in the selection, so on the output's axis, that lie in the chunk: `first..stop`.
    first: u64,
    stop: u64,
}

impl AxisOverlap {
    /// The overlap of `selected`, whose touching blocks must be merged, with chunk number `chunk`.
    fn new(selected: AxisSelection, chunk: u64, length: u64, chunk_length: u64) -> Self {
        let start = chunk * chunk_length;
        let valid_length = chunk_length.min(length - start);
        let first = selected.position_of(start);
        let stop = selected.position_of(start + valid_length);
        Self { selected, chunk, chunk_length, valid_length, first, stop }
    }

    /// The overlaps with every chunk that is touched: each one starts the search for the next.
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

    /// Whether this axis is selected whole, in order, and nothing but it is in either buffer.
    pub(crate) fn is_whole(&self) -> bool {
        self.element_count() == self.chunk_length && self.chunk_length == self.buffer_length()
    }

    /// Every shared element by itself.
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

    /// Whether the chunk has two indices of a longer interval.
    pub(crate) fn is_cut_pair(&self) -> bool {
        self.element_count() == 2 && self.buffer_length() > 2 && !self.has_gaps()
    }

    fn block_count(&self) -> u64 {
        if self.element_count() == 0 {
            return 0;
        }
        (self.stop - 1) / self.selected.block() - self.first / self.selected.block() + 1
    }

    /// Whether the last element on this axis is followed, in both buffers, by the first of the next line.
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
                let chosen = odometer.read()?.iter().zip(axes).map(|(&place, axis)| axis[place]);
                let overlap = Overlap::product(chosen.collect());
                odometer.turn();
                Some(overlap)
            }
        }
    }
}

/// One run of length 1 per point, with the linear index of the chunk that holds it.
fn located_runs(grid: &ChunkGrid, points: &Points) -> impl Iterator<Item = (u64, Run)> {
    points.iter().zip(0..).map(|(point, buffer_offset)| {
        let (chunk, chunk_offset) = grid.locate(point);
        (chunk, Run { chunk_offset, buffer_offset, length: 1 })
    })
}
