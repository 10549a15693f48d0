//! `StoredArray`: an array of an open file; plans and reads selections of it.

use std::sync::Arc;

use hyperslab_core::{Array, Codec, Element, Fill, Orthogonal, PlanError, Segment};
use hyperslab_engine::{Execution, ReadError, default_thread_count, execute, tidy};
use hyperslab_parsers::{self as parsers, Pages, Policy, Source};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::archive_file::{Bytes, Opened, attributes};
use crate::format::Format;
use crate::read_plan::ReadPlan;
use crate::sources::{Interrupts, LocalSource, RemoteSource};
use crate::{axes, dtypes, errors, integers, values};

/// An array of an open file.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct StoredArray {
    file: Arc<Opened>,
    number: usize,
    path: String,
}

impl StoredArray {
    pub(crate) fn new(file: Arc<Opened>, number: usize, path: String) -> Self {
        Self { file, number, path }
    }

    fn described(&self) -> &Array {
        &self.file.tree.arrays[self.number] // checked where it was made
    }

    fn segments(&self) -> &[Segment] {
        self.described().segments.as_deref().unwrap_or_default()
    }

    fn planned(&self, selection: &Orthogonal) -> PyResult<hyperslab_core::ReadPlan> {
        hyperslab_core::ReadPlan::new(self.described(), selection).map_err(|problem| self.plan_error(problem))
    }

    fn plan_error(&self, problem: PlanError) -> PyErr {
        let (file, array) = (self.file.name.clone(), self.path.clone());
        errors::of_read(ReadError::Plan { file, array, problem })
    }

    /// Read without the interpreter; a signal whose handler raises stops the read.
    fn execute(
        &self,
        py: Python<'_>,
        plan: &hyperslab_core::ReadPlan,
        out: &mut [u8],
        threads: Option<usize>,
    ) -> PyResult<()> {
        let mut raised = None;
        let done = py.detach(|| {
            let mut poll = || {
                #[allow(clippy::redundant_closure_for_method_calls)] // a path is of one lifetime only
                let checked = Python::attach(|py| py.check_signals());
                raised = checked.err();
                raised.is_some()
            };
            let execution = Execution {
                plan,
                array: self.described(),
                array_name: &self.path,
                array_number: self.number as u64,
                stores: &self.file.stores,
                cache: &self.file.cache,
                thread_count: threads.unwrap_or_else(default_thread_count),
            };
            execute(&execution, out, &mut poll).map(|()| tidy(&self.described().element, out))
        });
        raised.map_or_else(|| done.map_err(errors::of_read), Err)
    }
}

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl StoredArray {
    /// The array's shape; None if it has no elements at all.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.described().shape.as_ref().map(|shape| integers::tuple(py, shape)).transpose()
    }

    /// The largest shape that it may grow to; None on an axis without bound.
    #[getter]
    fn max_shape(&self) -> Vec<Option<u64>> {
        self.described().max_shape.clone()
    }

    /// The names of its dimensions, if it has any.
    #[getter]
    fn dimensions(&self) -> Option<Vec<String>> {
        self.described().dimensions.clone()
    }

    /// The dtype of an element.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtypes::dtype(py, &self.described().element)
    }

    /// Bytes of an element as stored.
    #[getter]
    fn element_nbytes(&self) -> u64 {
        self.described().element.nbytes()
    }

    /// Whether elements are pointers to values elsewhere in the file: `resolve` follows them.
    #[getter]
    fn has_pointers(&self) -> bool {
        dtypes::has_pointers(&self.described().element)
    }

    /// How many parts, each with chunks of its own, the array is made of.
    #[getter]
    fn segment_count(&self) -> usize {
        self.segments().len()
    }

    /// The shape of a chunk; None if the array is not chunked, or its parts differ.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some((first, others)) = self.segments().split_first() else { return Ok(None) };
        let grid = &first.grid;
        let differ = others.iter().any(|segment| segment.grid.chunk_shape() != grid.chunk_shape());
        let is_one_piece =
            (grid.shape().iter().zip(grid.chunk_shape())).all(|(&length, &chunk)| chunk == length.max(1));
        if differ || (others.is_empty() && first.codecs.is_empty() && is_one_piece) {
            return Ok(None);
        }
        integers::tuple(py, grid.chunk_shape()).map(Some)
    }

    /// The names of the codecs, in the order of encoding; of the first segment where there are several.
    #[getter]
    fn codecs(&self) -> Vec<&str> {
        self.segments()
            .first()
            .map_or_else(Vec::new, |segment| segment.codecs.iter().map(Codec::name).collect())
    }

    /// Chunks that are stored.
    #[getter]
    fn stored_chunk_count(&self) -> u64 {
        self.segments().iter().map(|segment| segment.manifest.chunk_count()).sum()
    }

    /// Chunks that there could be.
    #[getter]
    fn chunk_count(&self) -> u64 {
        self.segments().iter().map(|segment| segment.grid.chunk_count()).sum()
    }

    /// Bytes of the stored chunks.
    #[getter]
    fn stored_nbytes(&self) -> u64 {
        self.segments().iter().map(|segment| segment.manifest.stored_nbytes()).sum()
    }

    /// Why the array cannot be read here; None if it can.
    #[getter]
    fn unsupported(&self, py: Python<'_>) -> Option<String> {
        let array = self.described();
        if let Err(feature) = &array.segments {
            return Some(feature.clone());
        }
        let nothing = vec![0_u64; array.shape.as_ref()?.len()];
        let plan = hyperslab_core::Orthogonal::all(&nothing)
            .map_err(PlanError::from)
            .and_then(|nothing| hyperslab_core::ReadPlan::new(array, &nothing));
        if let Err(PlanError::Unsupported { feature }) = plan {
            return Some(feature);
        }
        dtypes::dtype(py, &array.element).err().map(|error| error.value(py).to_string())
    }

    /// One element with the fill value, as bytes; None if the writer said that there is none.
    #[getter]
    fn fill<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let array = self.described();
        match &array.fill {
            Fill::Undefined => None,
            Fill::Zero => {
                PyBytes::new_with(py, usize::try_from(array.element.nbytes()).ok()?, |_| Ok(())).ok()
            }
            Fill::Value(value) => {
                let mut value = value.clone();
                tidy(&array.element, &mut value);
                Some(PyBytes::new(py, &value))
            }
        }
    }

    /// The array's attributes.
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        attributes(py, &self.described().attributes)
    }

    /// What reading a selection takes.
    fn plan(&self, asked: Vec<Bound<'_, PyAny>>) -> PyResult<ReadPlan> {
        let plan = self.planned(&axes::parse(&asked)?)?;
        Ok(ReadPlan::new(Arc::clone(&self.file), self.number, plan))
    }

    /// Read a selection into the bytes of its output.
    fn read_into(
        &self,
        asked: Vec<Bound<'_, PyAny>>,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        let plan = self.planned(&axes::parse(&asked)?)?;
        let mut bytes = out.try_readwrite()?;
        self.execute(out.py(), &plan, bytes.as_slice_mut()?, threads)
    }

    /// The values that elements, as they were read, point to: one object each.
    fn resolve<'py>(&self, elements: &Bound<'py, PyArray1<u8>>) -> PyResult<Bound<'py, PyList>> {
        let py = elements.py();
        let (element, bytes) = (&self.described().element, elements.try_readonly()?);
        let bytes = bytes.as_slice()?;
        let interrupts = Interrupts::default();
        let heap = py.detach(|| self.heap(element, bytes, &interrupts));
        let heap = heap.map_err(|error| interrupts.raised().unwrap_or(error))?;
        values::objects(py, element, bytes, &mut heap.iter().map(Vec::as_slice))
    }
}

