//! Pairs the axes of a virtual array with those of a source, given two selections of equally many elements.

use crate::array::virtual_mapping::{VirtualAxis, VirtualBox, VirtualSelection};
use crate::plan::error::PlanError;
use crate::row_major::Odometer;
use crate::selection::axis::AxisSelection;
use crate::unreadable::Unreadable;
use crate::virtual_array::correspondence::{Correspondence, aligned};
use crate::virtual_array::selection_rows::{MOST_PIECES, Row, rows};

/// An axis of the virtual array, an axis of a source, or one of each that correspond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AxisPair {
    /// The virtual array's axis; `None` if only the source has it, with one index.
    pub axis: Option<usize>,
    /// The source's axis; `None` if only the virtual array has it, with one index.
    pub source_axis: Option<usize>,
    /// Which index shows which.
    pub indices: Correspondence,
}

pub(crate) fn too_many() -> PlanError {
    PlanError::unsupported("a virtual array of more than a million parts")
}

/// The pairs of one part. The part is regular, and the axes are in order.
pub(crate) type Pairing = Vec<AxisPair>;

/// The indices selected on each axis. The selection is their product.
type Axes = Vec<Vec<AxisSelection>>;

/// How two selections correspond, in as few regular pieces as possible. Elements correspond in row-major order.
pub(crate) fn pairings(
    shown: &VirtualSelection,
    shape: &[u64],
    source: &VirtualSelection,
    source_shape: &[u64],
) -> Result<Vec<Pairing>, PlanError> {
    let (axes, source_axes) = (axes(shown, shape)?, axes(source, source_shape)?);
    if let Some((axes, source_axes)) = axes.as_ref().zip(source_axes.as_ref()) {
        if count(axes) == Some(0) && count(source_axes) == Some(0) {
            return Ok(Vec::new());
        }
        if let Some(pairs) = paired(axes, source_axes) {
            return pieces(&pairs);
        }
    }
    row_by_row(rows(shown, axes, shape)?, rows(source, source_axes, source_shape)?)
}

fn count(axes: &Axes) -> Option<u64> {
    axes.iter().map(|axis| axis.iter().map(AxisSelection::len).sum::<u64>()).try_fold(1, u64::checked_mul)
}

/// A selection as the product of its axes; `None` if it is not a product.
fn axes(selection: &VirtualSelection, shape: &[u64]) -> Result<Option<Axes>, PlanError> {
    let has_axes = |ndim: usize| {
        (ndim == shape.len())
            .then_some(())
            .ok_or_else(|| PlanError::damaged("a mapping has the wrong number of axes"))
    };
    let interval = |start: u64, length: u64| AxisSelection::interval(0, start, length);
    Ok(match selection {
        VirtualSelection::Nothing => Some(vec![Vec::new(); shape.len().max(1)]),
        VirtualSelection::All => Some(
            shape.iter().map(|&length| Ok(vec![interval(0, length)?])).collect::<Result<_, PlanError>>()?,
        ),
        VirtualSelection::Regular(axes) => {
            has_axes(axes.len())?;
            Some(axes.iter().map(|axis| Ok(vec![regular(axis)?])).collect::<Result<_, PlanError>>()?)
        }
        VirtualSelection::Boxes(boxes) => {
            boxes.iter().try_for_each(|one| has_axes(one.start.len()))?;
            product_of(boxes, shape.len())?
        }
        VirtualSelection::Points(points) => {
            has_axes(points.ndim())?;
            None
        }
    })
}

fn regular(axis: &VirtualAxis) -> Result<AxisSelection, PlanError> {
    let sides =
        axis.count.zip(axis.block).ok_or_else(|| PlanError::damaged("a limited mapping without an end"))?;
    let selected = match sides {
        (_, 0) => AxisSelection::interval(0, axis.start, 0),
        (count, block) => AxisSelection::new(0, axis.start, axis.stride.max(1), count, block),
    };
    Ok(selected?.merged())
}

/// The axes of boxes that are all combinations of intervals, one for each axis. Selections by lists of indices give
/// such boxes.
fn product_of(boxes: &[VirtualBox], ndim: usize) -> Result<Option<Axes>, PlanError> {
    let mut intervals: Vec<Vec<(u64, u64)>> = Vec::new();
    for axis in 0..ndim {
        let mut found: Vec<(u64, u64)> = boxes.iter().map(|one| (one.start[axis], one.stop[axis])).collect();
        found.sort_unstable();
        found.dedup();
        if found.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return Ok(None);
        }
        intervals.push(found);
    }
    // Boxes do not overlap. So if there are as many boxes as combinations, each combination is one of them.
    let combinations = intervals.iter().map(Vec::len).try_fold(1, usize::checked_mul);
    if combinations != Some(boxes.len()) {
        return Ok(None);
    }
    let selected = |&(start, stop): &(u64, u64)| Ok(AxisSelection::interval(0, start, stop - start)?);
    let axis = |found: &Vec<(u64, u64)>| found.iter().map(selected).collect::<Result<Vec<_>, PlanError>>();
    Ok(Some(intervals.iter().map(axis).collect::<Result<_, _>>()?))
}

