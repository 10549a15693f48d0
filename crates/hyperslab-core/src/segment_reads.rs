//! What a plan reads of one segment, and what a segment must be for that.

use crate::array::{Array, Fill, Segment};
use crate::codec::Codec;
use crate::element::Element;
use crate::error::{Error, checked_product};
use crate::placement::{AxisCut, Placement, SegmentAxis};
use crate::plan::{ChunkRead, Orthogonal, PlanError};
use crate::unreadable::Unreadable;

/// Uncompressed chunks are read in parts of about so many bytes, so that threads can share a large one.
const PART_NBYTES: u64 = 4 << 20;

/// What is read of one segment: the product of one list of parts per axis.
#[derive(Clone, Debug)]
pub(crate) struct SegmentReads {
    pub segment: usize,
    cuts: Vec<AxisCut>,
    counts: Vec<u64>,
    pub first_read: u64,
    pub read_count: u64,
    pub chunk_count: u64,
    chunk_shape: Vec<u64>,
    chunk_strides: Vec<u64>,
    grid_shape: Vec<u64>,
    /// Chunks of which the last one on each axis reaches beyond the grid's array.
    cut_at_edge: Vec<bool>,
    plain_edge_chunks: bool,
    is_plain: bool,
    pub element_count: u64,
}

impl SegmentReads {
    /// What a selection reads of segment number `number`; `None` if it takes nothing of it.
    pub fn new(
        number: usize,
        segment: &Segment,
        selection: &Orthogonal,
        first_read: u64,
    ) -> Result<Option<Self>, PlanError> {
        let cuts: Vec<AxisCut> = (selection.axes().iter().enumerate())
            .map(|(axis, indices)| AxisCut::new(indices, segment_axis(segment, axis)))
            .collect::<Result<_, _>>()?;
        let element_count: u64 = cuts.iter().map(AxisCut::element_count).product();
        if element_count == 0 {
            return Ok(None);
        }
        let chunk_shape = segment.grid.chunk_shape().to_vec();
        let grid_shape = segment.grid.grid_shape();
        let chunk_count = cuts.iter().map(AxisCut::len).product();
        let is_plain = segment.codecs.is_empty();
        let cuts = if is_plain { split(cuts, segment.element.nbytes())? } else { cuts };
        let counts: Vec<u64> = cuts.iter().map(AxisCut::len).collect();
        let read_count = checked_product("the number of chunks to read", counts.iter().copied())?;
        let cut_at_edge =
            segment.grid.shape().iter().zip(&chunk_shape).map(|(length, chunk)| length % chunk != 0);
        Ok(Some(Self {
            segment: number,
            counts,
            cuts,
            first_read,
            read_count,
            chunk_count,
            chunk_strides: chunk_strides(segment)?,
            cut_at_edge: cut_at_edge.collect(),
            plain_edge_chunks: segment.plain_edge_chunks,
            chunk_shape,
            grid_shape,
            is_plain,
            element_count,
        }))
    }

    /// Read number `number` of this segment.
    pub fn read<'a>(&'a self, mut number: u64, output_strides: &'a [u64]) -> ChunkRead<'a> {
        let mut parts = Vec::with_capacity(self.cuts.len());
        for (cut, &count) in self.cuts.iter().zip(&self.counts).rev() {
            parts.push(cut.part(number % count));
            number /= count;
        }
        parts.reverse();
        let chunk = (parts.iter().zip(&self.grid_shape))
            .fold(0, |linear, (part, &length)| linear * length + part.coordinate);
        let mut last = parts.iter().zip(&self.grid_shape).zip(&self.cut_at_edge);
        let at_edge = last.any(|((part, &length), &cut)| cut && part.coordinate + 1 == length);
        ChunkRead {
            segment: self.segment,
            chunk,
            is_plain: self.is_plain || (self.plain_edge_chunks && at_edge),
            chunk_element_count: self.chunk_shape.iter().product(),
            placement: Placement {
                parts,
                chunk_strides: &self.chunk_strides,
                output_strides,
                chunk_shape: &self.chunk_shape,
            },
        }
    }
}

/// Parts of about `PART_NBYTES`, cut on the slowest axes.
fn split(cuts: Vec<AxisCut>, element_nbytes: u64) -> Result<Vec<AxisCut>, Error> {
    let most: Vec<u64> = cuts.iter().map(AxisCut::most_elements).collect();
    let room = (PART_NBYTES / element_nbytes.max(1)).max(1);
    let inner = |axis: usize| most[axis + 1..].iter().product::<u64>().max(1);
    let is_cut = |axis: usize| axis == 0 || inner(axis - 1) > room;
    let cut = |(axis, cut): (usize, AxisCut)| {
        if is_cut(axis) { cut.split((room / inner(axis)).max(1)) } else { Ok(cut) }
    };
    cuts.into_iter().enumerate().map(cut).collect()
}

