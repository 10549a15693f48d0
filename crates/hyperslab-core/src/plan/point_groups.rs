//! Groups points by the chunks that hold them, so each chunk is read once however many points it has.

use crate::array::Array;
use crate::array::segment::Segment;
use crate::plan::error::PlanError;
use crate::selection::orthogonal::AxisIndices;
use crate::selection::orthogonal::Orthogonal;
use crate::selection::points::Points;

/// How many elements of an uncompressed array are fetched together for the points among them.
const PLAIN_ELEMENT_COUNT: u64 = 512;

/// Points that are close together: within one chunk, or within a short row of an uncompressed array.
#[derive(Clone, Debug)]
pub struct PointGroup {
    /// The indices of the points on each axis, sorted. Their product contains every point.
    pub around: Orthogonal,
    /// For each point: its number among all points, and its offset in the output of `around`.
    pub offsets: Vec<(u64, u64)>,
}

impl PointGroup {
    /// The points of an array, group by group, in the order of the chunks. The work is sorting the points.
    pub fn of(points: &Points, array: &Array) -> Result<Vec<Self>, PlanError> {
        let shape = array.shape.as_deref().unwrap_or_default();
        points.check_within(shape)?;
        let tile = tile_shape(array, shape);
        let counts: Vec<u128> = shape
            .iter()
            .zip(&tile)
            .map(|(&length, &tile)| u128::from(length.div_ceil(tile.max(1))))
            .collect();
        let tile_of = |point: &[u64]| -> u128 {
            let steps = point.iter().zip(&tile).zip(&counts);
            steps.fold(0_u128, |number, ((&index, &length), &count)| {
                number.wrapping_mul(count).wrapping_add(u128::from(index / length.max(1)))
            })
        };
        let mut numbered: Vec<(u128, u64, &[u64])> =
            points.iter().zip(0..).map(|(point, number)| (tile_of(point), number, point)).collect();
        numbered.sort_unstable_by_key(|&(tile, number, _)| (tile, number));
        numbered.chunk_by(|one, other| one.0 == other.0).map(group).collect()
    }
}

fn group(members: &[(u128, u64, &[u64])]) -> Result<PointGroup, PlanError> {
    let ndim = members.first().map_or(0, |(_, _, point)| point.len());
    let on_axis = |axis: usize| -> Vec<u64> {
        let mut indices: Vec<u64> = members.iter().map(|(_, _, point)| point[axis]).collect();
        indices.dedup(); // most neighbours are equal on the slow axes
        indices.sort_unstable();
        indices.dedup();
        indices
    };
    let indices: Vec<Vec<u64>> = (0..ndim).map(on_axis).collect();
    let offset = |point: &[u64]| {
        let positions = point
            .iter()
            .zip(&indices)
            .map(|(index, held)| (held.binary_search(index).unwrap_or_default() as u64, held.len() as u64));
        positions.fold(0, |offset, (position, length)| offset * length + position)
    };
    let offsets = members.iter().map(|(_, number, point)| (*number, offset(point))).collect();
    let around = Orthogonal::new(indices.into_iter().map(AxisIndices::Listed).collect())?;
    Ok(PointGroup { around, offsets })
}

/// What is read for one point: its chunk if chunks are decoded whole, otherwise a short row.
fn tile_shape(array: &Array, shape: &[u64]) -> Vec<u64> {
    let encoded =
        |segment: &&Segment| !segment.codecs.is_empty() && segment.grid.shape().len() == shape.len();
    let segments = array.segments.as_deref().unwrap_or_default();
    if let Some(segment) = segments.iter().find(encoded) {
        return segment.grid.chunk_shape().to_vec();
    }
    let mut row = vec![1; shape.len()];
    if let Some(last) = row.last_mut() {
        *last = PLAIN_ELEMENT_COUNT;
    }
    row
}
