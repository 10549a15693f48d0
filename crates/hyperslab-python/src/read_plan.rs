//! `ReadPlan`: what reading a selection takes, before anything is read.

use hyperslab_core::{CoalescePolicy, PlanTotals, Request, merged};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::integers;
use crate::virtual_sources::WholeArray;

/// The chunks, requests and bytes of one read.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct ReadPlan {
    whole: WholeArray,
    /// One, or one for each group of points.
    plans: Vec<hyperslab_core::ReadPlan>,
    shape: Vec<u64>,
    totals: PlanTotals,
}

impl ReadPlan {
    pub(crate) fn new(whole: WholeArray, plan: hyperslab_core::ReadPlan) -> Self {
        let totals = plan.totals(whole.array());
        Self { whole, shape: plan.shape().to_vec(), plans: vec![plan], totals }
    }

    pub(crate) fn of_points(
        whole: WholeArray,
        plans: Vec<hyperslab_core::ReadPlan>,
        point_count: u64,
    ) -> Self {
        let totals = PlanTotals::of_points(&plans, whole.array(), point_count);
        Self { whole, shape: vec![point_count], plans, totals }
    }

    fn merged(&self) -> Vec<Request> {
        let (array, policy) = (self.whole.array(), CoalescePolicy::LOCAL);
        match self.plans.as_slice() {
            [plan] => plan.requests(array, policy),
            plans => merged(plans.iter().flat_map(|plan| plan.requests(array, policy)).collect(), policy),
        }
    }
}

type Columns<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

#[pymethods]
impl ReadPlan {
    /// The shape of the output.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, &self.shape)
    }

    /// Elements of the output.
    #[getter]
    fn element_count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Chunks touched.
    #[getter]
    fn chunk_count(&self) -> u64 {
        self.totals.chunk_count
    }

    /// Of these, never written.
    #[getter]
    fn missing_chunk_count(&self) -> u64 {
        self.totals.missing_chunk_count
    }

    /// Requests after neighbours are merged.
    #[getter]
    fn request_count(&self, py: Python<'_>) -> usize {
        py.detach(|| self.merged().len())
    }

    /// Bytes to fetch.
    #[getter]
    fn fetched_nbytes(&self) -> u64 {
        self.totals.fetched_nbytes
    }

    /// Bytes that come out of the codecs, or are read plain.
    #[getter]
    fn decoded_nbytes(&self) -> u64 {
        self.totals.decoded_nbytes
    }

    /// Bytes of the output.
    #[getter]
    fn output_nbytes(&self) -> u64 {
        self.totals.output_nbytes
    }

    /// Bytes decoded per byte of the output; None if nothing is selected.
    #[getter]
    fn read_amplification(&self) -> Option<f64> {
        self.totals.read_amplification()
    }

    /// The requests: file numbers, offsets, lengths.
    fn requests<'py>(&self, py: Python<'py>) -> Columns<'py> {
        let merged = py.detach(|| self.merged());
        let column = |value: fn(&Request) -> u64| PyArray1::from_iter(py, merged.iter().map(value));
        let files = PyArray1::from_iter(py, merged.iter().map(|request| request.file));
        (files, column(|request| request.range.offset), column(|request| request.range.length))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let totals = &self.totals;
        let amplification =
            totals.read_amplification().map_or("None".to_owned(), |ratio| format!("{ratio:.3}"));
        format!(
            "ReadPlan(shape={}, chunk_count={}, missing_chunk_count={}, request_count={}, fetched_nbytes={}, \
             decoded_nbytes={}, output_nbytes={}, read_amplification={amplification})",
            integers::repr(&self.shape),
            totals.chunk_count,
            totals.missing_chunk_count,
            self.request_count(py),
            totals.fetched_nbytes,
            totals.decoded_nbytes,
            totals.output_nbytes,
        )
    }
}
