//! An irregular selection: elements listed one by one.

use crate::error::{Error, checked_product, same_ndim};

/// Elements of an array, in the order given. An element may occur twice.
///
/// The output has one axis, whose length is the number of points.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Points {
    ndim: usize,
    coordinates: Vec<u64>,
}

impl Points {
    /// Points with `ndim` axes, from their coordinates, one point after the other.
    pub fn new(ndim: usize, coordinates: Vec<u64>) -> Result<Self, Error> {
        if ndim == 0 {
            return Err(Error::PointsWithoutAxes);
        }
        if !coordinates.len().is_multiple_of(ndim) {
            return Err(Error::RaggedPoints { length: coordinates.len(), ndim });
        }
        for &coordinate in &coordinates {
            checked_product("a coordinate", [coordinate])?;
        }
        Ok(Self { ndim, coordinates })
    }

    /// How many axes each point has.
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// All coordinates, one point after the other.
    pub fn coordinates(&self) -> &[u64] {
        &self.coordinates
    }

    /// The points in order, as one slice of coordinates each.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        self.coordinates.chunks_exact(self.ndim)
    }

    /// The number of points.
    pub fn len(&self) -> u64 {
        (self.coordinates.len() / self.ndim) as u64
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.coordinates.is_empty()
    }

    /// Fails unless an array of this shape has every point.
    pub fn check_within(&self, shape: &[u64]) -> Result<(), Error> {
        same_ndim("each point", self.ndim, "the array", shape.len())?;
        for point in self.iter() {
            if let Some(axis) = (0..self.ndim).find(|&axis| point[axis] >= shape[axis]) {
                return Err(Error::OutOfBounds { axis, index: point[axis], length: shape[axis] });
            }
        }
        Ok(())
    }
}
