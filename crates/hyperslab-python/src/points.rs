//! `Points`: the irregular selection.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::to_python;
use crate::integers;

/// Elements of an array, listed one by one.
#[pyclass(frozen, eq, hash, module = "hyperslab._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Points(pub(crate) hyperslab_core::Points);

#[pymethods]
impl Points {
    #[new]
    fn new(coordinates: &Bound<'_, PyAny>) -> PyResult<Self> {
        let array = as_int64(coordinates)?;
        let view = array.as_array();
        if let Some(negative) = view.iter().find(|&&coordinate| coordinate < 0) {
            let message = format!("coordinate {negative} is negative: count from the start of the axis");
            return Err(PyValueError::new_err(message));
        }
        let coordinates = view.iter().map(|coordinate| coordinate.unsigned_abs()).collect();
        hyperslab_core::Points::new(view.ncols(), coordinates).map(Self).map_err(to_python)
    }

    /// The coordinates: int64, shape `(size, ndim)`.
    #[getter]
    fn coordinates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let signed: Vec<i64> = self.0.coordinates().iter().map(|index| index.cast_signed()).collect();
        PyArray1::from_vec(py, signed).reshape([self.0.iter().len(), self.0.ndim()])
    }

    /// The shape of the output: one axis with an entry for each point.
    #[getter]
    fn shape(&self) -> (u64,) {
        (self.0.len(),)
    }

    /// The number of axes that the array must have.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.ndim()
    }

    /// The number of points.
    #[getter]
    fn size(&self) -> u64 {
        self.0.len()
    }

    /// Raise `IndexError` unless an array of `shape` has every point.
    fn check_within(&self, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.check_within(&integers::per_axis("shape", shape)?).map_err(to_python)
    }

    fn __repr__(&self) -> String {
        let points: Vec<String> = self.0.iter().map(integers::repr).collect();
        format!("Points([{}])", points.join(", "))
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, [self.coordinates(py)?])
    }
}

/// An array of shape `(size, ndim)`. Floats are refused, not rounded.
fn as_int64<'py>(coordinates: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray2<'py, i64>> {
    let array = coordinates.py().import("numpy")?.call_method1("asarray", (coordinates,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !matches!(kind.as_str(), "i" | "u") {
        return Err(PyTypeError::new_err("coordinates are not whole numbers: give an array of integers"));
    }
    if array.getattr("ndim")?.extract::<usize>()? != 2 {
        return Err(PyValueError::new_err(
            "coordinates need the shape (points, axes): give one row per point",
        ));
    }
    array.call_method1("astype", ("int64",))?.extract()
}
