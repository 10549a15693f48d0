//! Opens local files for Python by the one rule that holds for all of them.

use std::fs::File;
use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::errors;

/// A descriptor of a regular file that is open for reading; the caller closes it.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn open_regular(path: PathBuf) -> PyResult<i32> {
    let file = hyperslab_parsers::open_regular(&path).map_err(|error| match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string(), path.display().to_string())),
        None => errors::read(format!("{}: {error}", path.display())),
    })?;
    Ok(descriptor(file))
}

#[cfg(unix)]
fn descriptor(file: File) -> i32 {
    std::os::fd::IntoRawFd::into_raw_fd(file)
}

#[cfg(not(unix))]
fn descriptor(_: File) -> i32 {
    -1 // `regular_files.py` does not ask here
}
