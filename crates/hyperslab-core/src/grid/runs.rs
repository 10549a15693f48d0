//! Lists the runs of one overlap.

use crate::grid::axis_overlap::{AxisOverlap, Run};
use crate::row_major::Odometer;

/// The runs of one overlap, in the selection's order.
#[derive(Clone, Debug)]
pub struct Runs {
    pieces: std::iter::Peekable<Pieces>,
    joins: bool,
}

impl Runs {
    pub(crate) fn of_list(pieces: Vec<Run>) -> Self {
        Self { pieces: Pieces::new(vec![pieces]).peekable(), joins: true }
    }

    /// The fastest axes, if complete in both buffers, become a factor of the length. The next axis contributes its
    /// blocks, the slower ones their elements.
    pub(crate) fn of_product(axes: &[AxisOverlap]) -> Self {
        Self { pieces: pieces(axes, false).peekable(), joins: true }
    }

    /// The same without joining: see `Overlap::block_runs`.
    pub(crate) fn of_blocks(axes: &[AxisOverlap], splits_pairs: bool) -> Self {
        Self { pieces: pieces(axes, splits_pairs).peekable(), joins: false }
    }
}

fn pieces(axes: &[AxisOverlap], splits_pairs: bool) -> Pieces {
    let folded = axes.iter().rev().take_while(|axis| axis.is_whole()).count();
    let (axes, whole_axes) = axes.split_at(axes.len() - folded);
    let line = whole_axes.iter().map(|axis| axis.chunk_length).product();
    let mut lists = vec![vec![Run { chunk_offset: 0, buffer_offset: 0, length: line }]];
    let (mut chunk_stride, mut buffer_stride) = (line, line);
    for (slowness, axis) in axes.iter().rev().enumerate() {
        let is_split = splits_pairs && folded > 0 && axis.is_cut_pair();
        let runs = if slowness == 0 && !is_split { axis.blocks() } else { axis.elements() };
        lists.push(runs.into_iter().map(|run| run.scaled(chunk_stride, buffer_stride)).collect());
        chunk_stride *= axis.chunk_length;
        buffer_stride *= axis.buffer_length();
    }
    lists.reverse();
    Pieces::new(lists)
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let mut run = self.pieces.next()?;
        while let Some(next) = self.pieces.next_if(|next| self.joins && run.is_followed_by(next)) {
            run.length += next.length;
        }
        Some(run)
    }
}

/// The row-major product of lists of runs, one list per axis: offsets add, lengths multiply.
#[derive(Clone, Debug)]
struct Pieces {
    lists: Vec<Vec<Run>>,
    odometer: Odometer,
}

impl Pieces {
    fn new(lists: Vec<Vec<Run>>) -> Self {
        Self { odometer: Odometer::new(lists.iter().map(Vec::len).collect()), lists }
    }
}

impl Iterator for Pieces {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let nothing = Run { chunk_offset: 0, buffer_offset: 0, length: 1 };
        let chosen = self.odometer.read()?.iter().zip(&self.lists).map(|(&position, list)| list[position]);
        let piece = chosen.fold(nothing, |sum, run| Run {
            chunk_offset: sum.chunk_offset + run.chunk_offset,
            buffer_offset: sum.buffer_offset + run.buffer_offset,
            length: sum.length * run.length,
        });
        self.odometer.turn();
        Some(piece)
    }
}
