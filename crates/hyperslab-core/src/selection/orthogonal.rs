//! A selection axis by axis, where an axis may list its indices one by one.

use crate::error::{Error, checked_product, same_ndim};
use crate::selection::axis::AxisSelection;
use crate::selection::hyperslab::Hyperslab;

/// What is asked of one axis. The output has its indices in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AxisIndices {
    /// Blocks at a regular distance.
    Regular(AxisSelection),
    /// Single indices, in any order. An index may occur twice.
    Listed(Vec<u64>),
}

impl AxisIndices {
    /// How many indices there are.
    pub fn len(&self) -> u64 {
        match self {
            Self::Regular(selected) => selected.len(),
            Self::Listed(indices) => indices.len() as u64,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lowest index; 0 if there is none.
    pub fn start(&self) -> u64 {
        match self {
            Self::Regular(selected) => selected.start(),
            Self::Listed(indices) => indices.iter().min().copied().unwrap_or(0),
        }
    }

    /// One more than the highest index; 0 if there is none.
    pub fn stop(&self) -> u64 {
        match self {
            Self::Regular(selected) if selected.is_empty() => 0,
            Self::Regular(selected) => selected.stop(),
            Self::Listed(indices) => indices.iter().max().map_or(0, |&index| index.saturating_add(1)),
        }
    }
}

/// A selection axis by axis: the product of the indices on each axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Orthogonal {
    axes: Vec<AxisIndices>,
}

impl Orthogonal {
    /// The product of these axes.
    pub fn new(axes: Vec<AxisIndices>) -> Result<Self, Error> {
        checked_product("the size of the selection", axes.iter().map(AxisIndices::len))?;
        Ok(Self { axes })
    }

    /// Everything in an array of this shape.
    pub fn all(shape: &[u64]) -> Result<Self, Error> {
        Hyperslab::all(shape).map(|all| Self::from(&all))
    }

    /// One entry per axis.
    pub fn axes(&self) -> &[AxisIndices] {
        &self.axes
    }

    /// The shape of the output.
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(AxisIndices::len).collect()
    }

    /// Fails unless an array of this shape has every selected element.
    pub fn check_within(&self, shape: &[u64]) -> Result<(), Error> {
        same_ndim("the selection", self.axes.len(), "the array", shape.len())?;
        let mut axes = self.axes.iter().zip(shape).enumerate();
        match axes.find(|(_, (asked, length))| asked.stop() > **length) {
            None => Ok(()),
            Some((axis, (asked, &length))) => {
                Err(Error::OutOfBounds { axis, index: asked.stop() - 1, length })
            }
        }
    }
}

impl From<&Hyperslab> for Orthogonal {
    fn from(hyperslab: &Hyperslab) -> Self {
        let axes: &[AxisSelection] = hyperslab.axes();
        Self { axes: axes.iter().copied().map(AxisIndices::Regular).collect() }
    }
}
