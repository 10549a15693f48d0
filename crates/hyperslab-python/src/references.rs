//! Saves references: writes archives into one file that opens at once. And indexes that stand at the end of their file.

use std::path::PathBuf;
use std::sync::Arc;

use hyperslab_archive::{Archive, SaveError};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::archive_file::ArchiveFile;
use crate::errors;
use crate::panics::detached;

/// The index of an HDF5 file, and where in the file it belongs; `None` if it has no place there.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn embedded_index(py: Python<'_>, path: PathBuf) -> PyResult<Option<(u64, Bound<'_, PyBytes>)>> {
    let made = detached(py, || hyperslab_archive::embedded_index(&path))?.map_err(errors::of_archive)?;
    Ok(made.map(|(end, index)| (end, PyBytes::new(py, &index))))
}

/// Writes the references of archives to a file at `path`, which will stand in `folder`. An archive named "" becomes the
/// root, the others become groups. Returns the number of arrays and the number of stored chunks.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn save_references(
    py: Python<'_>,
    path: PathBuf,
    folder: PathBuf,
    archives: Vec<(String, Py<ArchiveFile>)>,
) -> PyResult<(u64, u64)> {
    let archives: Vec<(String, Arc<Archive>)> =
        archives.into_iter().map(|(name, file)| (name, Arc::clone(&file.get().0))).collect();
    let saved = detached(py, || hyperslab_archive::save_references(&path, &folder, &archives))?;
    saved.map_err(|error| match error {
        SaveError::System(error) => PyOSError::new_err((error.raw_os_error(), error.to_string(), path)),
        SaveError::Source(error) => errors::of_archive(error),
        SaveError::Path(_) => PyValueError::new_err(error.to_string()),
    })
}
