//! The core's errors as Python's: an element or chunk that is not there is an `IndexError`.

use hyperslab_core::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyIndexError, PyValueError};

#[allow(clippy::needless_pass_by_value)] // map_err hands the error over by value
pub(crate) fn to_python(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::OutOfBounds { .. } | Error::NoSuchChunk { .. } | Error::NoSuchLinearChunk { .. } => {
            PyIndexError::new_err(message)
        }
        Error::NdimMismatch { .. }
        | Error::Zero { .. }
        | Error::OverlappingBlocks { .. }
        | Error::TooLarge { .. }
        | Error::PointsWithoutAxes
        | Error::RaggedPoints { .. } => PyValueError::new_err(message),
    }
}
