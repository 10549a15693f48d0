//! Resolves a virtual array: turns its mappings, and the sources that were found, into segments. Pure.
//!
//! ```text
//! mapping ─► shown parts: one source each, both selections limited ─► correspondences, axis by axis
//!         ─► through each segment of the source ─► segments of the virtual array
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::array::Array;
use crate::array::codec::Codec;
use crate::array::manifest::Manifest;
use crate::array::segment::{Segment, SegmentAxis};
use crate::array::virtual_mapping::{VirtualMapping, is_numbered};
use crate::array::virtual_mappings::VirtualMappings;
use crate::convert::recode::with_element;
use crate::grid::chunk_grid::ChunkGrid;
use crate::plan::error::PlanError;
use crate::row_major::Odometer;
use crate::unreadable::Unreadable;
use crate::virtual_array::correspondence::Correspondence;
use crate::virtual_array::one_grid::one_grid;
use crate::virtual_array::pairing::{AxisPair, pairings, too_many};
use crate::virtual_array::parts::{Growing, Part};

/// The most segments of a virtual array, and the most sources of a numbered row.
pub(crate) const MOST_SEGMENTS: usize = 1 << 20;

/// Finds the source of a mapping, by the file and path that the mapping names. The source is not virtual, or is
/// resolved. `None` if there is no such file or array.
pub type Find<'a, E> = dyn FnMut(&str, &str) -> Result<Option<Arc<Array>>, E> + 'a;

/// Turns a virtual array into an ordinary one: with the shape that its sources give it, and a segment for each part.
///
/// If segments overlap, the later one counts, as with mappings. Elements without a source, or outside it, are in no
/// segment and so have the array's fill value. As HDF5 does by default (`H5D_VDS_LAST_AVAILABLE`), an unlimited axis
/// extends as far as the longest mapping, and a row of numbered sources ends before the first one that does not exist.
pub fn resolve<E: From<PlanError>>(array: &Array, find: &mut Find<'_, E>) -> Result<Array, E> {
    let mut resolved = Array {
        shape: array.shape.clone(),
        max_shape: array.max_shape.clone(),
        element: array.element.clone(),
        fill: array.fill.clone(),
        is_chunked: array.is_chunked,
        notes: array.notes.clone(),
        segments: array.segments.clone(),
        virtual_mappings: VirtualMappings::NONE, // there may be millions, so we do not copy them
        dimensions: array.dimensions.clone(),
        attributes: array.attributes.clone(),
        role: array.role,
    };
    let Some(stored_shape) = &array.shape else { return Ok(resolved) };
    if let Some(segment) = in_one_grid(array, find)? {
        (resolved.segments, resolved.is_chunked) = (Ok(vec![segment]), true);
        return Ok(resolved);
    }
    let mut growing = Growing::new(stored_shape);
    let mut parts = Vec::new();
    for mapping in array.virtual_mappings.iter() {
        growing.meet(&mapping.target)?;
        add_parts(&mapping, find, &mut growing, &mut parts)?;
    }
    let shape = growing.shape();
    let mut segments = Vec::new();
    let mut converted: HashMap<*const Array, Arc<Array>> = HashMap::new(); // each source once
    for part in &parts {
        let source = match converted.entry(Arc::as_ptr(&part.source)) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(position) => {
                Arc::clone(position.insert(with_element(&part.source, &array.element)?))
            }
        };
        add_segments(array, &source, &shape, part, &mut segments)?;
    }
    resolved.shape = Some(shape);
    resolved.segments = Ok(segments);
    Ok(resolved)
}

/// The segment of a virtual array whose parts are the chunks of one grid; `None` for other arrays.
fn in_one_grid<E>(array: &Array, find: &mut Find<'_, E>) -> Result<Option<Segment>, E> {
    let names = array.virtual_mappings.one_source();
    let Some((file, path)) = names.filter(|(file, path)| !is_numbered(file, path)) else { return Ok(None) };
    let Some(source) = find(file, path)? else { return Ok(None) };
    Ok(one_grid(array, &source))
}

/// The sources of a mapping, and what it shows of each.
fn add_parts<E: From<PlanError>>(
    mapping: &VirtualMapping,
    find: &mut Find<'_, E>,
    growing: &mut Growing,
    parts: &mut Vec<Part>,
) -> Result<(), E> {
    match (mapping.target.unlimited_axis(), mapping.source.unlimited_axis()) {
        (None, None) => {
            if let Some(source) = find(&mapping.file, &mapping.path)? {
                parts.push(Part::limited(mapping, source));
            }
        }
        (Some(axis), Some(source_axis)) => {
            growing.reach(axis, 0);
            if let Some(source) = find(&mapping.file, &mapping.path)? {
                parts.extend(Part::unlimited(mapping, &source, axis, source_axis, growing)?);
            }
        }
        (Some(axis), None) if mapping.is_numbered() => {
            growing.reach(axis, 0);
            for number in 0.. {
                let (file, path) = mapping.source_names(number);
                let Some(source) = find(&file, &path)? else { break };
                if parts.len() >= MOST_SEGMENTS {
                    return Err(too_many().into());
                }
                parts.push(Part::numbered(mapping, source, axis, number, growing)?);
            }
        }
        _ => return Err(PlanError::damaged("a mapping is unlimited on one side only").into()),
    }
    Ok(())
}

