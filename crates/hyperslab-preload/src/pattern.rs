//! How the reads of one array go on: row after row, block after block.

use std::time::{Duration, Instant};

use hyperslab_core::{AxisIndices, AxisSelection};
use hyperslab_libhdf5::{Dataspace, Selected};

/// How long a program must compute between reads, as a part of the time that it reads, so that reading ahead is worth it.
const LEAST_IDLE: u32 = 10;
/// Shorter reads are not worth a thread.
const LEAST_BUSY: Duration = Duration::from_millis(2);

/// What is known of the order of an array's reads.
#[derive(Default)]
pub(crate) struct Pattern {
    last: Vec<AxisSelection>,
    /// From the read before the last one to the last one: the axis, and by how many indices.
    step: Option<(usize, i64)>,
    /// Whether the step was the same before.
    is_plain: bool,
    /// Since the pattern began: the time of our reads, and the time between them.
    busy: Duration,
    idle: Duration,
    ended: Option<Instant>,
}

impl Pattern {
    /// Takes account of a read that lasted from `begun` to now.
    pub fn note(&mut self, selected: &Dataspace, begun: Instant) {
        let now = Instant::now();
        let idle = self.ended.map_or(Duration::ZERO, |ended| begun.saturating_duration_since(ended));
        self.ended = Some(now);
        let Some(axes) = regular(selected) else {
            self.last.clear();
            (self.step, self.is_plain) = (None, false);
            return;
        };
        let step = step(&self.last, &axes);
        self.is_plain = step.is_some() && step == self.step;
        if step.is_none() || step != self.step {
            (self.busy, self.idle) = (Duration::ZERO, Duration::ZERO);
        } else {
            self.idle += idle;
        }
        self.busy += now.saturating_duration_since(begun);
        (self.last, self.step) = (axes, step);
    }

    /// The last read went on until now.
    pub fn extend(&mut self) {
        let now = Instant::now();
        self.busy += self.ended.map_or(Duration::ZERO, |ended| now.saturating_duration_since(ended));
        self.ended = Some(now);
    }

    /// The next read that needs chunks which the last one did not, if it is worth doing it ahead.
    pub fn next(&self, shape: &[u64], piece: &[u64]) -> Option<Dataspace> {
        let (moving, step) = self.step.filter(|_| self.is_plain)?;
        if self.busy < LEAST_BUSY || self.idle * LEAST_IDLE < self.busy {
            return None;
        }
        let along = self.last.get(moving)?;
        let (piece, length) = (*piece.get(moving)?, *shape.get(moving)?);
        let edge = if step > 0 {
            // From the last index read to the first one of the next chunk.
            let last = along.stop().checked_sub(1)?;
            piece - last % piece.max(1)
        } else {
            along.start() % piece.max(1) + 1
        };
        let steps = edge.div_ceil(step.unsigned_abs());
        let start = along.start().checked_add_signed(step.checked_mul(i64::try_from(steps).ok()?)?)?;
        if start >= length {
            return None;
        }
        let extent = along.stop() - along.start();
        let moved = if extent <= length - start {
            AxisSelection::new(moving, start, along.stride(), along.count(), along.block())
        } else if along.is_contiguous() {
            AxisSelection::new(moving, start, length - start, 1, length - start)
        } else {
            return None;
        };
        let mut axes: Vec<AxisIndices> = self.last.iter().copied().map(AxisIndices::Regular).collect();
        axes[moving] = AxisIndices::Regular(moved.ok()?);
        Some(Dataspace { shape: shape.to_vec(), selected: Selected::Axes(axes) })
    }
}

/// The selection axis by axis, in one form for all ways to say the same.
pub(crate) fn regular(selected: &Dataspace) -> Option<Vec<AxisSelection>> {
    let Selected::Axes(axes) = &selected.selected else { return None };
    let one = |(number, axis): (usize, &AxisIndices)| match axis {
        AxisIndices::Regular(along) if along.is_contiguous() => {
            AxisSelection::new(number, along.start(), along.len().max(1), 1, along.len()).ok()
        }
        AxisIndices::Regular(along) => Some(*along),
        AxisIndices::Listed(_) => None,
    };
    axes.iter().enumerate().map(one).collect()
}

/// By how much a selection lies behind another one of the same shape; `None` if it is another shape, or if not exactly
/// one axis moves.
fn step(before: &[AxisSelection], now: &[AxisSelection]) -> Option<(usize, i64)> {
    if before.len() != now.len() {
        return None;
    }
    let form = |axis: &AxisSelection| (axis.stride(), axis.count(), axis.block());
    let mut found = None;
    for (number, (before, now)) in before.iter().zip(now).enumerate() {
        if form(before) != form(now) {
            return None;
        }
        let step = i64::try_from(now.start()).ok()?.checked_sub(i64::try_from(before.start()).ok()?)?;
        if step != 0 && found.replace((number, step)).is_some() {
            return None;
        }
    }
    found
}
