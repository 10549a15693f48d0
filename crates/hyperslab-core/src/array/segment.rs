//! A regular part of an array, stored in one grid of chunks.

use std::sync::Arc;

use crate::array::codec::Codec;
use crate::array::element::Element;
use crate::array::fill::Fill;
use crate::array::manifest::Manifest;
use crate::error::Error;
use crate::grid::chunk_grid::ChunkGrid;
use crate::selection::axis::AxisSelection;

/// A part of an array, stored in one grid of chunks with one codec chain. It is the product of its axes.
///
/// A grid can be larger than the part that its segment shows, so a chunk may decode to more than it contributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// How each axis of the grid lies in the array. The array's axes are in order, each once.
    pub axes: Vec<SegmentAxis>,
    /// How the source is cut into chunks.
    pub grid: ChunkGrid,
    /// The codec chain in encoding order.
    pub codecs: Vec<Codec>,
    /// The stored element. It is the array's element, unless elements must be converted.
    pub element: Element,
    /// Whether edge chunks are stored without their codecs (HDF5's partial-edge-chunk flag).
    pub plain_edge_chunks: bool,
    /// Where the chunks are. Segments that show the same source share the manifest.
    pub manifest: Arc<Manifest>,
    /// The value of the source's unwritten chunks.
    pub fill: Fill,
}

/// How an axis of a segment's grid lies in the array.
///
/// Both selections have equally many indices. The index at a position of `shown` corresponds to the index at that
/// position of `source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentAxis {
    /// The array's axis; `None` if only the source has the axis, with one index shown.
    pub array_axis: Option<usize>,
    /// Indices along the array's axis. If there is no such axis, one meaningless index.
    pub shown: AxisSelection,
    /// Indices along the grid's axis.
    pub source: AxisSelection,
}

impl SegmentAxis {
    /// The axes of a box: index `origin + i` of the array is index `source_origin + i` of the grid, for `i` below
    /// `shape`.
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
    /// What the segment covers of each axis of the array, in the array's order.
    pub fn shown(&self) -> impl Iterator<Item = &AxisSelection> {
        self.axes.iter().filter(|axis| axis.array_axis.is_some()).map(|axis| &axis.shown)
    }

    /// Whether the two segments certainly share no element.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        self.shown().zip(other.shown()).any(|(one, other)| one.is_apart_from(other))
    }
}
