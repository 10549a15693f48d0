//! `StoredArray`: an array of an open file; plans and reads selections of it.

use std::ffi::OsString;
use std::sync::Arc;

use hyperslab_core::{
    Array, ChunkGrid, ChunkLengths, Codec, Element, Fill, Manifest, Orthogonal, PlanError, PointGroup, Role,
    Unreadable, chunk_lengths,
};
use hyperslab_engine::{FileStore, ReadError, tidy};
use hyperslab_parsers::{self as parsers, Pages, Policy, Source};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::archive_file::{Bytes, Opened, attributes};
use crate::format::Format;
use crate::lazy_indexes::LazyIndexes;
use crate::points::Points;
use crate::read_plan::ReadPlan;
use crate::reading::{Asked, Reading};
use crate::sought::Sought;
use crate::sources::{Interrupts, LocalSource, RemoteSource};
use crate::virtual_sources::{Problem, WholeArray};
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

    pub(crate) fn described(&self) -> &Array {
        &self.file.tree.arrays[self.number] // checked where it was made
    }

    /// The array with its segments; a virtual one's sources are opened for that.
    fn whole(&self, py: Python<'_>) -> PyResult<WholeArray> {
        py.detach(|| WholeArray::of(&self.file, self.number)).map_err(|problem| self.source_error(problem))
    }

    /// The array with the chunks that are asked for, where they are looked for when they are read.
    fn whole_for(&self, py: Python<'_>, asked: &Asked<'_>) -> PyResult<WholeArray> {
        if let (Some(indexes), Asked::Axes(selection)) = (&self.file.indexes, asked) {
            let few = py.detach(|| indexes.few(&self.file, self.number, selection));
            if let Some(few) = few.map_err(|problem| self.source_error(problem))? {
                return Ok(WholeArray::Virtual(Arc::new(few)));
            }
        }
        let Bytes::Keys(far) = &self.file.bytes else { return self.whole(py) };
        let document = &far.documents[self.number]; // there are as many as arrays
        let shape = self.described().shape.as_deref().unwrap_or_default();
        let interrupts = Interrupts::default();
        let stop = || interrupts.are_pending();
        let found = py.detach(|| {
            let touched = asked.touched(document, shape)?;
            Ok(Sought::new(document, &far.keys, shape, &touched, self.number as u64, &stop))
        });
        let sought = found.map_err(|problem| self.plan_error(problem))?;
        let sought = sought.map_err(|error| interrupts.raised().unwrap_or_else(|| errors::of_read(error)))?;
        Ok(WholeArray::Sought(Arc::new(sought)))
    }

    /// Fails where chunks are looked for only when they are read.
    fn check_listed(&self) -> PyResult<()> {
        let Bytes::Keys(_) = self.file.bytes else { return Ok(()) };
        let (array, file) = (&self.path, &self.file.name);
        Err(errors::unsupported(format!(
            "array {array} of {file}: what a read takes is not known before it is made: its chunks are not listed"
        )))
    }

    /// The same, if only for its chunks: `None` if we cannot read it.
    fn chunked(&self, py: Python<'_>) -> PyResult<Option<WholeArray>> {
        match py.detach(|| WholeArray::of(&self.file, self.number)) {
            Err(Problem::Plan(PlanError::Unreadable(Unreadable::Unsupported { .. }))) => Ok(None),
            whole => match whole.map_err(|problem| self.source_error(problem))? {
                whole if is_unfetched(whole.array()) => {
                    let problem = hyperslab_core::ReadPlan::check(whole.array());
                    problem.map(|()| None).map_err(|problem| self.plan_error(problem))
                }
                whole => Ok(Some(whole)),
            },
        }
    }

    fn planned(&self, whole: &WholeArray, selection: &Orthogonal) -> PyResult<hyperslab_core::ReadPlan> {
        whole.plan(selection).map_err(|problem| self.plan_error(problem))
    }

    fn source_error(&self, problem: Problem) -> PyErr {
        match problem {
            Problem::Plan(problem) => self.plan_error(problem),
            Problem::File(path, failure) => failure.into_python(&path),
        }
    }

    fn plan_error(&self, problem: PlanError) -> PyErr {
        let (file, array) = (self.file.name.clone(), self.path.clone());
        errors::of_read(ReadError::Plan { file, array, problem })
    }

    /// Read what is asked for into `out`.
    fn read(
        &self,
        asked: &Asked<'_>,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
        is_reused: bool,
    ) -> PyResult<()> {
        let py = out.py();
        let whole = self.whole_for(py, asked)?;
        let planned = asked.planned(whole.array(), |selection| whole.plan(selection));
        let planned = planned.map_err(|problem| self.plan_error(problem))?;
        let reading = Reading {
            array: whole.array(),
            name: &self.path,
            number: whole.number(),
            stores: whole.stores(),
            cache: &self.file.cache,
            is_reused,
        };
        let mut bytes = out.try_readwrite()?;
        reading.carry_out(py, &planned, bytes.as_slice_mut()?, threads)?.map_err(errors::of_read)
    }
}

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl StoredArray {
    /// The array's shape; None if it has no elements at all.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let whole = if self.described().virtual_mappings.grow() { Some(self.whole(py)?) } else { None };
        let array = whole.as_ref().map_or(self.described(), WholeArray::array);
        array.shape.as_ref().map(|shape| integers::tuple(py, shape)).transpose()
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

    /// Whether elements say where values are, in the file or as references: `resolve` follows them.
    #[getter]
    fn has_pointers(&self) -> bool {
        self.described().element.has_pointers()
    }

    /// How many parts, each with chunks of its own, the array is made of.
    #[getter]
    fn segment_count(&self, py: Python<'_>) -> PyResult<usize> {
        let whole = self.chunked(py)?;
        Ok(whole.map_or(0, |whole| whole.array().segments.as_ref().map_or(0, Vec::len)))
    }

    /// The parts that the array is made of, each with chunks of its own; none if we cannot read it.
    #[pyo3(name = "segments")]
    fn parts(&self, py: Python<'_>) -> PyResult<Vec<crate::segment::Segment>> {
        Ok(self.chunked(py)?.map_or_else(Vec::new, |whole| crate::segment::Segment::all(&whole)))
    }

    /// Paths or URLs of the files that chunks lie in, by their numbers; an archive that is a folder has no number 0.
    fn file_paths(&self, py: Python<'_>) -> PyResult<Vec<Option<OsString>>> {
        let Some(whole) = self.chunked(py)? else { return Ok(Vec::new()) };
        let opened = self.file.own_file().map(|file| file.path.into_os_string());
        let others = whole.stores().others().iter().map(|other| Some(other.path.clone().into_os_string()));
        Ok(std::iter::once(opened).chain(others).collect()) // no paths of Python: those may be URLs
    }

    /// The shape of a chunk; None if the array is not chunked, or its parts differ. Of virtual arrays only those have
    /// chunks that show, with each of theirs, one of their source's.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let described = self.described();
        let is_virtual = !described.virtual_mappings.is_empty();
        let whole = if is_virtual { self.chunked(py).ok().flatten() } else { None };
        let array = whole.as_ref().map_or(described, WholeArray::array);
        if is_virtual && !array.is_chunked {
            return Ok(None);
        }
        let segments = array.segments.as_deref().unwrap_or_default();
        let Some((first, others)) = segments.split_first() else { return Ok(None) };
        let grid = &first.grid;
        let differ = others.iter().any(|segment| segment.grid.chunk_shape() != grid.chunk_shape());
        let is_one_piece =
            (grid.shape().iter().zip(grid.chunk_shape())).all(|(&length, &chunk)| chunk == length.max(1));
        let is_plain_piece = others.is_empty() && first.codecs.is_empty() && is_one_piece;
        if differ || (is_plain_piece && !array.is_chunked) {
            return Ok(None);
        }
        integers::tuple(py, grid.chunk_shape()).map(Some)
    }

    /// On each axis the lengths of the chunks that follow one another; a single one for chunks of one length.
    fn chunk_lengths(&self, py: Python<'_>) -> PyResult<Option<Vec<Vec<u64>>>> {
        let Some(whole) = self.chunked(py)? else { return Ok(None) };
        let lengths = |along| match along {
            ChunkLengths::Same(length) => vec![length],
            ChunkLengths::Each(lengths) => lengths,
        };
        Ok(chunk_lengths(whole.array()).map(|axes| axes.into_iter().map(lengths).collect()))
    }

    /// The names of the codecs, in the order of encoding; of the first segment where there are several.
    #[getter]
    fn codecs(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let whole = self.chunked(py)?;
        let first = whole.as_ref().and_then(|whole| whole.array().segments.as_ref().ok()?.first());
        let names =
            first.map(|segment| segment.codecs.iter().map(|codec: &Codec| codec.name().to_owned()).collect());
        Ok(names.unwrap_or_default())
    }

    /// Chunks that are stored; None where nobody lists them.
    #[getter]
    fn stored_chunk_count(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.listed_sum(py, |manifest, _| manifest.chunk_count())
    }

    /// Chunks that there could be.
    #[getter]
    fn chunk_count(&self, py: Python<'_>) -> PyResult<u64> {
        self.sum(py, |_, grid| grid.chunk_count())
    }

    /// Bytes of the stored chunks; None where nobody lists them.
    #[getter]
    fn stored_nbytes(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.listed_sum(py, |manifest, _| manifest.stored_nbytes())
    }

    /// The feature for which the array cannot be read here; None if there is none, as far as that is known before its
    /// chunks are looked up.
    #[getter]
    fn unsupported(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let check = |indexes: &LazyIndexes| indexes.check(&self.file, self.number);
        let is_readable = self.file.indexes.as_ref().is_some_and(|indexes| check(indexes) == Ok(true));
        let unreadable = if is_readable { None } else { self.unreadable(py)? };
        Ok(match unreadable {
            Some(Unreadable::Unsupported { feature }) => Some(feature),
            Some(Unreadable::Damaged { .. } | Unreadable::Unfetched { .. }) => None,
            None => {
                dtypes::dtype(py, &self.described().element).err().map(|error| error.value(py).to_string())
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

    /// Whether it only stands for a dimension of NetCDF-4 that has no variable.
    #[getter]
    fn is_dimension_only(&self) -> bool {
        role(self.described()) == Role::DimensionOnly
    }

    /// Whether elements with the fill value are missing ones, as in Zarr 2.
    #[getter]
    fn fill_is_missing(&self) -> bool {
        self.described().role == Role::FillIsMissing
    }

    /// The array's attributes.
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        attributes(py, &self.described().attributes, &self.file)
    }

    /// What reading a selection takes.
    fn plan(&self, py: Python<'_>, asked: Vec<Bound<'_, PyAny>>) -> PyResult<ReadPlan> {
        self.check_listed()?;
        let whole = self.whole(py)?;
        let plan = self.planned(&whole, &axes::parse(&asked)?)?;
        Ok(ReadPlan::new(whole, plan))
    }

    /// Read a selection into the bytes of its output.
    fn read_into(
        &self,
        asked: Vec<Bound<'_, PyAny>>,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
        is_reused: bool,
    ) -> PyResult<()> {
        self.read(&Asked::Axes(axes::parse(&asked)?), out, threads, is_reused)
    }

    /// What reading points takes.
    fn plan_points(&self, py: Python<'_>, points: &Points) -> PyResult<ReadPlan> {
        self.check_listed()?;
        let whole = self.whole(py)?;
        let groups = self.grouped(&whole, points)?;
        let plans: PyResult<Vec<_>> =
            groups.iter().map(|group| self.planned(&whole, &group.around)).collect();
        Ok(ReadPlan::of_points(whole, plans?, points.0.len()))
    }

    /// Read points into the bytes of their output, one element a point.
    fn read_points_into(
        &self,
        points: &Points,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        self.read(&Asked::Points(&points.0), out, threads, false)
    }

    /// The values that elements, as they were read, point to: one object each.
    fn resolve<'py>(&self, elements: &Bound<'py, PyArray1<u8>>) -> PyResult<Bound<'py, PyList>> {
        let py = elements.py();
        let (element, bytes) = (&self.described().element, elements.try_readonly()?);
        let bytes = bytes.as_slice()?;
        let interrupts = Interrupts::default();
        let heap = py.detach(|| self.heap(element, bytes, &interrupts));
        let heap = heap.map_err(|error| interrupts.raised().unwrap_or(error))?;
        values::Pointed::new(&heap, &self.heap_file().tree.names).objects(py, element, bytes)
    }
}

