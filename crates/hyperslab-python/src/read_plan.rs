//! `ReadPlan`: what reading a selection takes, before anything is read.

use std::sync::OnceLock;

use hyperslab_core::{PlanTotals, Request};
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
    /// How many points, if points are read.
    point_count: Option<u64>,
    /// Made when first asked for: that takes as long as all requests.
    totals: OnceLock<PlanTotals>,
}

impl ReadPlan {
    pub(crate) fn new(whole: WholeArray, plan: hyperslab_core::ReadPlan) -> Self {
        let (shape, point_count) = (plan.shape().to_vec(), None);
        Self { whole, shape, point_count, plans: vec![plan], totals: OnceLock::new() }
    }

    pub(crate) fn of_points(
        whole: WholeArray,
        plans: Vec<hyperslab_core::ReadPlan>,
        point_count: u64,
    ) -> Self {
        let shape = vec![point_count];
        Self { whole, shape, point_count: Some(point_count), plans, totals: OnceLock::new() }
    }

    fn totals(&self, py: Python<'_>) -> &PlanTotals {
        let (array, policy) = (self.whole.array(), self.whole.stores().policy());
        let made = || match (self.point_count, self.plans.as_slice()) {
            (None, [plan]) => plan.totals(array, policy),
            (count, plans) => PlanTotals::of_points(plans, array, count.unwrap_or(0), policy),
        };
        py.detach(|| self.totals.get_or_init(made))
    }

    fn all_requests(&self) -> Vec<Request> {
        let (array, policy) = (self.whole.array(), self.whole.stores().policy());
        let mut requests: Vec<Request> =
            self.plans.iter().flat_map(|plan| plan.requests(array, policy)).collect();
        requests.sort_unstable();
        requests
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
    fn chunk_count(&self, py: Python<'_>) -> u64 {
        self.totals(py).chunk_count
    }

    /// Of these, never written.
    #[getter]
    fn missing_chunk_count(&self, py: Python<'_>) -> u64 {
        self.totals(py).missing_chunk_count
    }

    /// Requests after neighbours are merged.
    #[getter]
    fn request_count(&self, py: Python<'_>) -> u64 {
        self.totals(py).request_count
    }

    /// Bytes to fetch.
    #[getter]
    fn fetched_nbytes(&self, py: Python<'_>) -> u64 {
        self.totals(py).fetched_nbytes
    }

    /// Bytes that come out of the codecs, or are read plain.
    #[getter]
    fn decoded_nbytes(&self, py: Python<'_>) -> u64 {
        self.totals(py).decoded_nbytes
    }

    /// Bytes of the output.
    #[getter]
    fn output_nbytes(&self, py: Python<'_>) -> u64 {
        self.totals(py).output_nbytes
    }

    /// Bytes decoded per byte of the output; None if nothing is selected.
    #[getter]
    fn read_amplification(&self, py: Python<'_>) -> Option<f64> {
        self.totals(py).read_amplification()
    }

    /// The requests: file numbers, offsets, lengths.
    fn requests<'py>(&self, py: Python<'py>) -> Columns<'py> {
        let requests = py.detach(|| self.all_requests());
        let column = |value: fn(&Request) -> u64| PyArray1::from_iter(py, requests.iter().map(value));
        let files = PyArray1::from_iter(py, requests.iter().map(|request| request.file));
        (files, column(|request| request.range.offset), column(|request| request.range.length))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let totals = self.totals(py);
        let amplification =
            totals.read_amplification().map_or("None".to_owned(), |ratio| format!("{ratio:.3}"));
        format!(
            "ReadPlan(shape={}, chunk_count={}, missing_chunk_count={}, request_count={}, fetched_nbytes={}, \
             decoded_nbytes={}, output_nbytes={}, read_amplification={amplification})",
            integers::repr(&self.shape),
            totals.chunk_count,
            totals.missing_chunk_count,
            totals.request_count,
            totals.fetched_nbytes,
            totals.decoded_nbytes,
            totals.output_nbytes,
        )
    }
}