impl StoredArray {
    fn heap(&self, element: &Element, bytes: &[u8], interrupts: &Interrupts) -> PyResult<Vec<Vec<u8>>> {
        let of_parser = |error| errors::of_parser(&self.file.name, error);
        match &self.file.bytes {
            Bytes::Local(store) => {
                self.pointed(element, bytes, &LocalSource(store), Policy::LOCAL).map_err(of_parser)
            }
            Bytes::Remote(store) => {
                let source = RemoteSource::new(store, &[], interrupts);
                let policy = Policy { first_nbytes: 0, ..Policy::REMOTE };
                let found = self.pointed(element, bytes, &source, policy);
                let failure = source.failure();
                found.map_err(|error| failure.map_or_else(|| of_parser(error), errors::of_read))
            }
            Bytes::Folder => Err(of_parser(no_pointers())),
        }
    }

    fn pointed(
        &self,
        element: &Element,
        bytes: &[u8],
        source: &dyn Source,
        policy: Policy,
    ) -> Result<Vec<Vec<u8>>, parsers::Error> {
        if self.file.format != Format::Hdf5 {
            return Err(no_pointers());
        }
        let width = values::pointer_nbytes(element).and_then(|nbytes| usize::try_from(nbytes).ok());
        let mut pointers = Vec::new();
        values::pointers(element, bytes, &mut pointers);
        let mut pages = Pages::new(source, policy);
        parsers::hdf5::resolve_pointers(&mut pages, &pointers, width.unwrap_or_default())
    }
}

fn no_pointers() -> parsers::Error {
    parsers::Error::Unsupported { feature: "elements of any length outside HDF5".to_owned() }
}
