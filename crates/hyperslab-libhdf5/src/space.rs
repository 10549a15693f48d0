//! Dataspaces.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr;

use crate::library::Library;
use crate::owned::Owned;
use crate::owned::{Identified, identified};
use crate::problem::{Problem, refused, succeeded};
use crate::{Id, MOST_NDIM};

/// `H5S_SIMPLE`.
const SIMPLE: c_int = 1;
/// `H5S_SELECT_SET`.
const SET: c_int = 0;
/// The most elements along an axis that is going to grow: offsets have a sign in places.
const MOST_LENGTH: u64 = i64::MAX.cast_unsigned();

/// A dataspace, by its identifier.
#[derive(Clone, Copy)]
pub struct Space<'l> {
    pub(crate) library: &'l Library,
    pub(crate) id: Id,
}

/// The indices of an element on each axis; on more than there are, 0.
pub type Corner = [u64; MOST_NDIM];

/// The start, stride, count and block of a regular hyperslab, along each axis.
pub type Regular = [Corner; 4];

/// What is selected: `H5S_sel_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionKind {
    /// Nothing.
    None,
    /// Points.
    Points,
    /// One regular hyperslab, or any blocks.
    Hyperslabs,
    /// Everything.
    All,
}

identified!(Space, space);

impl<'l> Space<'l> {
    /// A new dataspace, all of it selected.
    pub fn created(library: &'l Library, shape: &[u64]) -> Option<Owned<Self>> {
        let ndim = c_int::try_from(shape.len()).ok()?;
        // SAFETY: the shape has so many entries.
        Owned::returned(
            library.space(unsafe { (library.call.space_create)(ndim, shape.as_ptr(), ptr::null()) }),
        )
    }

    /// Whether it has axes, or is one element.
    pub fn is_simple(self) -> bool {
        // SAFETY: the functions here look up any identifier.
        unsafe { (self.library.call.space_kind)(self.id) == SIMPLE }
    }

    /// Its shape.
    #[inline]
    pub fn shape(self, room: &mut Corner) -> Option<&mut [u64]> {
        // SAFETY: as above; there is room for as many axes as libhdf5 allows.
        let ndim = unsafe { (self.library.call.space_shape)(self.id, room.as_mut_ptr(), ptr::null_mut()) };
        room.get_mut(..usize::try_from(ndim).ok()?)
    }

    /// How many axes it has.
    fn ndim(self) -> Option<usize> {
        // SAFETY: as above.
        usize::try_from(unsafe { (self.library.call.space_ndim)(self.id) }).ok()
    }

    /// What is selected.
    pub fn selection_kind(self) -> Option<SelectionKind> {
        // SAFETY: as above.
        match unsafe { (self.library.call.selection_kind)(self.id) } {
            0 => Some(SelectionKind::None),
            1 => Some(SelectionKind::Points),
            2 => Some(SelectionKind::Hyperslabs),
            3 => Some(SelectionKind::All),
            _ => None,
        }
    }

    /// Whether the hyperslabs that are selected are a regular one.
    pub fn is_regular(self) -> bool {
        // SAFETY: as above.
        unsafe { (self.library.call.is_regular)(self.id) > 0 }
    }

    /// How many elements are selected; negative if the identifier is wrong.
    #[inline]
    pub fn count(self) -> i64 {
        // SAFETY: as above.
        unsafe { (self.library.call.selection_count)(self.id) }
    }

    /// The first and the last index selected on each axis.
    #[inline]
    pub fn bounds(self) -> Option<(Corner, Corner)> {
        let (mut low, mut high) = ([0; MOST_NDIM], [0; MOST_NDIM]);
        let bounds = self.library.call.selection_bounds;
        // SAFETY: as above; there is room for as many axes as libhdf5 allows.
        let done = unsafe { bounds(self.id, low.as_mut_ptr(), high.as_mut_ptr()) };
        (done >= 0).then_some((low, high))
    }

