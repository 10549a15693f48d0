//! `serve_requests`: a discrete-event simulation of processes that wait for servers.

use crate::panics::detached;
use hyperslab_model::ServerRequests;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Served<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// When each process ends, and how long each server was busy.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // as PyO3 extracts them
pub(crate) fn serve_requests<'py>(
    py: Python<'py>,
    starts: PyReadonlyArray1<'py, u64>,
    servers: PyReadonlyArray1<'py, u32>,
    service_seconds: PyReadonlyArray1<'py, f64>,
    process_seconds: PyReadonlyArray1<'py, f64>,
    server_count: u32,
) -> PyResult<Served<'py>> {
    let requests = ServerRequests {
        starts: starts.as_slice()?,
        servers: servers.as_slice()?,
        service_seconds: service_seconds.as_slice()?,
        process_seconds: process_seconds.as_slice()?,
    };
    let served = detached(py, || requests.serve(server_count))?
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((PyArray1::from_vec(py, served.end_seconds), PyArray1::from_vec(py, served.busy_seconds)))
}
