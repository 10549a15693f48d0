//! The elements of a virtual selection in row-major order, row by row.

use crate::array::virtual_mapping::{VirtualBox, VirtualSelection};
use crate::plan::error::PlanError;
use crate::row_major::Odometer;
use crate::selection::axis::AxisSelection;

/// The most boxes or rows that a selection is split into.
pub(crate) const MOST_PIECES: usize = 1 << 16;

/// A start on each axis, and the number of elements from there along the last axis.
pub(crate) type Row = (Vec<u64>, u64);

/// The rows of a selection. `axes` is set if the selection is a product.
pub(crate) fn rows(
    selection: &VirtualSelection,
    axes: Option<Vec<Vec<AxisSelection>>>,
    shape: &[u64],
) -> Result<Vec<Row>, PlanError> {
    match (axes, selection) {
        (Some(axes), _) => of_product(&axes, shape.len()),
        (None, VirtualSelection::Boxes(boxes)) => of_boxes(boxes),
        (None, VirtualSelection::Points(points)) if points.len() <= MOST_PIECES as u64 => {
            Ok(points.iter().map(|point| (point.to_vec(), 1)).collect())
        }
        _ => Err(too_long()),
    }
}

fn too_long() -> PlanError {
    PlanError::unsupported("a mapping of too many rows between selections of different shapes")
}

fn of_product(axes: &[Vec<AxisSelection>], ndim: usize) -> Result<Vec<Row>, PlanError> {
    if axes.iter().any(|axis| axis.iter().all(AxisSelection::is_empty)) {
        return Ok(Vec::new());
    }
    let Some((last, slower)) = axes[..ndim].split_last() else { return Ok(vec![(Vec::new(), 1)]) };
    let indices = |axis: &Vec<AxisSelection>| -> Result<Vec<u64>, PlanError> {
        if axis.iter().map(AxisSelection::len).sum::<u64>() > MOST_PIECES as u64 {
            return Err(too_long());
        }
        Ok(axis.iter().flat_map(|part| (0..part.len()).map(|position| part.nth(position))).collect())
    };
    let blocks: u64 = last.iter().map(AxisSelection::count).sum();
    let slower: Vec<Vec<u64>> = slower.iter().map(indices).collect::<Result<_, _>>()?;
    let count = slower.iter().map(Vec::len).chain(usize::try_from(blocks)).try_fold(1, usize::checked_mul);
    if count.is_none_or(|count| count > MOST_PIECES) {
        return Err(too_long());
    }
    let mut odometer = Odometer::new(slower.iter().map(Vec::len).collect());
    let mut found = Vec::new();
    while let Some(positions) = odometer.read() {
        for part in last {
            found.extend((0..part.count()).map(|block| {
                let start = positions.iter().zip(&slower).map(|(&position, axis)| axis[position]);
                (start.chain([part.start() + block * part.stride()]).collect(), part.block())
            }));
        }
        odometer.turn();
    }
    Ok(found)
}

/// Boxes do not overlap, so sorted rows give the elements in row-major order.
fn of_boxes(boxes: &[VirtualBox]) -> Result<Vec<Row>, PlanError> {
    let mut found: Vec<Row> = Vec::new();
    for one in boxes {
        let lengths = one.start.iter().zip(&one.stop).map(|(&start, &stop)| {
            AxisSelection::interval(0, start, stop.saturating_sub(start)).map(|interval| vec![interval])
        });
        let axes: Vec<_> = lengths.collect::<Result<_, _>>()?;
        found.extend(of_product(&axes, axes.len())?);
        if found.len() > MOST_PIECES {
            return Err(too_long());
        }
    }
    found.sort_unstable();
    Ok(found)
}
