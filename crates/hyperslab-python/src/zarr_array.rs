//! `ZarrArray`: an array of a Zarr folder that others write to. Each read looks for its chunks again.

use std::path::PathBuf;
use std::sync::Arc;

use hyperslab_archive::{ArraySelection, Keys, ReadOptions};
use hyperslab_engine::RemoteFolder;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::callbacks::Signals;
use crate::panics::detached;
use crate::points::Points;
use crate::remote::RemoteFile;
use crate::{axes, dtypes, errors, integers};

/// An array of a folder that others write to.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct ZarrArray(hyperslab_archive::ZarrArray);

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl ZarrArray {
    #[new]
    #[pyo3(signature = (document, folder, fill=None))]
    fn new(document: &[u8], folder: &Bound<'_, PyAny>, fill: Option<Vec<u8>>) -> PyResult<Self> {
        let keys = match folder.cast::<RemoteFile>() {
            Ok(far) => {
                let file = &far.get().0;
                Keys::Far(Arc::new(RemoteFolder::new(file.location.clone(), file.options.clone())))
            }
            Err(_) => Keys::Local(folder.extract::<PathBuf>()?),
        };
        let name = keys.name();
        let made = hyperslab_archive::ZarrArray::new(document, keys, fill);
        made.map(Self).map_err(|reason| errors::unreadable(&reason, format!("{name}: {reason}")))
    }

    /// The dtype of an element.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtypes::dtype(py, &self.0.element())
    }

    /// The shape of what one key holds.
    #[getter]
    fn key_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, self.0.key_shape())
    }

    /// Reads a selection, in an array of this shape, into the bytes of its output.
    fn read_into(
        &self,
        shape: Vec<u64>,
        asked: Vec<Bound<'_, PyAny>>,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        self.read(&shape, &ArraySelection::Axes(axes::parse(&asked)?), out, threads)
    }

    /// Reads points, in an array of this shape.
    fn read_points_into(
        &self,
        shape: Vec<u64>,
        points: &Points,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        self.read(&shape, &ArraySelection::Points(&points.0), out, threads)
    }
}

impl ZarrArray {
    fn read(
        &self,
        shape: &[u64],
        selection: &ArraySelection<'_>,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        let mut bytes = out.try_readwrite()?;
        let bytes = bytes.as_slice_mut()?;
        let options = ReadOptions { thread_count: threads, ..ReadOptions::default() };
        let read = || self.0.read_into(shape, selection, bytes, options, &Signals);
        detached(out.py(), read)?.map_err(errors::of_archive)
    }
}