/// The segments that show one part of a source. The source's elements are the array's.
fn add_segments(
    array: &Array,
    source: &Array,
    shape: &[u64],
    part: &Part,
    segments: &mut Vec<Segment>,
) -> Result<(), PlanError> {
    let Some(source_shape) = &source.shape else {
        return Err(PlanError::unsupported("a virtual array whose source has no elements"));
    };
    let inner = source.segments.as_ref().map_err(Unreadable::clone)?;
    let background = background(array, source, source_shape, inner)?;
    for pairing in pairings(&part.shown, shape, &part.selection, source_shape)? {
        for inner in background.iter().chain(inner) {
            let through = inner.axes.iter().map(|axis| axis_through(&pairing, axis));
            let choices = through.collect::<Result<Vec<_>, _>>()?;
            let count = choices.iter().map(Vec::len).try_fold(1, usize::checked_mul);
            if count.and_then(|count| count.checked_add(segments.len())).is_none_or(|all| all > MOST_SEGMENTS)
            {
                return Err(too_many());
            }
            for chosen in product(&choices) {
                segments.push(segment(&pairing, inner, chosen)?);
            }
        }
    }
    Ok(())
}

/// The background of a source that is itself virtual: its fill value, if the array's differs.
pub(crate) fn background(
    array: &Array,
    source: &Array,
    source_shape: &[u64],
    inner: &[Segment],
) -> Result<Option<Segment>, PlanError> {
    let covers = |segment: &Segment| {
        segment
            .shown()
            .zip(source_shape)
            .all(|(shown, &length)| shown.is_contiguous() && shown.len() == length)
    };
    if inner.iter().any(covers) || source.fill == array.fill {
        return Ok(None);
    }
    let chunk_shape = source_shape.iter().map(|&length| length.max(1)).collect();
    let origin = vec![0; source_shape.len()];
    Ok(Some(Segment {
        axes: SegmentAxis::of_box(&origin, source_shape, &origin)?,
        grid: ChunkGrid::new(source_shape.to_vec(), chunk_shape)?,
        codecs: Vec::new(),
        element: source.element.clone(),
        plain_edge_chunks: false,
        manifest: Arc::new(Manifest::empty()),
        fill: source.fill.clone(),
    }))
}

/// An axis of a source's segment, as the virtual array shows it: not at all, or in one or more stretches.
fn axis_through(pairing: &[AxisPair], axis: &SegmentAxis) -> Result<Vec<SegmentAxis>, PlanError> {
    let Some(source_axis) = axis.array_axis else { return Ok(vec![*axis]) };
    let pair = pairing.iter().find(|pair| pair.source_axis == Some(source_axis));
    let Some(pair) = pair else { return Err(PlanError::damaged("a mapping has the wrong number of axes")) };
    let inner = Correspondence { shown: axis.shown, source: axis.source };
    let stretches = pair.indices.through(inner)?.into_iter();
    Ok(stretches
        .map(|found| SegmentAxis { array_axis: pair.axis, shown: found.shown, source: found.source })
        .collect())
}

/// One segment of the virtual array, from a source's segment. Axes that only the virtual array has get one chunk.
fn segment(pairing: &[AxisPair], inner: &Segment, chosen: Vec<SegmentAxis>) -> Result<Segment, PlanError> {
    if inner.codecs.iter().any(|codec| matches!(codec, Codec::Transpose { .. })) {
        return Err(PlanError::unsupported("a source whose chunks are transposed"));
    }
    let (mut axes, mut grid_shape, mut chunk_shape) = (Vec::new(), Vec::new(), Vec::new());
    let lengths = inner.grid.shape().iter().copied().zip(inner.grid.chunk_shape().iter().copied());
    let mut positions = inner.axes.iter().zip(chosen).zip(lengths).peekable();
    for pair in pairing {
        if pair.source_axis.is_none() {
            axes.push(SegmentAxis {
                array_axis: pair.axis,
                shown: pair.indices.shown,
                source: pair.indices.source,
            });
            grid_shape.push(1);
            chunk_shape.push(1);
            continue;
        }
        // The segment's axes up to this one, including those that the source itself does not have.
        for ((position, axis), (length, chunk_length)) in positions.by_ref() {
            axes.push(axis);
            grid_shape.push(length);
            chunk_shape.push(chunk_length);
            if position.array_axis.is_some() {
                break;
            }
        }
    }
    for ((_, axis), (length, chunk_length)) in positions {
        axes.push(axis);
        grid_shape.push(length);
        chunk_shape.push(chunk_length);
    }
    Ok(Segment { axes, grid: ChunkGrid::new(grid_shape, chunk_shape)?, ..inner.clone() })
}

/// Every choice of one entry from each list. The last list changes fastest.
fn product(lists: &[Vec<SegmentAxis>]) -> impl Iterator<Item = Vec<SegmentAxis>> + '_ {
    let mut odometer = Odometer::new(lists.iter().map(Vec::len).collect());
    std::iter::from_fn(move || {
        let chosen = odometer.read()?.iter().zip(lists).map(|(&position, list)| list[position]).collect();
        odometer.turn();
        Some(chosen)
    })
}
