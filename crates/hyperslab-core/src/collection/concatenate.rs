//! Concatenates arrays along an axis. The result has the segments of the parts, moved.

use crate::array::Array;
use crate::array::codec::Codec;
use crate::array::element::same_bytes;
use crate::array::segment::{Segment, SegmentAxis};
use crate::array::virtual_mappings::VirtualMappings;
use crate::error::checked_product;
use crate::grid::chunk_grid::ChunkGrid;
use crate::plan::error::PlanError;
use crate::selection::axis::AxisSelection;
use crate::virtual_array::resolve::background;

/// Concatenates arrays along an axis. Their elements, and their shapes along the other axes, must be equal.
///
/// Each part keeps its own grids, codecs and fill values, so lengths and chunk shapes may differ. Everything else comes
/// from the first part: names of dimensions, attributes, the fill value.
pub fn concatenate(parts: &[Array], axis: usize) -> Result<Array, PlanError> {
    let Some(first) = parts.first() else { return Err(PlanError::damaged("nothing to concatenate")) };
    let mut whole =
        Array { virtual_mappings: VirtualMappings::NONE, segments: Ok(Vec::new()), ..first.clone() };
    let Some(mut shape) = first.shape.clone().filter(|shape| axis < shape.len()) else {
        return Err(PlanError::damaged("an array without the axis along which it is concatenated"));
    };
    let (mut segments, mut length) = (Vec::new(), 0_u64);
    for part in parts {
        let own = part.shape.as_deref().unwrap_or_default();
        let differs = |(span, (one, other)): (usize, (&u64, &u64))| span != axis && one != other;
        let fits = own.len() == shape.len() && !own.iter().zip(&shape).enumerate().any(differs);
        if !fits || !same_bytes(&part.element, &first.element) {
            return Err(PlanError::damaged("arrays of different shapes or elements cannot be concatenated"));
        }
        let held = part.segments.as_deref().map_err(Clone::clone)?;
        for segment in background(first, part, own, held)?.iter().chain(held) {
            segments.push(moved(segment, axis, length)?);
        }
        length = length.saturating_add(own.get(axis).copied().unwrap_or(0));
        whole.is_chunked |= part.is_chunked;
    }
    shape[axis] = length;
    checked_product("the concatenated array", shape.iter().copied())?;
    if let Some(most) = whole.max_shape.get_mut(axis) {
        *most = most.map(|_| length);
    }
    (whole.shape, whole.segments) = (Some(shape), Ok(segments));
    Ok(whole)
}

/// The lengths of the chunks along each axis; `Same` if one length describes them. Along an axis where segments do not
/// follow one another, the length of the longest chunk. `None` if segments are not boxes.
pub fn chunk_lengths(array: &Array) -> Option<Vec<ChunkLengths>> {
    let (shape, segments) = (array.shape.as_ref()?, array.segments.as_ref().ok()?);
    shape.iter().enumerate().map(|(axis, &length)| along(segments, axis, length)).collect()
}

/// The lengths of chunks along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkLengths {
    /// All have this length, except that the last one may be shorter.
    Same(u64),
    /// The length of each.
    Each(Vec<u64>),
}

fn along(segments: &[Segment], axis: usize, length: u64) -> Option<ChunkLengths> {
    let mut spans = Vec::new(); // start, stop, start of the source, chunk length
    for segment in segments {
        let own = segment.axes.iter().zip(segment.grid.chunk_shape());
        let (own, &chunk) = own.into_iter().find(|(own, _)| own.array_axis == Some(axis))?;
        if !own.shown.is_contiguous() || !own.source.is_contiguous() {
            return None;
        }
        if !own.shown.is_empty() {
            spans.push((own.shown.start(), own.shown.stop(), own.source.start(), chunk));
        }
    }
    spans.sort_unstable();
    spans.dedup();
    let longest = spans.iter().map(|&(start, stop, _, chunk)| chunk.min(stop - start)).max()?;
    if spans.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return Some(ChunkLengths::Same(longest));
    }
    let is_regular = |&(start, stop, source, chunk): &(u64, u64, u64, u64)| {
        let starts_well = (start % longest, source % longest) == (0, 0);
        starts_well
            && (chunk == longest || stop - start <= longest)
            && (stop % longest == 0 || stop == length)
    };
    if spans.iter().all(is_regular) {
        return Some(ChunkLengths::Same(longest));
    }
    let mut cuts: Vec<u64> = vec![0, length];
    for (start, stop, source, chunk) in spans {
        let first = start.saturating_add(chunk - source % chunk);
        cuts.push(start);
        cuts.extend(
            (0..).map(|k: u64| first.saturating_add(k.saturating_mul(chunk))).take_while(|&cut| cut < stop),
        );
    }
    cuts.sort_unstable();
    cuts.dedup();
    Some(ChunkLengths::Each(cuts.windows(2).map(|pair| pair[1] - pair[0]).collect()))
}

/// The segment, moved along an axis of its array.
fn moved(segment: &Segment, axis: usize, by: u64) -> Result<Segment, PlanError> {
    let mut segment = segment.clone();
    for own in segment.axes.iter_mut().filter(|own| own.array_axis == Some(axis)) {
        own.shown = own.shown.moved(0, by)?;
    }
    Ok(segment)
}

/// The same elements with a new first axis of length 1.
pub fn with_new_axis(array: &Array) -> Result<Array, PlanError> {
    let in_front = |lengths: &[u64]| std::iter::once(1).chain(lengths.iter().copied()).collect::<Vec<u64>>();
    let new = SegmentAxis { array_axis: Some(0), shown: AxisSelection::FIRST, source: AxisSelection::FIRST };
    let later =
        |axis: &SegmentAxis| SegmentAxis { array_axis: axis.array_axis.map(|axis| axis + 1), ..*axis };
    let widened = |segment: &Segment| {
        Ok::<_, PlanError>(Segment {
            axes: std::iter::once(new).chain(segment.axes.iter().map(later)).collect(),
            grid: ChunkGrid::new(in_front(segment.grid.shape()), in_front(segment.grid.chunk_shape()))?,
            codecs: segment.codecs.iter().map(with_axis_in_front).collect(),
            ..segment.clone()
        })
    };
    let segments = match &array.segments {
        Ok(segments) => Ok(segments.iter().map(widened).collect::<Result<_, _>>()?),
        Err(reason) => Err(reason.clone()),
    };
    Ok(Array {
        shape: array.shape.as_deref().map(in_front),
        max_shape: std::iter::once(Some(1)).chain(array.max_shape.iter().copied()).collect(),
        segments,
        ..array.clone()
    })
}

/// A transposition leaves the new axis first.
fn with_axis_in_front(codec: &Codec) -> Codec {
    match codec {
        Codec::Transpose { order } => {
            let order = std::iter::once(0).chain(order.iter().map(|axis| axis + 1)).collect();
            Codec::Transpose { order }
        }
        other => other.clone(),
    }
}
