//! What is asked of an array: one of a closed set of kinds.

pub(crate) mod axis;
pub(crate) mod hyperslab;
pub(crate) mod orthogonal;
pub(crate) mod points;

use crate::error::Error;
use crate::selection::hyperslab::Hyperslab;
use crate::selection::points::Points;

/// Elements of an array, in the order in which the output holds them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selection {
    /// Regularly spaced blocks, in row-major order.
    Hyperslab(Hyperslab),
    /// Elements listed one by one, in the order of the list.
    Points(Points),
}

impl Selection {
    /// How many axes the array must have.
    pub fn ndim(&self) -> usize {
        match self {
            Self::Hyperslab(hyperslab) => hyperslab.ndim(),
            Self::Points(points) => points.ndim(),
        }
    }

    /// The shape of the output, which is in C order.
    pub fn shape(&self) -> Vec<u64> {
        match self {
            Self::Hyperslab(hyperslab) => hyperslab.shape(),
            Self::Points(points) => vec![points.len()],
        }
    }

    /// How many elements the output has.
    pub fn len(&self) -> u64 {
        match self {
            Self::Hyperslab(hyperslab) => hyperslab.len(),
            Self::Points(points) => points.len(),
        }
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fails unless an array of this shape has every selected element.
    pub fn check_within(&self, shape: &[u64]) -> Result<(), Error> {
        match self {
            Self::Hyperslab(hyperslab) => hyperslab.check_within(shape),
            Self::Points(points) => points.check_within(shape),
        }
    }
}

impl From<Hyperslab> for Selection {
    fn from(hyperslab: Hyperslab) -> Self {
        Self::Hyperslab(hyperslab)
    }
}

impl From<Points> for Selection {
    fn from(points: Points) -> Self {
        Self::Points(points)
    }
}
