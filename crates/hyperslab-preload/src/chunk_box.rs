//! The chunks that a read touches, as far as it matters for what libhdf5 would do.

use std::collections::HashSet;

use hyperslab_core::AxisIndices;
use hyperslab_libhdf5::{Dataspace, Selected};

/// The smallest box of chunks that has all those that a selection touches, and how many of them it touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkBox {
    /// The first chunk on each axis, and the first one behind the last.
    pub axes: Vec<(u64, u64)>,
    pub count: u64,
}

impl ChunkBox {
    /// `None` if nothing is selected.
    pub fn of(selected: &Dataspace, chunk: &[u64]) -> Option<Self> {
        let (low, high) = selected.bounds()?;
        let bounds = low.iter().zip(&high).zip(chunk);
        let axes: Vec<_> =
            bounds.map(|((low, high), &chunk)| (low / chunk.max(1), high / chunk.max(1) + 1)).collect();
        let count = match &selected.selected {
            Selected::All => axes.iter().map(|(start, stop)| stop - start).fold(1, u64::saturating_mul),
            Selected::Axes(along) => along
                .iter()
                .zip(chunk)
                .map(|(along, &chunk)| chunk_count(along, chunk.max(1)))
                .fold(1, u64::saturating_mul),
            Selected::Points(points) => {
                let of_point = |point: &[u64]| -> Vec<u64> {
                    point.iter().zip(chunk).map(|(&index, &chunk)| index / chunk.max(1)).collect()
                };
                points.iter().map(of_point).collect::<HashSet<_>>().len() as u64
            }
        };
        Some(Self { axes, count })
    }

    /// Whether all its chunks are touched.
    pub fn is_full(&self) -> bool {
        self.axes.iter().map(|(start, stop)| stop - start).fold(1, u64::saturating_mul) == self.count
    }

    /// Whether all chunks of another box are in this one.
    pub fn has(&self, other: &Self) -> bool {
        self.axes.iter().zip(&other.axes).all(|(own, other)| own.0 <= other.0 && other.1 <= own.1)
    }

    /// A box of at most so many chunks in it, somewhere between its beginning (0) and its end (1).
    pub fn part(&self, most: u64, place: f64) -> Self {
        let mut left = most.max(1);
        let mut axes = self.axes.clone();
        for axis in axes.iter_mut().rev() {
            let length = axis.1 - axis.0;
            let taken = length.min(left);
            left = (left / taken.max(1)).max(1);
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let skipped = (((length - taken) as f64 * place).round() as u64).min(length - taken);
            *axis = (axis.0 + skipped, axis.0 + skipped + taken);
        }
        let count = axes.iter().map(|(start, stop)| stop - start).fold(1, u64::saturating_mul);
        Self { axes, count }
    }
}

/// How many chunks of this length have indices on an axis.
fn chunk_count(along: &AxisIndices, chunk: u64) -> u64 {
    match along {
        AxisIndices::Listed(indices) => {
            let mut last = None;
            indices.iter().filter(|&&index| last.replace(index / chunk) != Some(index / chunk)).count() as u64
        }
        AxisIndices::Regular(along) => {
            let all = along.stop().saturating_sub(1) / chunk - along.start() / chunk + 1;
            if along.stride().saturating_sub(along.block()) < chunk { all } else { all.min(along.len()) }
        }
    }
}
