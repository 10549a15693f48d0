//! Dataspaces of libhdf5: the shape, and what is selected of it.

#![allow(unsafe_code)]

use hyperslab_core::{AxisIndices, AxisSelection, Orthogonal, Points};

use crate::libhdf5::{Id, Library, MOST_NDIM};
use crate::reason::Reason;

/// `H5S_SIMPLE`.
const SIMPLE: i32 = 1;
/// `H5S_SEL_POINTS`, `H5S_SEL_HYPERSLABS`, `H5S_SEL_ALL`.
const POINTS: i32 = 1;
const HYPERSLABS: i32 = 2;
const ALL: i32 = 3;
/// The most blocks of an irregular selection. Listing more takes longer than libhdf5 does.
const MOST_BLOCKS: usize = 1 << 16;
/// The most indices that one axis lists.
const MOST_LISTED: u64 = 1 << 24;
/// The most indices of points.
const MOST_INDICES: usize = 1 << 24;

/// A dataspace.
pub(crate) struct Dataspace {
    /// Its shape.
    pub shape: Vec<u64>,
    /// What is selected.
    pub selected: Selected,
}

/// What is selected of a dataspace, in the order in which libhdf5 visits it.
pub(crate) enum Selected {
    /// Everything, in C order.
    All,
    /// Indices axis by axis.
    Axes(Vec<AxisIndices>),
    /// Points, in their own order.
    Points(Points),
}

impl Dataspace {
    /// The dataspace with this identifier. `refusal` says what a dataspace means that we cannot describe.
    pub fn of(library: &Library, space: Id, refusal: Reason) -> Result<Self, Reason> {
        let call = &library.call;
        // SAFETY: the functions take any identifier.
        if unsafe { (call.space_kind)(space) } != SIMPLE {
            return Err(refusal);
        }
        // SAFETY: as above.
        let ndim = unsafe { (call.space_ndim)(space) };
        let ndim = usize::try_from(ndim).ok().filter(|ndim| (1..=MOST_NDIM).contains(ndim)).ok_or(refusal)?;
        let mut shape = vec![0; ndim];
        // SAFETY: the shape has one entry for each axis.
        let done = unsafe { (call.space_shape)(space, shape.as_mut_ptr(), std::ptr::null_mut()) };
        if done < 0 {
            return Err(refusal);
        }
        // SAFETY: as above.
        let selected = match unsafe { (call.selection_kind)(space) } {
            ALL => Selected::All,
            // SAFETY: as above.
            HYPERSLABS if unsafe { (call.is_regular)(space) } > 0 => {
                Selected::Axes(regular(library, space, ndim).ok_or(refusal)?)
            }
            HYPERSLABS => Selected::Axes(product_of_blocks(library, space, ndim).ok_or(refusal)?),
            POINTS => Selected::Points(points(library, space, ndim).ok_or(refusal)?),
            _ => return Err(refusal),
        };
        let known = Self { shape, selected };
        // A selection may have been moved (`H5Soffset_simple`), which only its bounds tell, or reach outside of the
        // dataspace, which libhdf5 only refuses when it reads.
        let bounds = bounds(library, space, ndim);
        let is_inside =
            bounds.as_ref().is_none_or(|(_, high)| high.iter().zip(&known.shape).all(|(a, b)| a < b));
        if is_inside && known.bounds() == bounds { Ok(known) } else { Err(refusal) }
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
    pub fn len(&self) -> Option<u64> {
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

fn bounds(library: &Library, space: Id, ndim: usize) -> Option<(Vec<u64>, Vec<u64>)> {
    let (mut low, mut high) = (vec![0; ndim], vec![0; ndim]);
    // SAFETY: both have one entry for each axis.
    let done = unsafe { (library.call.selection_bounds)(space, low.as_mut_ptr(), high.as_mut_ptr()) };
    (done >= 0).then_some((low, high))
}

fn regular(library: &Library, space: Id, ndim: usize) -> Option<Vec<AxisIndices>> {
    let [start, stride, count, block] = library.regular(space)?;
    let axis = |axis: usize| {
        // A single block may have any stride. Numbers without limit are refused as too large.
        let stride = if count[axis] == 1 { block[axis] } else { stride[axis] };
        let along = AxisSelection::new(axis, start[axis], stride, count[axis], block[axis]);
        along.ok().map(AxisIndices::Regular)
    };
    (0..ndim).map(axis).collect()
}

/// The selection axis by axis, if its blocks are the product of intervals on each axis, as with lists of indices.
fn product_of_blocks(library: &Library, space: Id, ndim: usize) -> Option<Vec<AxisIndices>> {
    // SAFETY: the function takes any identifier.
    let count = usize::try_from(unsafe { (library.call.block_count)(space) }).ok()?;
    if count == 0 || count > MOST_BLOCKS {
        return None;
    }
    let mut corners = vec![0_u64; count * ndim * 2];
    // SAFETY: there is room for two corners of each block.
    let done = unsafe { (library.call.blocks)(space, 0, count as u64, corners.as_mut_ptr()) };
    if done < 0 {
        return None;
    }
    let mut combinations = 1_usize;
    let axes = (0..ndim).map(|axis| {
        let interval = |block: &[u64]| (block[axis], block[ndim + axis]);
        let mut intervals: Vec<(u64, u64)> = corners.chunks_exact(2 * ndim).map(interval).collect();
        intervals.sort_unstable();
        intervals.dedup();
        combinations = combinations.checked_mul(intervals.len())?;
        let are_apart = intervals.windows(2).all(|pair| pair[0].1 < pair[1].0);
        if are_apart { listed(&intervals) } else { None }
    });
    let axes = axes.collect::<Option<Vec<_>>>()?;
    // Blocks do not overlap, so they all differ: if they are as many as the combinations, they are all of these.
    (combinations == count).then_some(axes)
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

fn points(library: &Library, space: Id, ndim: usize) -> Option<Points> {
    // SAFETY: the function takes any identifier.
    let count = usize::try_from(unsafe { (library.call.point_count)(space) }).ok()?;
    let index_count = count.checked_mul(ndim).filter(|&index_count| index_count <= MOST_INDICES)?;
    let mut coordinates = vec![0_u64; index_count];
    // SAFETY: there is room for all coordinates of each point.
    let done = unsafe { (library.call.points)(space, 0, count as u64, coordinates.as_mut_ptr()) };
    if done >= 0 { Points::new(ndim, coordinates).ok() } else { None }
}
