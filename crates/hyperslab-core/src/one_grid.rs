//! A virtual array whose parts are the chunks of one grid: what versioned-hdf5 writes. Its mappings become one
//! manifest instead of a segment each; whatever is not quite so is left to the general way, which gives the same
//! elements.

use std::sync::Arc;

use crate::array::{Array, Fill};
use crate::codec::Codec;
use crate::grid::ChunkGrid;
use crate::manifest::{ChunkState, Manifest, StoredChunk};
use crate::segment::{Segment, SegmentAxis};
use crate::segment_reads::same_bytes;
use crate::virtual_array::{VirtualAxis, VirtualMapping, VirtualSelection};

/// The one segment of a virtual array each of whose mappings shows a chunk of `source` as a chunk of its own; `None`
/// if it is not so.
pub(crate) fn one_grid(array: &Array, shape: &[u64], source: &Array) -> Option<Segment> {
    let source_shape = source.shape.as_deref()?;
    let [stored] = source.segments.as_deref().ok()? else { return None };
    let plain = same_bytes(&source.element, &array.element)
        && stored.element == source.element
        && same_fill(&source.fill, &array.fill)
        && same_fill(&stored.fill, &source.fill)
        && !stored.plain_edge_chunks
        && !stored.codecs.iter().any(|codec| matches!(codec, Codec::Transpose { .. }));
    let whole = SegmentAxis::of_box(&vec![0; source_shape.len()], source_shape, &vec![0; source_shape.len()]);
    if !plain || stored.axes != whole.ok()? || stored.grid.shape() != source_shape {
        return None;
    }
    let chunk_shape = stored.grid.chunk_shape();
    let is_stack = source_shape.len() == shape.len()
        && !shape.contains(&0)
        && source_shape.first()? % chunk_shape.first()? == 0
        && source_shape.iter().zip(chunk_shape).skip(1).all(|(length, chunk)| length == chunk);
    if !is_stack {
        return None;
    }
    let grid = ChunkGrid::new(shape.to_vec(), chunk_shape.to_vec()).ok()?;
    let chunks = chunks(&array.virtual_mappings, &grid, stored)?;
    let origin = vec![0; shape.len()];
    Some(Segment {
        axes: SegmentAxis::of_box(&origin, shape, &origin).ok()?,
        grid,
        codecs: stored.codecs.clone(),
        element: stored.element.clone(),
        plain_edge_chunks: false,
        manifest: Arc::new(Manifest::of_chunks(chunks)),
        fill: stored.fill.clone(),
    })
}

/// Whether elements that nobody wrote are the same.
fn same_fill(one: &Fill, other: &Fill) -> bool {
    let nonzero = |fill: &Fill| match fill {
        Fill::Value(bytes) if bytes.iter().any(|&byte| byte != 0) => bytes.clone(),
        _ => Vec::new(),
    };
    nonzero(one) == nonzero(other)
}

/// Whether all mappings are of one array.
pub(crate) fn one_source(mappings: &[VirtualMapping]) -> Option<&VirtualMapping> {
    let first = mappings.first()?;
    let same = |one: &VirtualMapping| one.file == first.file && one.path == first.path;
    (mappings.iter().all(same) && !first.is_numbered()).then_some(first)
}

/// The chunk that each mapping shows, under its index in the virtual array.
fn chunks(mappings: &[VirtualMapping], grid: &ChunkGrid, stored: &Segment) -> Option<Vec<StoredChunk>> {
    let mut chunks = Vec::with_capacity(mappings.len());
    for (index, place) in chunk_places(mappings, grid)? {
        match stored.manifest.state(place) {
            _ if place >= stored.grid.chunk_count() => return None,
            ChunkState::Stored { file, range, filter_mask } => {
                chunks.push(StoredChunk { index, file, range, filter_mask });
            }
            ChunkState::Missing => {}
            ChunkState::Inline(_) | ChunkState::Sought { .. } => return None,
        }
    }
    Some(chunks)
}

/// Of mappings in the order of the chunks of a grid, each of which shows the valid part of one of them: the chunk's
/// linear index, and its place in a source that is a stack of such chunks along axis 0. `None` of any others.
pub fn chunk_places(mappings: &[VirtualMapping], grid: &ChunkGrid) -> Option<Vec<(u64, u64)>> {
    let grid_shape = grid.grid_shape();
    let mut places = Vec::with_capacity(mappings.len());
    let mut next = 0; // chunks come in order, so none comes twice
    for mapping in mappings {
        let (mut index, mut place) = (0, 0);
        for (axis, (&length, &chunk)) in grid.shape().iter().zip(grid.chunk_shape()).enumerate() {
            let (start, stop) = interval(&mapping.target, axis)?;
            let (source_start, source_stop) = interval(&mapping.source, axis)?;
            let is_chunk =
                start % chunk == 0 && start < stop && stop == length.min(start.checked_add(chunk)?);
            let is_stored = source_start % chunk == 0
                && source_stop.checked_sub(source_start)? == stop - start
                && (axis == 0 || source_start == 0);
            if !is_chunk || !is_stored {
                return None;
            }
            index = index * grid_shape[axis] + start / chunk;
            place += source_start / chunk; // of axis 0, as the others start at 0
        }
        if index < next {
            return None;
        }
        next = index + 1;
        places.push((index, place));
    }
    Some(places)
}

/// Start and stop of a box along one axis.
fn interval(selection: &VirtualSelection, axis: usize) -> Option<(u64, u64)> {
    match selection {
        VirtualSelection::Boxes(boxes) => match boxes.as_slice() {
            [one] => Some((*one.start.get(axis)?, *one.stop.get(axis)?)),
            _ => None,
        },
        VirtualSelection::Regular(axes) => {
            let VirtualAxis { start, stride, count, block } = *axes.get(axis)?;
            let length = match (count?, block?) {
                (1, block) => block,
                (count, block) if stride == block => count.checked_mul(block)?,
                _ => return None,
            };
            Some((start, start.checked_add(length)?))
        }
        _ => None,
    }
}
