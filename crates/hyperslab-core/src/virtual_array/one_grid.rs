//! Virtual arrays whose parts are the chunks of one grid, as versioned-hdf5 writes them. Their mappings become one
//! manifest instead of a segment each. Anything that does not fit exactly is left to the general way, which gives the
//! same elements.

use std::sync::Arc;

use crate::array::Array;
use crate::array::codec::Codec;
use crate::array::element::same_bytes;
use crate::array::fill::Fill;
use crate::array::manifest::{ChunkState, Manifest, StoredChunk};
use crate::array::segment::{Segment, SegmentAxis};
use crate::array::virtual_mapping::{VirtualAxis, VirtualMapping, VirtualSelection};
use crate::array::virtual_mappings::{MappedAxis, VirtualMappings};
use crate::grid::chunk_grid::ChunkGrid;

/// The single segment of a virtual array, if each of its mappings shows a chunk of `source` as a chunk of its own;
/// `None` otherwise.
pub(crate) fn one_grid(array: &Array, source: &Array) -> Option<Segment> {
    let grid = shared_grid(array, source)?;
    let slots = chunk_slots(&array.virtual_mappings, &grid)?;
    shown_segment(&grid, source, &slots)
}

/// The grid of a virtual array whose chunks may be those of `source`, a stack of chunks along axis 0. This does not
/// check the mappings. `None` if the chunks cannot be the same.
pub fn shared_grid(array: &Array, source: &Array) -> Option<ChunkGrid> {
    let (shape, source_shape) = (array.shape.as_deref()?, source.shape.as_deref()?);
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
    ChunkGrid::new(shape.to_vec(), chunk_shape.to_vec()).ok()
}

/// The segment of such a virtual array that has these chunks: each linear index, in increasing order, with its slot in
/// `source`. `None` if the source has no such slot.
pub fn shown_segment(grid: &ChunkGrid, source: &Array, slots: &[(u64, u64)]) -> Option<Segment> {
    let [stored] = source.segments.as_deref().ok()? else { return None };
    let origin = vec![0; grid.shape().len()];
    Some(Segment {
        axes: SegmentAxis::of_box(&origin, grid.shape(), &origin).ok()?,
        grid: grid.clone(),
        codecs: stored.codecs.clone(),
        element: stored.element.clone(),
        plain_edge_chunks: false,
        manifest: Arc::new(Manifest::of_chunks(chunks(slots, stored)?)),
        fill: stored.fill.clone(),
    })
}

/// Whether unwritten elements have the same value.
fn same_fill(one: &Fill, other: &Fill) -> bool {
    let nonzero = |fill: &Fill| match fill {
        Fill::Value(bytes) if bytes.iter().any(|&byte| byte != 0) => bytes.clone(),
        _ => Vec::new(),
    };
    nonzero(one) == nonzero(other)
}

/// The chunks at these slots, by their indices in the virtual array.
fn chunks(slots: &[(u64, u64)], stored: &Segment) -> Option<Vec<StoredChunk>> {
    let (mut chunks, chunk_count) = (Vec::with_capacity(slots.len()), stored.grid.chunk_count());
    for &(index, slot) in slots {
        match stored.manifest.state(slot) {
            _ if slot >= chunk_count => return None,
            ChunkState::Stored { file, range, filter_mask } => {
                chunks.push(StoredChunk { index, file, range, filter_mask });
            }
            ChunkState::Missing => {}
            ChunkState::Inline(_) | ChunkState::Sought { .. } => return None,
        }
    }
    Some(chunks)
}

/// The linear index of each chunk, and its slot in a source that is a stack of such chunks along axis 0, in increasing
/// order. Mappings may come in any order, as versioned-hdf5 1.3 writes them, but each must show the valid part of one
/// chunk, and no chunk may come twice; `None` otherwise.
pub fn chunk_slots(mappings: &VirtualMappings, grid: &ChunkGrid) -> Option<Vec<(u64, u64)>> {
    let mut slots = Vec::with_capacity(mappings.len());
    each_slot(mappings, grid, |index, slot| slots.push((index, slot)))?;
    if !increases(&slots) {
        slots.sort_unstable();
    }
    increases(&slots).then_some(slots)
}