impl StoredArray {
    fn grouped(&self, whole: &WholeArray, points: &Points) -> PyResult<Vec<PointGroup>> {
        PointGroup::of(&points.0, whole.array()).map_err(|problem| self.plan_error(problem))
    }

    /// Why there is no plan of any selection.
    fn unreadable(&self, py: Python<'_>) -> PyResult<Option<Unreadable>> {
        let checked = py.detach(|| {
            let whole = WholeArray::of(&self.file, self.number)?;
            Ok::<_, Problem>(hyperslab_core::ReadPlan::check(whole.array())?)
        });
        match checked {
            Ok(()) => Ok(None),
            Err(Problem::Plan(PlanError::Unreadable(reason))) => Ok(Some(reason)),
            Err(Problem::Plan(PlanError::Selection(error))) => Ok(Some(error.into())),
            Err(problem) => Err(self.source_error(problem)),
        }
    }

    fn listed_sum(
        &self,
        py: Python<'_>,
        each: impl Fn(&Manifest, &ChunkGrid) -> u64,
    ) -> PyResult<Option<u64>> {
        if matches!(self.file.bytes, Bytes::Keys(_)) { Ok(None) } else { self.sum(py, each).map(Some) }
    }

    /// A sum over all manifests, each once.
    fn sum(&self, py: Python<'_>, each: impl Fn(&Manifest, &ChunkGrid) -> u64) -> PyResult<u64> {
        let Some(whole) = self.chunked(py)? else { return Ok(0) };
        Ok(whole.manifests().into_iter().map(|(manifest, grid)| each(manifest, grid)).sum())
    }

