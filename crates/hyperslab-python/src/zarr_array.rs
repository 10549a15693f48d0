//! `ZarrArray`: an array of a Zarr folder that others write to; each read looks for its chunks anew.

use std::path::PathBuf;
use std::sync::Arc;

use hyperslab_core::{PlanError, ReadPlan};
use hyperslab_engine::{ChunkCache, ReadError, RemoteFolder};
use hyperslab_parsers::zarr::ArrayDocument;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::points::Points;
use crate::reading::{Asked, Reading};
use crate::remote::RemoteFile;
use crate::sought::{Keys, Sought};
use crate::{axes, dtypes, errors, integers};

/// Reads that are made anew if a shard was replaced between its index and its subchunks.
const MOST_ATTEMPTS: u32 = 8;

/// An array of a folder that others write to.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct ZarrArray {
    document: ArrayDocument,
    keys: Keys,
    name: String,
    cache: ChunkCache,
}

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl ZarrArray {
    #[new]
    #[pyo3(signature = (document, folder, fill=None))]
    fn new(document: &[u8], folder: &Bound<'_, PyAny>, fill: Option<Vec<u8>>) -> PyResult<Self> {
        let keys = match folder.cast::<RemoteFile>() {
            Ok(far) => {
                let RemoteFile { location, options, .. } = far.get();
                Keys::Far(Arc::new(RemoteFolder::new(location.clone(), options.clone())))
            }
            Err(_) => Keys::Local(folder.extract::<PathBuf>()?),
        };
        let name = keys.name();
        let fault = |reason: &_| errors::unreadable(reason, format!("{name}: {reason}"));
        let document = ArrayDocument::of(document, "").map_err(|reason| fault(&reason))?;
        if let Some(reason) = document.unreadable() {
            return Err(fault(reason));
        }
        let document = match fill {
            Some(element) => document.with_fill(element),
            None => document,
        };
        Ok(Self { document, keys, name, cache: ChunkCache::new(0) })
    }

    /// The dtype of an element.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtypes::dtype(py, &self.document.empty().element)
    }

    /// The shape of what one key holds.
    #[getter]
    fn key_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, self.document.key_shape())
    }

    /// Read a selection, in an array of this shape, into the bytes of its output.
    fn read_into(
        &self,
        shape: Vec<u64>,
        asked: Vec<Bound<'_, PyAny>>,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        self.read(&shape, &Asked::Axes(axes::parse(&asked)?), out, threads)
    }

    /// Read points of an array of this shape.
    fn read_points_into(
        &self,
        shape: Vec<u64>,
        points: &Points,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        self.read(&shape, &Asked::Points(&points.0), out, threads)
    }
}

impl ZarrArray {
    fn read(
        &self,
        shape: &[u64],
        asked: &Asked<'_>,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        let py = out.py();
        let mut bytes = out.try_readwrite()?;
        let bytes = bytes.as_slice_mut()?;
        let mut attempt = 1;
        loop {
            let sought = py.detach(|| self.sought(shape, asked));
            let sought = sought.map_err(errors::of_read)?;
            let reading = Reading {
                array: &sought.array,
                name: &self.name,
                number: sought.number,
                stores: &sought.stores,
                cache: &self.cache,
                is_reused: false,
            };
            let planned = asked.planned(&sought.array, |selection| ReadPlan::new(&sought.array, selection));
            let planned = planned.map_err(|problem| errors::of_read(self.refused(problem)))?;
            match reading.carry_out(py, &planned, bytes, threads)? {
                Err(ReadError::FileChanged { .. }) if attempt < MOST_ATTEMPTS => attempt += 1,
                done => return done.map_err(errors::of_read),
            }
        }
    }

    fn sought(&self, shape: &[u64], asked: &Asked<'_>) -> Result<Sought, ReadError> {
        let touched = asked.touched(&self.document, shape).map_err(|problem| self.refused(problem))?;
        Sought::new(&self.document, &self.keys, shape, &touched, 0, &|| false)
    }

    fn refused(&self, problem: PlanError) -> ReadError {
        ReadError::Plan { file: self.name.clone(), array: self.name.clone(), problem }
    }
}