fn increases(slots: &[(u64, u64)]) -> bool {
    slots.is_sorted_by(|(one, _), (next, _)| one < next)
}

/// The same for the chunks with these increasing linear indices only; `None` if any mapping breaks the rules.
pub fn some_chunk_slots(
    mappings: &VirtualMappings,
    grid: &ChunkGrid,
    indices: &[u64],
) -> Option<Vec<(u64, u64)>> {
    let (mut slots, mut sought) = (Vec::new(), indices.iter().copied().peekable());
    let (mut next, mut is_ordered) = (0, true);
    each_slot(mappings, grid, |index, slot| {
        is_ordered &= std::mem::replace(&mut next, index + 1) <= index;
        while sought.next_if(|&next| next < index).is_some() {}
        if sought.next_if_eq(&index).is_some() {
            slots.push((index, slot));
        }
    })?;
    if !is_ordered {
        slots = chunk_slots(mappings, grid)?;
        slots.retain(|(index, _)| indices.binary_search(index).is_ok());
    }
    Some(slots)
}

fn each_slot(mappings: &VirtualMappings, grid: &ChunkGrid, mut found: impl FnMut(u64, u64)) -> Option<()> {
    let (ndim, grid_shape) = (grid.shape().len(), grid.grid_shape());
    match mappings {
        VirtualMappings::Boxes(mapped) if mapped.ndim() == ndim => mapped.boxes().try_for_each(|axes| {
            let shown = |axis: usize| axes.get(axis).map(|axis| (*axis).into());
            let (index, slot) = chunk_slot(shown, grid, &grid_shape)?;
            found(index, slot);
            Some(())
        }),
        VirtualMappings::Boxes(_) => None,
        VirtualMappings::Each(mappings) => mappings.iter().try_for_each(|mapping| {
            let ends = |shown| interval(shown, ndim).is_none();
            let (index, slot) = chunk_slot(|axis| shown_axis(mapping, axis), grid, &grid_shape)?;
            (ends(&mapping.target) && ends(&mapping.source)).then(|| found(index, slot))
        }),
    }
}

/// What a mapping shows along one axis.
struct ShownAxis {
    start: u64,
    source_start: u64,
    length: u64,
}

impl From<MappedAxis> for ShownAxis {
    fn from(axis: MappedAxis) -> Self {
        let MappedAxis { start, source_start, length } = axis;
        Self { start: start.into(), source_start: source_start.into(), length: length.into() }
    }
}

/// The linear index of the chunk that a mapping shows, and its slot; `None` if it shows anything else.
#[inline]
fn chunk_slot(
    shown: impl Fn(usize) -> Option<ShownAxis>,
    grid: &ChunkGrid,
    grid_shape: &[u64],
) -> Option<(u64, u64)> {
    let (mut index, mut slot) = (0, 0);
    for (axis, &count) in grid_shape.iter().enumerate() {
        let (length, chunk) = (*grid.shape().get(axis)?, *grid.chunk_shape().get(axis)?);
        let ShownAxis { start, source_start, length: shown } = shown(axis)?;
        let stop = start.checked_add(shown)?;
        let is_chunk = start % chunk == 0 && start < stop && stop == length.min(start.checked_add(chunk)?);
        let is_stored = source_start % chunk == 0 && (axis == 0 || source_start == 0);
        if !is_chunk || !is_stored {
            return None;
        }
        index = index * count + start / chunk;
        slot += source_start / chunk; // of axis 0, because the other starts are 0
    }
    Some((index, slot))
}

/// What a mapping shows along one axis, if it shows a box as a box of the same length.
fn shown_axis(mapping: &VirtualMapping, axis: usize) -> Option<ShownAxis> {
    let (start, stop) = interval(&mapping.target, axis)?;
    let (source_start, source_stop) = interval(&mapping.source, axis)?;
    let length = stop.checked_sub(start)?;
    (source_stop.checked_sub(source_start)? == length).then_some(ShownAxis { start, source_start, length })
}

/// The start and stop of a box along one axis.
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
