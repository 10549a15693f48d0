//! `StoredArray`: an array of an open file. Plans and reads selections of it.

use std::ffi::OsString;

use hyperslab_archive::{ArchiveArray, ArraySelection, Error, ReadOptions};
use hyperslab_core::{ChunkLengths, Fill, Role, Unreadable};
use hyperslab_engine::tidy;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::panics::detached;
use crate::points::Points;
use crate::read_plan::ReadPlan;
use crate::segment::Segment;
use crate::{axes, dtypes, errors, integers, object_facts, values};

/// An array of an open file.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct StoredArray(pub(crate) ArchiveArray);

impl StoredArray {
    /// Calls `ask` on the array, without holding the interpreter.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&ArchiveArray) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        detached(py, || ask(&self.0))?.map_err(errors::of_archive)
    }

    /// Reads what is asked for into `out`.
    fn read(
        &self,
        selection: &ArraySelection<'_>,
        out: &Bound<'_, PyArray1<u8>>,
        options: ReadOptions,
    ) -> PyResult<()> {
        let mut bytes = out.try_readwrite()?;
        let bytes = bytes.as_slice_mut()?;
        self.ask(out.py(), |array| array.read_into(selection, bytes, options))
    }
}

impl StoredArray {
    /// The objects that the elements point to.
    fn objects<'py>(
        &self,
        selection: &ArraySelection<'_>,
        pointers: &Bound<'py, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, options) = (pointers.py(), ReadOptions { thread_count: threads, ..ReadOptions::default() });
        let mut bytes = pointers.try_readwrite()?;
        let bytes = bytes.as_slice_mut()?;
        let values = self.ask(py, |array| array.read_values(selection, bytes, options))?;
        let names = &self.0.heap_archive().tree().names;
        let made = values::Pointed::new(&values, names).objects(py, &self.0.described().element, bytes);
        let place = || format!("array {} of {}", self.0.path(), self.0.archive().name());
        made.map_err(|error| errors::at(py, error, &place()))
    }
}

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl StoredArray {
    /// The array's shape; None if it holds no elements at all.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let described = self.0.described();
        if !described.virtual_mappings.grow() {
            return described.shape.as_ref().map(|shape| integers::tuple(py, shape)).transpose();
        }
        let shape = self.ask(py, ArchiveArray::shape)?;
        shape.map(|shape| integers::tuple(py, &shape)).transpose()
    }

    /// The largest shape that it may grow to; None for an unlimited axis.
    #[getter]
    fn max_shape(&self) -> Vec<Option<u64>> {
        self.0.described().max_shape.clone()
    }

    /// The names of its dimensions, if it has any.
    #[getter]
    fn dimensions(&self) -> Option<Vec<String>> {
        self.0.described().dimensions.clone()
    }

    /// The dtype of an element.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtypes::dtype(py, &self.0.described().element)
    }

    /// Bytes of an element as stored.
    #[getter]
    fn element_nbytes(&self) -> u64 {
        self.0.described().element.nbytes()
    }

    /// Whether elements point to values elsewhere, or to objects: `read_objects` follows them.
    #[getter]
    fn has_pointers(&self) -> bool {
        self.0.described().element.has_pointers()
    }

    /// How many segments the array has.
    #[getter]
    fn segment_count(&self, py: Python<'_>) -> PyResult<usize> {
        let whole = self.ask(py, ArchiveArray::chunked)?;
        Ok(whole.map_or(0, |whole| whole.array().segments.as_ref().map_or(0, Vec::len)))
    }

    /// The segments of the array; none if we cannot read it.
    #[pyo3(name = "segments")]
    fn parts(&self, py: Python<'_>) -> PyResult<Vec<Segment>> {
        let whole = self.ask(py, ArchiveArray::chunked)?;
        Ok(whole.as_ref().map_or_else(Vec::new, Segment::all))
    }

    /// Paths or URLs of the files that hold its chunks, by file number. A folder has no number 0.
    fn file_paths(&self, py: Python<'_>) -> PyResult<Vec<Option<OsString>>> {
        let paths = self.ask(py, ArchiveArray::file_paths)?;
        Ok(paths.into_iter().map(|path| path.map(Into::into)).collect()) // not `pathlib` paths: these may be URLs
    }

    /// The shape of a chunk; None if the array is not chunked, or if its parts differ. A virtual array has chunks only
    /// if each of them is exactly one chunk of its source.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let is_virtual = !self.0.described().virtual_mappings.is_empty();
        let shape = if is_virtual { detached(py, || self.0.chunk_shape())? } else { self.0.chunk_shape() };
        shape.map(|shape| integers::tuple(py, &shape)).transpose()
    }

    /// The lengths of the consecutive chunks along each axis. Chunks of equal length give one number.
    fn chunk_lengths(&self, py: Python<'_>) -> PyResult<Option<Vec<Vec<u64>>>> {
        let lengths = |along| match along {
            ChunkLengths::Same(length) => vec![length],
            ChunkLengths::Each(lengths) => lengths,
        };
        let found = self.ask(py, ArchiveArray::chunk_lengths)?;
        Ok(found.map(|axes| axes.into_iter().map(lengths).collect()))
    }

    /// The names of the codecs in encoding order. With several segments, those of the first one.
    #[getter]
    fn codecs(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.ask(py, ArchiveArray::codec_names)
    }

    /// The HDF5 filters in encoding order: the number and the parameters of each.
    #[getter]
    fn filters(&self) -> Vec<(u16, Vec<u32>)> {
        self.0.described().notes.filters.clone()
    }

    /// The name of the elements' committed HDF5 datatype.
    #[getter]
    fn type_name(&self) -> Option<String> {
        self.0.described().notes.type_name.clone()
    }

    /// How many chunks are stored; None if no index lists them.
    #[getter]
    fn stored_chunk_count(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.ask(py, ArchiveArray::stored_chunk_count)
    }

    /// How many chunks the grid has.
    #[getter]
    fn chunk_count(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, ArchiveArray::chunk_count)
    }

    /// Bytes of the stored chunks; None if no index lists them.
    #[getter]
    fn stored_nbytes(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.ask(py, ArchiveArray::stored_nbytes)
    }

    /// The feature that keeps us from reading the array; None if there is none, as far as that is known before its
    /// chunks are looked up.
    #[getter]
    fn unsupported(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let unreadable = if self.0.is_readable_before_lookup() { None } else { self.unreadable(py)? };
        Ok(match unreadable {
            Some(Unreadable::Unsupported { feature }) => Some(feature),
            Some(Unreadable::Damaged { .. } | Unreadable::Unfetched { .. }) => None,
            None => {
                let dtype = dtypes::dtype(py, &self.0.described().element);
                dtype.err().map(|error| error.value(py).to_string())
            }
        })
    }

    /// Why none of the array can be read, if its description is damaged.
    #[getter]
    fn damaged(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(match self.unreadable(py)? {
            Some(Unreadable::Damaged { problem }) => Some(problem),
            Some(Unreadable::Unsupported { .. } | Unreadable::Unfetched { .. }) | None => None,
        })
    }

    /// One element with the fill value, as bytes; None if the writer defined none.
    #[getter]
    fn fill<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let array = self.0.described();
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

    /// The values that elements point to, as bytes, in order: each sequence, then the values of its own pointers.
    fn heap_values<'py>(&self, py: Python<'py>, elements: Vec<u8>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let values = self.ask(py, |array| array.pointed(&elements))?;
        Ok(values.iter().map(|value| PyBytes::new(py, value)).collect())
    }

    /// The mappings of a virtual array: file, path, the selection of the virtual array, and that of the source.
    fn virtual_sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for mapping in self.0.described().virtual_mappings.iter() {
            let target = object_facts::selection(py, &mapping.target)?;
            let source = object_facts::selection(py, &mapping.source)?;
            list.append((&*mapping.file, &*mapping.path, target, source))?;
        }
        Ok(list)
    }

    /// Whether it only stands for a NetCDF-4 dimension without a variable.
    #[getter]
    fn is_dimension_only(&self) -> bool {
        self.0.role() == Role::DimensionOnly
    }

    /// Whether elements equal to the fill value are missing values, as in Zarr 2.
    #[getter]
    fn fill_is_missing(&self) -> bool {
        self.0.described().role == Role::FillIsMissing
    }

    /// The array's attributes.
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        values::attributes(py, &self.0.described().attributes, self.0.archive())
    }

    /// The plan for reading a selection.
    fn plan(&self, py: Python<'_>, asked: Vec<Bound<'_, PyAny>>) -> PyResult<ReadPlan> {
        let selection = axes::parse(&asked)?;
        self.ask(py, |array| array.plan(&selection)).map(ReadPlan)
    }

    /// Reads a selection into the bytes of its output.
    fn read_into(
        &self,
        asked: Vec<Bound<'_, PyAny>>,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
        is_reused: bool,
    ) -> PyResult<()> {
        let options = ReadOptions { thread_count: threads, is_reused, keeps_bytes: false };
        self.read(&ArraySelection::Axes(axes::parse(&asked)?), out, options)
    }

    /// The plan for reading points.
    fn plan_points(&self, py: Python<'_>, points: &Points) -> PyResult<ReadPlan> {
        self.ask(py, |array| array.plan_points(&points.0)).map(ReadPlan)
    }

    /// Reads points into the bytes of their output, one element for each point.
    fn read_points_into(
        &self,
        points: &Points,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        let options = ReadOptions { thread_count: threads, ..ReadOptions::default() };
        self.read(&ArraySelection::Points(&points.0), out, options)
    }

    /// Reads a selection of elements of variable length: one object per element. `pointers` has room for their pointers.
    fn read_objects<'py>(
        &self,
        asked: Vec<Bound<'_, PyAny>>,
        pointers: &Bound<'py, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.objects(&ArraySelection::Axes(axes::parse(&asked)?), pointers, threads)
    }

    /// The same for points.
    fn read_point_objects<'py>(
        &self,
        points: &Points,
        pointers: &Bound<'py, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.objects(&ArraySelection::Points(&points.0), pointers, threads)
    }

    /// The value of unwritten elements of variable length; None if there is none, or if the values are not stored in the
    /// chunks.
    #[getter]
    fn fill_object<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(value) = self.ask(py, ArchiveArray::fill_value)? else { return Ok(None) };
        let element = &self.0.described().element;
        let pointer = vec![0; usize::try_from(element.nbytes()).unwrap_or(0)];
        let names = &self.0.archive().tree().names;
        values::Pointed::new(&[value], names).objects(py, element, &pointer)?.get_item(0).map(Some)
    }
}

impl StoredArray {
    /// Why no selection can be planned.
    fn unreadable(&self, py: Python<'_>) -> PyResult<Option<Unreadable>> {
        self.ask(py, ArchiveArray::unreadable)
    }
}