/// Pairs the axes if their lengths are the same, apart from axes with one index. Each pair comes with its stretches.
fn paired(axes: &Axes, source_axes: &Axes) -> Option<Vec<Vec<AxisPair>>> {
    let length = |axis: &Vec<AxisSelection>| axis.iter().map(AxisSelection::len).sum::<u64>();
    let (mut pairs, mut axis, mut source_axis) = (Vec::new(), 0, 0);
    while axis < axes.len() || source_axis < source_axes.len() {
        let here = axes.get(axis).map(length);
        let there = source_axes.get(source_axis).map(length);
        let (mine, theirs) = match (here, there) {
            (Some(here), Some(there)) if here == there => (true, true),
            (Some(1), _) => (true, false),
            (_, Some(1)) => (false, true),
            _ => return None,
        };
        let shown = if mine { axes[axis].clone() } else { vec![AxisSelection::FIRST] };
        let source = if theirs { source_axes[source_axis].clone() } else { vec![AxisSelection::FIRST] };
        let pair = |indices| AxisPair {
            axis: mine.then_some(axis),
            source_axis: theirs.then_some(source_axis),
            indices,
        };
        pairs.push(aligned(shown, source).into_iter().map(pair).collect());
        (axis, source_axis) = (axis + usize::from(mine), source_axis + usize::from(theirs));
    }
    Some(pairs)
}

/// Every combination of stretches.
fn pieces(pairs: &[Vec<AxisPair>]) -> Result<Vec<Pairing>, PlanError> {
    let count = pairs.iter().map(Vec::len).try_fold(1, usize::checked_mul);
    if count.is_none_or(|count| count > MOST_PIECES) {
        return Err(too_many());
    }
    let mut odometer = Odometer::new(pairs.iter().map(Vec::len).collect());
    let mut found = Vec::new();
    while let Some(positions) = odometer.read() {
        found.push(positions.iter().zip(pairs).map(|(&position, axis)| axis[position]).collect());
        odometer.turn();
    }
    Ok(found)
}

/// For selections of different shapes or without a regular shape: rows, cut where the rows of either side end.
fn row_by_row(shown: Vec<Row>, source: Vec<Row>) -> Result<Vec<Pairing>, PlanError> {
    let total = |rows: &[Row]| rows.iter().map(|(_, length)| length).sum::<u64>();
    if total(&shown) != total(&source) {
        let problem = format!("a mapping shows {} elements in {}", total(&source), total(&shown));
        return Err(Unreadable::damaged(problem).into());
    }
    let (mut found, mut shown, mut source) = (Vec::new(), shown.into_iter(), source.into_iter());
    let (mut here, mut there) = (shown.next(), source.next());
    while let (Some((start, length)), Some((source_start, source_length))) = (&mut here, &mut there) {
        let count = (*length).min(*source_length);
        found.push(row_pairing(start, source_start, count)?);
        if found.len() > 2 * MOST_PIECES {
            return Err(PlanError::unsupported(
                "a mapping of too many rows between selections of different shapes",
            ));
        }
        for (start, length) in [(&mut *start, &mut *length), (&mut *source_start, &mut *source_length)] {
            *length -= count;
            if let Some(last) = start.last_mut() {
                *last += count;
            }
        }
        let (is_done, is_source_done) = (*length == 0, *source_length == 0);
        here = if is_done { shown.next() } else { here };
        there = if is_source_done { source.next() } else { there };
    }
    Ok(found)
}

fn row_pairing(start: &[u64], source_start: &[u64], count: u64) -> Result<Pairing, PlanError> {
    let single = |start: u64| AxisSelection::interval(0, start, 1);
    let (last, source_last) = (start.len().checked_sub(1), source_start.len().checked_sub(1));
    let mut pairs = Vec::new();
    for (axis, &start) in
        start.iter().enumerate().filter(|&(axis, _)| source_last.is_none() || Some(axis) != last)
    {
        let indices = Correspondence { shown: single(start)?, source: AxisSelection::FIRST };
        pairs.push(AxisPair { axis: Some(axis), source_axis: None, indices });
    }
    for (axis, &start) in
        source_start.iter().enumerate().filter(|&(axis, _)| last.is_none() || Some(axis) != source_last)
    {
        let indices = Correspondence { shown: AxisSelection::FIRST, source: single(start)? };
        pairs.push(AxisPair { axis: None, source_axis: Some(axis), indices });
    }
    if let (Some(last), Some(source_last)) = (last, source_last) {
        let interval = |start: &[u64], axis: usize| AxisSelection::interval(0, start[axis], count);
        let indices =
            Correspondence { shown: interval(start, last)?, source: interval(source_start, source_last)? };
        pairs.push(AxisPair { axis: Some(last), source_axis: Some(source_last), indices });
    }
    Ok(pairs)
}
