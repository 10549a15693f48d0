//! A regular selection: the product of one `AxisSelection` per axis.

use crate::error::{Error, checked_product, same_ndim};
use crate::selection::axis::AxisSelection;

/// Regularly spaced blocks of an array, as `H5Sselect_hyperslab` of HDF5 defines them.
///
/// Two hyperslabs are equal if their four parameters are. Different parameters can select the same elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hyperslab {
    axes: Vec<AxisSelection>,
}

impl Hyperslab {
    /// Blocks of shape `block`, `count` of them per axis, `stride` apart, the first at `start`.
    pub fn new(start: &[u64], stride: &[u64], count: &[u64], block: &[u64]) -> Result<Self, Error> {
        for (what, values) in [("stride", stride), ("count", count), ("block", block)] {
            same_ndim(what, values.len(), "start", start.len())?;
        }
        let axes = (0..start.len())
            .map(|axis| AxisSelection::new(axis, start[axis], stride[axis], count[axis], block[axis]))
            .collect::<Result<_, _>>()?;
        Self::from_axes(axes)
    }

    /// The product of axes that are already valid.
    pub fn from_axes(axes: Vec<AxisSelection>) -> Result<Self, Error> {
        checked_product("the size of the hyperslab", axes.iter().map(AxisSelection::len))?;
        Ok(Self { axes })
    }

    /// Everything in an array of this shape, as one block.
    pub fn all(shape: &[u64]) -> Result<Self, Error> {
        let axes = (shape.iter().enumerate())
            .map(|(axis, &length)| AxisSelection::new(axis, 0, 1, length, 1))
            .collect::<Result<_, _>>()?;
        Self::from_axes(axes)
    }

    /// One entry per axis.
    pub fn axes(&self) -> &[AxisSelection] {
        &self.axes
    }

    /// How many axes there are.
    pub fn ndim(&self) -> usize {
        self.axes.len()
    }

    /// The shape of the output: `count * block` per axis.
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(AxisSelection::len).collect()
    }

    /// How many elements are selected.
    pub fn len(&self) -> u64 {
        self.axes.iter().map(AxisSelection::len).product()
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.axes.iter().any(AxisSelection::is_empty)
    }

    /// The smallest half-open interval on each axis that holds the selection.
    pub fn bounds(&self) -> Vec<(u64, u64)> {
        self.axes.iter().map(|axis| (axis.start(), axis.stop())).collect()
    }

    /// Whether the selection is one box without gaps.
    pub fn is_contiguous_box(&self) -> bool {
        self.axes.iter().all(AxisSelection::is_contiguous)
    }

    /// Fails unless an array of this shape has every selected element.
    pub fn check_within(&self, shape: &[u64]) -> Result<(), Error> {
        same_ndim("the hyperslab", self.ndim(), "the array", shape.len())?;
        let mut axes = self.axes.iter().zip(shape).enumerate();
        match axes.find(|(_, (selected, length))| selected.stop() > **length) {
            None => Ok(()),
            Some((axis, (selected, &length))) => {
                // An axis without indices can only have its start outside.
                let index = selected.start().max(selected.stop().saturating_sub(1));
                Err(Error::OutOfBounds { axis, index, length })
            }
        }
    }
}
