//! Remote files: how Python tells where they are, and what reading them cost.

use std::sync::Arc;
use std::time::Duration;

use hyperslab_archive as archive;
use hyperslab_engine::{ByteCache, Location, RemoteOptions, UrlParts, WebUrl, remote_statistics};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::panics::caught;

/// Where a remote file is and how to reach it. It includes secrets, so it cannot be shown or pickled.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct RemoteFile(pub(crate) archive::RemoteFile);

#[pymethods]
impl RemoteFile {
    #[new]
    #[pyo3(signature = (url, *, config, headers, connect_timeout, timeout, attempts, patience, concurrency, cache_nbytes, allowed=None))]
    #[allow(clippy::too_many_arguments)] // one for each keyword
    fn new(
        url: String,
        config: Vec<(String, String)>,
        headers: Vec<(String, String)>,
        connect_timeout: f64,
        timeout: f64,
        attempts: u32,
        patience: f64,
        concurrency: Option<usize>,
        cache_nbytes: usize,
        allowed: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let options = RemoteOptions {
            config,
            headers,
            connect_timeout: seconds("connect_timeout", connect_timeout)?,
            timeout: seconds("timeout", timeout)?,
            most_attempts: attempts.max(1),
            patience: seconds("patience", patience)?,
            most_in_flight: concurrency,
            allowed,
            cache: Arc::new(ByteCache::new(cache_nbytes)),
            kept_as: None,
        };
        let location = caught(|| Location::of_url(&url, &options))?.map_err(errors::usage)?;
        Ok(Self(archive::RemoteFile { url, location, options }))
    }

    /// The URL without its secrets.
    #[getter]
    fn name(&self) -> &str {
        &self.0.location.name
    }
}

fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| PyValueError::new_err(format!("{name} is {value}: give seconds above 0")))
}

/// What this process asked of each host: a dict of counts per host.
#[pyfunction]
pub(crate) fn host_statistics(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let hosts = PyDict::new(py);
    for (name, statistics) in remote_statistics() {
        let counts = PyDict::new(py);
        counts.set_item("request_count", statistics.request_count)?;
        counts.set_item("retry_count", statistics.retry_count)?;
        counts.set_item("redirect_count", statistics.redirect_count)?;
        counts.set_item("round_count", statistics.round_count)?;
        counts.set_item("fetched_nbytes", statistics.fetched_nbytes)?;
        counts.set_item("reused_nbytes", statistics.reused_nbytes)?;
        hosts.set_item(name, counts)?;
    }
    Ok(hosts)
}

/// Scheme, user, password, server, path and query of an HTTP URL, as requests use them; None if it is not an HTTP URL.
#[pyfunction]
#[allow(clippy::type_complexity)] // a Python tuple
pub(crate) fn web_url(text: &str) -> Option<(String, String, String, String, String, Option<String>)> {
    let WebUrl { scheme, user, password, server, path, query } = WebUrl::parse(text)?;
    Some((scheme, user, password, server, path, query))
}

/// The parts of a URL by which prefixes are compared, and whether it never goes up (`..`); None if it can mean more
/// than one location.
#[pyfunction]
pub(crate) fn url_parts(text: &str) -> Option<(String, String, Vec<Vec<u8>>, bool)> {
    let UrlParts { kind, server, path, is_straight } = UrlParts::parse(text)?;
    Some((kind, server, path, is_straight))
}