/// The distance of neighbours on each axis in C order.
pub(crate) fn c_strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    strides
}

/// The distance of neighbours in a decoded chunk, whose axes codecs may have permuted: decoding leaves that
/// to us.
fn chunk_strides(segment: &Segment) -> Result<Vec<u64>, PlanError> {
    let chunk_shape = segment.grid.chunk_shape();
    let mut permuted: Vec<usize> = (0..chunk_shape.len()).collect();
    for codec in &segment.codecs {
        if let Codec::Transpose { order } = codec {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if !sorted.iter().copied().eq(0..chunk_shape.len()) {
                return Err(Unreadable::damaged(format!("{order:?} does not permute the axes")).into());
            }
            permuted = order.iter().map(|&axis| permuted[axis]).collect();
        }
    }
    let stored_shape: Vec<u64> = permuted.iter().map(|&axis| chunk_shape[axis]).collect();
    let mut strides = vec![1; chunk_shape.len()];
    for (&axis, stride) in permuted.iter().zip(c_strides(&stored_shape)) {
        strides[axis] = stride;
    }
    Ok(strides)
}

fn segment_axis(segment: &Segment, axis: usize) -> SegmentAxis {
    SegmentAxis {
        origin: segment.origin[axis],
        length: segment.shape[axis],
        source_origin: segment.source_origin[axis],
        chunk_length: segment.grid.chunk_shape()[axis],
    }
}

/// Fails unless a segment is one of this array, as far as its description goes.
pub(crate) fn check_segment(array: &Array, array_shape: &[u64], segment: &Segment) -> Result<(), PlanError> {
    let ndim = array_shape.len();
    let lengths =
        [segment.origin.len(), segment.shape.len(), segment.source_origin.len(), segment.grid.shape().len()];
    if lengths.iter().any(|&length| length != ndim) {
        return Err(Unreadable::damaged("a segment has another number of axes").into());
    }
    let fits = |origins: &[u64], bounds: &[u64]| {
        (origins.iter().zip(&segment.shape).zip(bounds)).all(|((&origin, &length), &bound)| {
            origin.checked_add(length).is_some_and(|stop| stop <= bound) || length == 0
        })
    };
    if !fits(&segment.origin, array_shape) || !fits(&segment.source_origin, segment.grid.shape()) {
        return Err(Unreadable::damaged("a segment reaches outside its array").into());
    }
    if !same_bytes(&segment.element, &array.element) {
        return Err(Unreadable::unsupported("a source whose elements must be converted").into());
    }
    if let Some(feature) = segment.codecs.iter().find_map(unknown) {
        return Err(Unreadable::unsupported(feature).into());
    }
    check_fill(&segment.fill, segment.element.nbytes())?;
    let elements = segment.grid.chunk_shape().iter().copied().chain([segment.element.nbytes()]);
    checked_product("a chunk in bytes", elements).map_err(Unreadable::from)?;
    Ok(())
}

/// The name of a codec that nobody here can decode.
fn unknown(codec: &Codec) -> Option<String> {
    match codec {
        Codec::Unknown { number: Some(number), name } => Some(format!("codec {name} (HDF5 filter {number})")),
        Codec::Unknown { number: None, name } => Some(format!("codec {name}")),
        _ => None,
    }
}

/// Fails unless a fill value is one element.
pub(crate) fn check_fill(fill: &Fill, element_nbytes: u64) -> Result<(), PlanError> {
    match fill {
        Fill::Value(value) if value.len() as u64 != element_nbytes => {
            Err(Unreadable::damaged(format!("a fill value of {} bytes for {element_nbytes}", value.len()))
                .into())
        }
        _ => Ok(()),
    }
}

/// Whether stored elements are the array's as they are; names of an enumeration's values make no difference.
fn same_bytes(stored: &Element, wanted: &Element) -> bool {
    let plain = |element: &Element| match element {
        Element::Enumeration { base, .. } => (**base).clone(),
        other => other.clone(),
    };
    stored == wanted || plain(stored) == plain(wanted)
}

/// Whether two segments hold an element both.
pub(crate) fn overlap(one: &Segment, other: &Segment) -> bool {
    (0..one.shape.len()).all(|axis| {
        one.origin[axis] < other.origin[axis] + other.shape[axis]
            && other.origin[axis] < one.origin[axis] + one.shape[axis]
    })
}
