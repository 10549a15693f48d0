//! What a dataspace selects, as our engine says it.

use hyperslab_core::{AxisIndices, AxisSelection, Orthogonal, Points};

use crate::MOST_NDIM;
use crate::space::{Corner, SelectionKind, Space};

/// The most blocks of an irregular selection. Listing more takes longer than libhdf5 does.
const MOST_BLOCKS: usize = 1 << 16;
/// The most indices that one axis lists.
const MOST_LISTED: u64 = 1 << 24;
/// The most indices of points.
const MOST_INDICES: usize = 1 << 24;

/// A dataspace.
pub struct Dataspace {
    /// Its shape.
    pub shape: Vec<u64>,
    /// What is selected.
    pub selected: Selected,
}

/// What is selected of a dataspace, in the order in which libhdf5 visits it.
pub enum Selected {
    /// Everything, in C order.
    All,
    /// Indices axis by axis.
    Axes(Vec<AxisIndices>),
    /// Points, in their own order.
    Points(Points),
}

impl Dataspace {
    /// What is selected; `None` if we cannot describe it.
    pub fn of(space: Space<'_>) -> Option<Self> {
        if !space.is_simple() {
            return None;
        }
        let mut room = [0; MOST_NDIM];
        let shape = space.shape(&mut room).filter(|shape| !shape.is_empty())?.to_vec();
        let ndim = shape.len();
        let selected = match space.selection_kind()? {
            SelectionKind::All => Selected::All,
            SelectionKind::Hyperslabs if space.is_regular() => Selected::Axes(regular(space, ndim)?),
            SelectionKind::Hyperslabs => Selected::Axes(product_of_blocks(space, ndim)?),
            SelectionKind::Points => Selected::Points(points(space, ndim)?),
            SelectionKind::None => return None,
        };
        let known = Self { shape, selected };
        known.is_as_bounded(space.bounds().as_ref()).then_some(known)
    }

    /// A selection may have been moved (`H5Soffset_simple`), which only its bounds tell, or reach outside of the
    /// dataspace, which libhdf5 only refuses when it reads.
    fn is_as_bounded(&self, bounds: Option<&(Corner, Corner)>) -> bool {
        let ndim = self.shape.len();
        match (self.bounds(), bounds) {
            (None, None) => true,
            (Some(own), Some((low, high))) => {
                (&own.0[..], &own.1[..]) == (&low[..ndim], &high[..ndim])
                    && high.iter().zip(&self.shape).all(|(index, length)| index < length)
            }
            _ => false,
        }
    }

    /// The first and the last index on each axis.
    pub fn bounds(&self) -> Option<(Vec<u64>, Vec<u64>)> {
        match &self.selected {
            Selected::All => Some((
                vec![0; self.shape.len()],
                self.shape.iter().map(|length| length.checked_sub(1)).collect::<Option<_>>()?,
            )),
            Selected::Axes(axes) => Some((
                axes.iter().map(AxisIndices::start).collect(),
                axes.iter().map(|axis| axis.stop().checked_sub(1)).collect::<Option<_>>()?,
            )),
            Selected::Points(points) => {
                let mut all = points.iter();
                let first = all.next()?.to_vec();
                Some(all.fold((first.clone(), first), |(mut low, mut high), point| {
                    for ((low, high), &index) in low.iter_mut().zip(&mut high).zip(point) {
                        (*low, *high) = ((*low).min(index), (*high).max(index));
                    }
                    (low, high)
                }))
            }
        }
    }

    /// How many elements are selected.
    pub fn count(&self) -> Option<u64> {
        let lengths: Vec<u64> = match &self.selected {
            Selected::All => self.shape.clone(),
            Selected::Axes(axes) => axes.iter().map(AxisIndices::len).collect(),
            Selected::Points(points) => vec![points.len()],
        };
        lengths.iter().try_fold(1_u64, |product, &length| product.checked_mul(length))
    }

    /// The selection axis by axis; `None` for points.
    pub fn orthogonal(&self) -> Option<Orthogonal> {
        match &self.selected {
            Selected::All => Orthogonal::all(&self.shape).ok(),
            Selected::Axes(axes) => Orthogonal::new(axes.clone()).ok(),
            Selected::Points(_) => None,
        }
    }
}

fn regular(space: Space<'_>, ndim: usize) -> Option<Vec<AxisIndices>> {
    let [start, stride, count, block] = space.regular()?;
    let axis = |axis: usize| {
        // A single block may have any stride. Numbers without limit are refused as too large.
        let stride = if count[axis] == 1 { block[axis] } else { stride[axis] };
        let along = AxisSelection::new(axis, start[axis], stride, count[axis], block[axis]);
        along.ok().map(AxisIndices::Regular)
    };
    (0..ndim).map(axis).collect()
}

/// The selection axis by axis, as with lists of indices.
fn product_of_blocks(space: Space<'_>, ndim: usize) -> Option<Vec<AxisIndices>> {
    let count = space.block_count().filter(|count| (1..=MOST_BLOCKS).contains(count))?;
    let axes = intervals(&space.blocks(count)?, ndim)?;
    axes.iter().map(|intervals| listed(intervals)).collect()
}

/// The intervals on each axis whose product some blocks are; `None` if they are something else. Of each block and each
/// interval there is a first and a last index.
pub fn intervals(corners: &[u64], ndim: usize) -> Option<Vec<Vec<(u64, u64)>>> {
    let blocks = || corners.chunks_exact(2 * ndim);
    let mut combinations = 1_usize;
    let axes = (0..ndim).map(|axis| {
        let mut intervals: Vec<_> = blocks().map(|block| (block[axis], block[ndim + axis])).collect();
        intervals.sort_unstable();
        intervals.dedup();
        combinations = combinations.checked_mul(intervals.len())?;
        let are_apart = intervals.windows(2).all(|pair| pair[0].1 < pair[1].0);
        are_apart.then_some(intervals)
    });
    let axes = axes.collect::<Option<Vec<_>>>()?;
    // Blocks do not overlap, so they all differ: if they are as many as the combinations, they are all of these.
    (combinations == blocks().len()).then_some(axes)
}

/// The indices of intervals, of which each has a first and a last index.
fn listed(intervals: &[(u64, u64)]) -> Option<AxisIndices> {
    let lengths = intervals.iter().map(|(first, last)| last.checked_sub(*first)?.checked_add(1));
    let total = lengths.sum::<Option<u64>>()?;
    if let [(first, _)] = intervals {
        return AxisSelection::new(0, *first, total, 1, total).ok().map(AxisIndices::Regular);
    }
    if total > MOST_LISTED {
        return None;
    }
    Some(AxisIndices::Listed(intervals.iter().flat_map(|&(first, last)| first..=last).collect()))
}

fn points(space: Space<'_>, ndim: usize) -> Option<Points> {
    let count = space.point_count()?;
    count.checked_mul(ndim).filter(|&index_count| index_count <= MOST_INDICES)?;
    Points::new(ndim, space.points(count)?).ok()
}
