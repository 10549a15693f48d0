//! `Hyperslab`: the regular selection.

use hyperslab_core::AxisSelection;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

use crate::errors::to_python;
use crate::integers;
use crate::slices;

/// Regularly spaced blocks of an array, as `H5Sselect_hyperslab` of HDF5 defines them.
#[pyclass(frozen, eq, hash, module = "hyperslab._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Hyperslab(pub(crate) hyperslab_core::Hyperslab);

impl Hyperslab {
    fn per_axis(&self, parameter: fn(&AxisSelection) -> u64) -> Vec<u64> {
        self.0.axes().iter().map(parameter).collect()
    }
}

#[pymethods]
impl Hyperslab {
    #[new]
    #[pyo3(signature = (start, stride=None, count=None, block=None))]
    fn new(
        start: &Bound<'_, PyAny>,
        stride: Option<&Bound<'_, PyAny>>,
        count: Option<&Bound<'_, PyAny>>,
        block: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let start = integers::per_axis("start", start)?;
        let or_default = |name, given: Option<&Bound<'_, PyAny>>, default: Vec<u64>| {
            given.map_or(Ok(default), |given| integers::per_axis(name, given))
        };
        let ones = vec![1; start.len()];
        let block = or_default("block", block, ones.clone())?;
        let count = or_default("count", count, ones)?;
        let stride = or_default("stride", stride, block.clone())?;
        hyperslab_core::Hyperslab::new(&start, &stride, &count, &block).map(Self).map_err(to_python)
    }

    /// What `array[index]` selects in an array of `shape`. An int keeps its axis, with length 1.
    #[staticmethod]
    fn from_slices(slices: &Bound<'_, PyAny>, shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        let axes = slices::parse(slices, &integers::per_axis("shape", shape)?)?;
        hyperslab_core::Hyperslab::from_axes(axes).map(Self).map_err(to_python)
    }

    /// Everything in an array of `shape`.
    #[staticmethod]
    fn all(shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        hyperslab_core::Hyperslab::all(&integers::per_axis("shape", shape)?).map(Self).map_err(to_python)
    }

    /// The first index selected, per axis.
    #[getter]
    fn start<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, &self.per_axis(AxisSelection::start))
    }

    /// The distance between the starts of neighbouring blocks, per axis.
    #[getter]
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, &self.per_axis(AxisSelection::stride))
    }

    /// The number of blocks, per axis.
    #[getter]
    fn count<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, &self.per_axis(AxisSelection::count))
    }

    /// The length of a block, per axis.
    #[getter]
    fn block<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, &self.per_axis(AxisSelection::block))
    }

    /// The shape of the output.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, &self.0.shape())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.ndim()
    }

    /// The number of elements selected.
    #[getter]
    fn size(&self) -> u64 {
        self.0.len()
    }

    /// The smallest half-open interval `(start, stop)` that holds the selection, per axis.
    #[getter]
    fn bounds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.bounds())
    }

    /// The slices that select the same elements.
    #[getter]
    fn slices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let axes = self.0.axes().iter().enumerate();
        let slices: PyResult<Vec<Bound<'py, PySlice>>> =
            axes.map(|(axis, selected)| slices::from_axis(py, axis, selected)).collect();
        PyTuple::new(py, slices?)
    }

    /// Whether the selection is one box without gaps.
    #[getter]
    fn is_contiguous_box(&self) -> bool {
        self.0.is_contiguous_box()
    }

    /// Raise `IndexError` unless an array of `shape` has every selected element.
    fn check_within(&self, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.check_within(&integers::per_axis("shape", shape)?).map_err(to_python)
    }

    fn __repr__(&self) -> String {
        let parameter = |name, values: Vec<u64>| format!("{name}={}", integers::repr(&values));
        let parameters = [
            parameter("start", self.per_axis(AxisSelection::start)),
            parameter("stride", self.per_axis(AxisSelection::stride)),
            parameter("count", self.per_axis(AxisSelection::count)),
            parameter("block", self.per_axis(AxisSelection::block)),
        ];
        format!("Hyperslab({})", parameters.join(", "))
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, [self.start(py)?, self.stride(py)?, self.count(py)?, self.block(py)?])
    }
}