    /// The regular hyperslab that is selected; `None` if what is selected is none.
    #[inline]
    pub fn regular(self) -> Option<Regular> {
        let mut axes = [[0_u64; MOST_NDIM]; 4];
        let [start, stride, count, block] = axes.each_mut().map(|numbers| numbers.as_mut_ptr());
        // SAFETY: as above; there is room for as many axes as libhdf5 allows.
        let done = unsafe { (self.library.call.regular)(self.id, start, stride, count, block) };
        (done >= 0).then_some(axes)
    }

    /// How many blocks are selected.
    pub fn block_count(self) -> Option<usize> {
        // SAFETY: as above.
        usize::try_from(unsafe { (self.library.call.block_count)(self.id) }).ok()
    }

    /// So many of the blocks: of each the indices of its first element, and of its last one.
    pub fn blocks(self, count: usize) -> Option<Vec<u64>> {
        let mut corners = vec![0; count.checked_mul(2)?.checked_mul(self.ndim()?)?];
        // SAFETY: as above; there is room for two corners of each block.
        let done = unsafe { (self.library.call.blocks)(self.id, 0, count as u64, corners.as_mut_ptr()) };
        (done >= 0).then_some(corners)
    }

    /// How many points are selected.
    pub fn point_count(self) -> Option<usize> {
        // SAFETY: as above.
        usize::try_from(unsafe { (self.library.call.point_count)(self.id) }).ok()
    }

    /// The indices of so many of the points.
    pub fn points(self, count: usize) -> Option<Vec<u64>> {
        let mut indices = vec![0; count.checked_mul(self.ndim()?)?];
        // SAFETY: as above; there is room for all indices of each point.
        let done = unsafe { (self.library.call.points)(self.id, 0, count as u64, indices.as_mut_ptr()) };
        (done >= 0).then_some(indices)
    }
}

/// A dataspace to select boxes in.
pub struct Boxes<'l> {
    pub(crate) space: Owned<Space<'l>>,
    shape: Vec<u64>,
}

impl<'l> Boxes<'l> {
    /// Boxes may lie anywhere in the dataspace.
    pub fn of(space: Owned<Space<'l>>) -> Result<Self, Problem> {
        let mut room = [0; MOST_NDIM];
        let shape = space.shape(&mut room).map(|shape| shape.to_vec());
        let shape = shape.ok_or_else(|| refused("to tell the shape of a dataspace"))?;
        Ok(Self { space, shape })
    }

    /// The same dataspace, in which boxes may lie behind the end: what it describes will have grown when it is read.
    #[must_use]
    pub fn growing(mut self) -> Self {
        self.shape.fill(MOST_LENGTH);
        self
    }

    /// The shape of the dataspace.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The dataspace.
    pub fn space(&self) -> Space<'l> {
        *self.space
    }

    /// Selects one box, in place of what was selected.
    pub fn select(&self, start: &[u64], shape: &[u64]) -> Result<(), Problem> {
        if self.shape.is_empty() || !is_inside(start, shape, &self.shape) {
            let whole = &self.shape;
            return Err(Problem::Misfit(format!(
                "a dataspace of {whole:?} has no box of {shape:?} at {start:?}"
            )));
        }
        let one = [1_u64; MOST_NDIM];
        let (start, shape) = (start.as_ptr(), shape.as_ptr());
        let select = self.space.library.call.select_hyperslab;
        // SAFETY: all arrays have one entry for each axis of the space, and outlive the call.
        let done = unsafe { select(self.space.id, SET, start, ptr::null(), one.as_ptr(), shape) };
        succeeded(done, "to select a box")
    }
}

/// Whether a box has as many axes as an array and lies in it.
pub(crate) fn is_inside(start: &[u64], shape: &[u64], whole: &[u64]) -> bool {
    let mut axes = start.iter().zip(shape).zip(whole);
    (start.len(), shape.len()) == (whole.len(), whole.len())
        && axes.all(|((start, length), whole)| start.checked_add(*length).is_some_and(|stop| stop <= *whole))
}
