//! A regular part of an array that one grid of chunks holds.

use std::sync::Arc;

use crate::array::codec::Codec;
use crate::array::element::Element;
use crate::array::fill::Fill;
use crate::array::manifest::Manifest;
use crate::error::Error;
use crate::grid::chunk_grid::ChunkGrid;
use crate::selection::axis::AxisSelection;

/// A part of an array, held by one grid of chunks with one codec chain: the product of its axes.
///
/// A grid can be larger than what the segment shows of it, so a chunk may decode to more than it contributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// How each axis of the grid lies in the array. The array's axes come in their order, each once.
    pub axes: Vec<SegmentAxis>,
    /// How the source is cut.
    pub grid: ChunkGrid,
    /// The steps of encoding, first to last.
    pub codecs: Vec<Codec>,
    /// What is stored; the array's element unless it must be converted.
    pub element: Element,
    /// Edge chunks are stored without their codecs (HDF5's partial-edge-chunk flag).
    pub plain_edge_chunks: bool,
    /// Where the chunks are; segments that show the same source share it.
    pub manifest: Arc<Manifest>,
    /// What the source's unwritten chunks hold.
    pub fill: Fill,
}

/// How an axis of a segment's grid lies in the array.
///
/// Of both it takes equally many indices: the one at a position of `shown` is the one at that position of `source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentAxis {
    /// The array's axis; `None` for an axis of the source alone, of which one index is shown.
    pub array_axis: Option<usize>,
    /// Indices of the array's axis; one, without meaning, where there is no such axis.
    pub shown: AxisSelection,
    /// Indices of the grid's axis.
    pub source: AxisSelection,
}

impl SegmentAxis {
    /// The axes of a box: `origin + i` of the array is `source_origin + i` of the grid, for `i` below `shape`.
    pub fn of_box(origin: &[u64], shape: &[u64], source_origin: &[u64]) -> Result<Vec<Self>, Error> {
        let positions = origin.iter().zip(shape).zip(source_origin).enumerate();
        let axis = |(axis, ((&origin, &length), &source_origin))| {
            let shown = AxisSelection::interval(axis, origin, length)?;
            let source = AxisSelection::interval(axis, source_origin, length)?;
            Ok(Self { array_axis: Some(axis), shown, source })
        };
        positions.map(axis).collect()
    }
}

impl Segment {
    /// What the segment shows of each axis of the array, in the array's order.
    pub fn shown(&self) -> impl Iterator<Item = &AxisSelection> {
        self.axes.iter().filter(|axis| axis.array_axis.is_some()).map(|axis| &axis.shown)
    }

    /// Whether two segments surely hold no element both.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        self.shown().zip(other.shown()).any(|(one, other)| one.is_apart_from(other))
    }
}