    /// The file that elements point into.
    fn heap_file(&self) -> &Opened {
        match &self.file.bytes {
            Bytes::Collection(open) => open.heaps.get(&self.number).map_or(&*self.file, |heap| &heap.file),
            _ => &self.file,
        }
    }

    fn heap(&self, element: &Element, bytes: &[u8], interrupts: &Interrupts) -> PyResult<Vec<Vec<u8>>> {
        let file = self.heap_file();
        let of_parser = |error| errors::of_parser(&file.name, error);
        let local = |store: &FileStore| {
            pointed(file.format, element, bytes, &LocalSource(store), Policy::LOCAL).map_err(of_parser)
        };
        match &file.bytes {
            Bytes::Local(store) => local(store),
            Bytes::Closed(version) => {
                let store = FileStore::open(&file.path).map_err(errors::of_read)?;
                if store.version() != *version {
                    return Err(errors::of_read(ReadError::FileChanged { file: file.name.clone() }));
                }
                local(&store)
            }
            Bytes::Remote(store) => {
                let source = RemoteSource::new(store, &[], interrupts);
                let policy = Policy { first_nbytes: 0, ..Policy::REMOTE };
                let found = pointed(file.format, element, bytes, &source, policy);
                let failure = source.failure();
                found.map_err(|error| failure.map_or_else(|| of_parser(error), errors::of_read))
            }
            Bytes::References(references) => {
                let number =
                    references.found.heap_file(self.number).ok_or_else(|| of_parser(no_pointers()))?;
                let store = file.stores.get(number).map_err(errors::of_read)?;
                let far = Policy { first_nbytes: 0, ..Policy::REMOTE };
                let policy = if store.far().is_some() { far } else { Policy::LOCAL };
                pointed(file.format, element, bytes, &LocalSource(&*store), policy).map_err(of_parser)
            }
            Bytes::Folder | Bytes::Keys(_) | Bytes::Tables(_) | Bytes::Collection(_) => {
                Err(of_parser(no_pointers()))
            }
        }
    }
}

