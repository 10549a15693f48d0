//! Converts the elements of whole arrays: numbers to another width or byte order, packed numbers to unpacked ones.

use std::sync::Arc;

use crate::array::codec::Codec;
use crate::array::element::{Element, same_bytes};
use crate::array::fill::Fill;
use crate::array::manifest::{ChunkState, Manifest, StoredChunk};
use crate::array::packing::Packing;
use crate::array::segment::Segment;
use crate::array::{Array, Value};
use crate::byte_range::ByteRange;
use crate::convert::numbers::{convert, converted, is_convertible};
use crate::convert::other_float::{is_other_float, wider};
use crate::convert::unpack::unpack;
use crate::grid::chunk_grid::ChunkGrid;
use crate::plan::error::PlanError;

const PIECE_NBYTES: u64 = 1 << 20;
const LEAST_PIECE_NBYTES: u64 = 16 << 10;
const MOST_PIECES: u64 = 1 << 20;
const OTHER_KIND: &str = "a source whose elements are of another kind";

/// The array with this element. Numbers are converted.
pub(crate) fn with_element(source: &Arc<Array>, element: &Element) -> Result<Arc<Array>, PlanError> {
    if same_bytes(&source.element, element) {
        return Ok(Arc::clone(source));
    }
    recoded(source, None, element).map(Arc::new)
}

/// The array with this element. Its numbers are converted, or unpacked if `packing` tells how they were packed.
/// Elements that were never written become the unpacked fill value.
pub fn recoded(source: &Array, packing: Option<&Packing>, element: &Element) -> Result<Array, PlanError> {
    let stored = &source.element;
    if !is_convertible(stored, element) {
        return Err(PlanError::unsupported(OTHER_KIND));
    }
    let width = |element: &Element| usize::try_from(element.nbytes()).unwrap_or(0);
    let recode = |bytes: &[u8]| {
        let Some(packing) = packing else { return Fill::Value(converted(stored, element, bytes)) };
        let mut out = vec![0; width(element)];
        unpack(packing, stored, element, bytes, &mut out);
        Fill::Value(out)
    };
    let fill = |fill: &Fill| match fill {
        Fill::Value(value) => recode(value),
        Fill::Zero | Fill::Undefined if packing.is_some() => recode(&vec![0; width(stored)]),
        other => other.clone(),
    };
    let (stored, decoded) = (stored.clone(), element.clone());
    let codec = match packing.cloned() {
        None => Codec::Convert { stored, decoded },
        Some(packing) => Codec::Unpack { packing, stored, decoded },
    };
    let show = |segment: &Segment| {
        if segment.plain_edge_chunks || segment.element != source.element {
            return Err(PlanError::unsupported(OTHER_KIND));
        }
        let segment = cut(segment)?;
        Ok(Segment {
            codecs: std::iter::once(codec.clone()).chain(segment.codecs.iter().cloned()).collect(),
            element: element.clone(),
            fill: fill(&segment.fill),
            manifest: Arc::new(segment.manifest.moved(|file| file, 1)),
            ..segment
        })
    };
    let segments = match &source.segments {
        Ok(segments) => Ok(segments.iter().map(show).collect::<Result<_, _>>()?),
        Err(reason) => Err(reason.clone()),
    };
    Ok(Array { element: element.clone(), fill: fill(&source.fill), segments, ..source.clone() })
}

/// Converts an array of floats with another layout to IEEE floats. Other arrays, and arrays that cannot be converted
/// chunk by chunk, stay as they are.
pub fn with_ieee_floats(array: Array) -> Array {
    let Element::Float { nbytes, order, layout } = array.element else { return array };
    if !is_other_float(nbytes, &layout) || !array.virtual_mappings.is_empty() {
        return array;
    }
    let element = wider(nbytes, &layout).and_then(|nbytes| Element::float(nbytes, order));
    let shown = element.and_then(|element| recoded(&array, None, &element).ok());
    shown.unwrap_or(array)
}

/// A value whose floats have another layout, as IEEE floats. Other values stay as they are.
pub fn value_with_ieee_floats(value: Value) -> Value {
    let Element::Float { nbytes, order, layout } = value.element else { return value };
    let wanted = wider(nbytes, &layout).filter(|_| is_other_float(nbytes, &layout));
    let Some(element) = wanted.and_then(|nbytes| Element::float(nbytes, order)) else { return value };
    if !is_convertible(&value.element, &element) {
        return value;
    }
    let count = value.bytes.len() / usize::try_from(nbytes).unwrap_or(usize::MAX).max(1);
    let mut bytes = vec![0; count.saturating_mul(usize::try_from(element.nbytes()).unwrap_or(0))];
    convert(&value.element, &element, &value.bytes, &mut bytes);
    Value { element, bytes, ..value }
}

/// The same segment. If it is one large uncompressed piece, it is cut into chunks of about `PIECE_NBYTES`: conversion
/// reads whole chunks, and reading a part should not need the whole.
fn cut(segment: &Segment) -> Result<Segment, PlanError> {
    let (shape, width) = (segment.grid.shape(), segment.element.nbytes());
    let nbytes = shape.iter().fold(width, |product, &length| product.saturating_mul(length));
    let is_one = segment.codecs.is_empty() && segment.grid.chunk_shape() == shape && nbytes > PIECE_NBYTES;
    let ChunkState::Stored { file, range, filter_mask: 0 } = segment.manifest.state(0) else {
        return Ok(segment.clone());
    };
    if !is_one || range.length != nbytes {
        return Ok(segment.clone());
    }
    let (mut chunk_shape, mut piece) = (shape.to_vec(), nbytes);
    for length in &mut chunk_shape {
        let row = piece / (*length).max(1);
        // Pieces are equal: the last one must not be shorter than the others.
        let most = (PIECE_NBYTES / row.max(1)).clamp(1, *length);
        let count = (1..=most).rev().find(|count| *length % count == 0).unwrap_or(1);
        (*length, piece) = (count, row * count);
        if piece <= PIECE_NBYTES {
            break;
        }
    }
    let count = nbytes / piece.max(1);
    if piece < LEAST_PIECE_NBYTES || count > MOST_PIECES {
        return Ok(segment.clone()); // a length without divisors, or one that no file has
    }
    let chunk = |index: u64| {
        let range = ByteRange { offset: range.offset.saturating_add(index * piece), length: piece };
        StoredChunk { index, file, range, filter_mask: 0 }
    };
    let chunks = (0..count).map(chunk).collect();
    let grid = ChunkGrid::new(shape.to_vec(), chunk_shape)?;
    Ok(Segment { grid, manifest: Arc::new(Manifest::of_chunks(chunks)), ..segment.clone() })
}
