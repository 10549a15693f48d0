//! What a plan reads of one segment, and what a segment must satisfy for that.

use std::ops::Range;

use crate::array::Array;
use crate::array::codec::Codec;
use crate::array::element::same_bytes;
use crate::array::fill::Fill;
use crate::array::segment::{Segment, SegmentAxis};
use crate::error::{Error, checked_product};
use crate::plan::axis_cut::AxisCut;
use crate::plan::chunk_read::ChunkRead;
use crate::plan::error::PlanError;
use crate::plan::placement::Placement;
use crate::row_major::{Odometer, ravel, unravel};
use crate::selection::orthogonal::{AxisIndices, Orthogonal};
use crate::unreadable::Unreadable;

/// Uncompressed chunks are read in parts of about this many bytes, so that threads can share a large one.
const PART_NBYTES: u64 = 4 << 20;

/// What is read of one segment: the product of one list of parts for each axis.
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
    output_strides: Vec<u64>,
    grid_shape: Vec<u64>,
    /// The chunks whose last one on each axis reaches beyond the grid's array.
    cut_at_edge: Vec<bool>,
    plain_edge_chunks: bool,
    is_plain: bool,
    pub element_count: u64,
}

impl SegmentReads {
    /// What a selection reads of segment number `number`; `None` if it reads nothing of it.
    pub fn new(
        number: usize,
        segment: &Segment,
        selection: &Orthogonal,
        first_read: u64,
    ) -> Result<Option<Self>, PlanError> {
        let positions = segment.axes.iter().zip(segment.grid.chunk_shape());
        let cuts: Vec<AxisCut> =
            positions.map(|(axis, &length)| cut(selection, axis, length)).collect::<Result<_, _>>()?;
        let element_count: u64 = cuts.iter().map(AxisCut::element_count).product();
        if element_count == 0 {
            return Ok(None);
        }
        let chunk_shape = segment.grid.chunk_shape().to_vec();
        let grid_shape = segment.grid.grid_shape();
        let chunk_count = cuts.iter().map(AxisCut::len).product();
        let is_plain = segment.codecs.is_empty() && !segment.manifest.are_fetched_whole();
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
            output_strides: output_strides(segment, selection),
            cut_at_edge: cut_at_edge.collect(),
            plain_edge_chunks: segment.plain_edge_chunks,
            chunk_shape,
            grid_shape,
            is_plain,
            element_count,
        }))
    }

    /// Read number `number` of this segment.
    pub fn read(&self, mut number: u64) -> ChunkRead<'_> {
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
                output_strides: &self.output_strides,
                chunk_shape: &self.chunk_shape,
            },
        }
    }
}

impl SegmentReads {
    /// Whether read number `number` of this segment is the first one of its chunk.
    pub fn begins_chunk(&self, mut number: u64) -> bool {
        self.read_count == self.chunk_count
            || self.cuts.iter().zip(&self.counts).rev().all(|(cut, &count)| {
                let part = number % count;
                number /= count;
                cut.begins_chunk(part)
            })
    }

    /// Adds the plan's numbers of the reads of a chunk.
    pub fn push_reads_of(&self, chunk: u64, numbers: &mut Vec<u64>) {
        let coordinates = unravel(chunk, &self.grid_shape);
        if ravel(&coordinates, &self.grid_shape) != chunk {
            return; // an entry outside the grid
        }
        let ranges: Vec<Range<u64>> =
            self.cuts.iter().zip(coordinates).map(|(cut, coordinate)| cut.parts_of(coordinate)).collect();
        let lengths =
            ranges.iter().map(|parts| usize::try_from(parts.end - parts.start).unwrap_or(usize::MAX));
        let mut odometer = Odometer::new(lengths.collect());
        while let Some(positions) = odometer.read() {
            let parts = ranges.iter().zip(positions).map(|(parts, &position)| parts.start + position as u64);
            let number = parts.zip(&self.counts).fold(0, |number, (part, count)| number * count + part);
            numbers.push(self.first_read + number);
            odometer.turn();
        }
    }
}

/// Parts of about `PART_NBYTES`, cut along the slowest axes.
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

/// The distance between neighbours on each axis in C order.
pub(crate) fn c_strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    strides
}

/// The distance between neighbours in a decoded chunk. Codecs may have permuted its axes: decoding leaves that to us.
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

/// Whether a selection ends before a segment on some axis, or starts after it. This rules out most of many segments
/// cheaply.
pub(crate) fn misses(segment: &Segment, selection: &Orthogonal) -> bool {
    segment.shown().zip(selection.axes()).any(|(shown, asked)| match asked {
        AxisIndices::Regular(asked) => asked.stop() <= shown.start() || shown.stop() <= asked.start(),
        AxisIndices::Listed(_) => false,
    })
}

fn cut(selection: &Orthogonal, axis: &SegmentAxis, chunk_length: u64) -> Result<AxisCut, Error> {
    match axis.array_axis.and_then(|axis| selection.axes().get(axis)) {
        Some(asked) => AxisCut::new(asked, axis, chunk_length),
        None => Ok(AxisCut::fixed(axis, chunk_length)),
    }
}

/// The distance between neighbours on each axis of the grid in the output.
///
/// An axis that the array does not have has no neighbours. Its distance is that of a whole line, so rows join.
fn output_strides(segment: &Segment, selection: &Orthogonal) -> Vec<u64> {
    let of_array = c_strides(&selection.shape());
    let mut line = 1;
    let mut strides: Vec<u64> = (segment.axes.iter().rev())
        .map(|axis| {
            let Some(array_axis) = axis.array_axis else { return line };
            line = of_array[array_axis] * selection.axes()[array_axis].len();
            of_array[array_axis]
        })
        .collect();
    strides.reverse();
    strides
}

/// Fails unless a segment fits this array, as far as its description tells.
pub(crate) fn check_segment(array: &Array, array_shape: &[u64], segment: &Segment) -> Result<(), PlanError> {
    check_axes(array_shape, segment)?;
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

/// Fails unless each axis of the array has its indices, and the grid has equally many.
fn check_axes(array_shape: &[u64], segment: &Segment) -> Result<(), PlanError> {
    let damaged = |problem: &str| Err(Unreadable::damaged(problem).into());
    let array_axes = segment.axes.iter().filter_map(|axis| axis.array_axis);
    if !array_axes.eq(0..array_shape.len()) || segment.axes.len() != segment.grid.shape().len() {
        return damaged("a segment and its array differ in the number of axes");
    }
    for (axis, &source_length) in segment.axes.iter().zip(segment.grid.shape()) {
        let length = axis.array_axis.map_or(1, |axis| array_shape[axis]);
        let reaches = |stop: u64, length: u64| stop > length && !axis.shown.is_empty();
        if reaches(axis.shown.stop(), length) || reaches(axis.source.stop(), source_length) {
            return damaged("a segment reaches outside its array");
        }
        if axis.shown.len() != axis.source.len() || axis.array_axis.is_none() && axis.shown.len() != 1 {
            return damaged("a segment shows more or less than its source has");
        }
    }
    Ok(())
}

/// The name of a codec that we cannot decode.
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