fn pointed(
    format: Format,
    element: &Element,
    bytes: &[u8],
    source: &dyn Source,
    policy: Policy,
) -> Result<Vec<Vec<u8>>, parsers::Error> {
    if !matches!(format, Format::Hdf5 | Format::OwnReferences) {
        return Err(no_pointers());
    }
    let mut pages = Pages::new(source, policy);
    parsers::hdf5::resolve(&mut pages, element, bytes)
}

/// What readers of netCDF must know of an array; HDF5 says in an attribute that there is only a dimension.
pub(crate) fn role(array: &Array) -> Role {
    let mark = parsers::hdf5::DIMENSION_ONLY.as_bytes();
    let named = array.attributes.iter().find(|attribute| attribute.name == "NAME");
    let is_marked =
        named.is_some_and(|name| name.value.as_ref().is_ok_and(|value| value.bytes.starts_with(mark)));
    if is_marked { Role::DimensionOnly } else { array.role }
}

fn no_pointers() -> parsers::Error {
    parsers::Error::Unsupported { feature: "elements of any length outside HDF5".to_owned() }
}

/// Whether nothing is known of its chunks, for their description could not be fetched.
fn is_unfetched(array: &Array) -> bool {
    matches!(array.segments, Err(Unreadable::Unfetched { .. }))
}
