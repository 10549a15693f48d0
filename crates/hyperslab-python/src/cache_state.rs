//! `CacheState`: the variables of the cost model, access by access.

use std::collections::HashSet;
use std::sync::Arc;

use hyperslab_core::{ByteRange, Manifest, Selection, StoredChunk};
use hyperslab_model::{
    ChunkCacheSize, Chunks, Hdf5, HyperslabEngine, IndexKind, Joining, Library, ModelError, Operation,
    PageCacheSize, PaperLibrary, Purpose, Request, Stored, Variables, Zarr,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyList};

use crate::grid::ChunkGrid;
use crate::panics::detached;
use crate::{errors, integers, selection};

type RequestRow = (&'static str, u64, u64, u64);
/// Variables, and the requests behind them.
type Shown<'py> = (Bound<'py, PyArray1<u64>>, Vec<RequestRow>);

/// An array that a library has open, and what its caches hold.
#[pyclass(module = "hyperslab._core")]
pub(crate) struct CacheState(hyperslab_model::CacheState);

#[pymethods]
impl CacheState {
    #[new]
    #[pyo3(signature = (grid, element_nbytes, library, *, chunks="row_major", manifest=None, ratio=None,
        page_cache_nbytes=u64::MAX, read_ahead_nbytes=0, options=None))]
    #[allow(clippy::too_many_arguments)] // keywords of Python
    fn new(
        grid: &Bound<'_, ChunkGrid>,
        element_nbytes: u64,
        library: &str,
        chunks: &str,
        manifest: Option<[PyReadonlyArray1<'_, u64>; 3]>,
        ratio: Option<f64>,
        page_cache_nbytes: u64,
        read_ahead_nbytes: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let chunks = match (chunks, manifest) {
            ("missing", None) => Chunks::Missing,
            ("row_major", None) => Chunks::RowMajor,
            ("listed", Some(columns)) => Chunks::Listed(Arc::new(listed(&columns)?)),
            (other, _) => {
                return Err(choose("chunks", other, "missing, row_major, or listed with a manifest"));
            }
        };
        let grid = grid.get().0.clone();
        let pages = PageCacheSize { nbytes: page_cache_nbytes, read_ahead_nbytes };
        let library = parse_library(library, &Options(options))?;
        let made = || {
            let stored = Stored::new(grid, element_nbytes, ratio, chunks)?;
            hyperslab_model::CacheState::new(stored, &library, pages)
        };
        made().map(Self).map_err(to_python)
    }

    /// The variables of each access, in order: one row each, one column per name of `variable_names`. The array is closed
    /// and opened again before accesses at `reopened`.
    #[pyo3(signature = (operation, selections, reopened=Vec::new()))]
    #[allow(clippy::needless_pass_by_value)] // a list of Python
    fn access<'py>(
        &mut self,
        py: Python<'py>,
        operation: &str,
        selections: &Bound<'py, PyList>,
        reopened: Vec<usize>,
    ) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let operation = parse_operation(operation)?;
        let parsed: Vec<Selection> =
            selections.iter().map(|one| selection::parse(&one)).collect::<PyResult<_>>()?;
        let reopened: HashSet<usize> = reopened.into_iter().collect();
        let count = |(place, selected): (usize, &Selection)| {
            let mut variables =
                if reopened.contains(&place) { self.0.reopen_array(&mut ())? } else { Variables::default() };
            variables += self.0.access(operation, selected, &mut ())?;
            Ok(variables)
        };
        let rows: Result<Vec<Variables>, ModelError> =
            detached(py, || parsed.iter().enumerate().map(count).collect())?;
        let rows = rows.map_err(to_python)?;
        let values: Vec<u64> = rows.iter().flat_map(Variables::values).collect();
        PyArray1::from_vec(py, values).reshape([rows.len(), Variables::NAMES.len()])
    }

    /// The variables of one access, and its requests.
    fn requests<'py>(
        &mut self,
        py: Python<'py>,
        operation: &str,
        selection: &Bound<'py, PyAny>,
    ) -> PyResult<Shown<'py>> {
        let (operation, selected) = (parse_operation(operation)?, selection::parse(selection)?);
        let mut requests = Vec::new();
        let variables =
            detached(py, || self.0.access(operation, &selected, &mut requests))?.map_err(to_python)?;
        Ok((PyArray1::from_vec(py, variables.values()), requests.into_iter().map(row).collect()))
    }

    /// Lets the array grow along its first axis to this length: the variables, and the requests.
    fn resize<'py>(&mut self, py: Python<'py>, length: u64) -> PyResult<Shown<'py>> {
        let mut requests = Vec::new();
        let variables = detached(py, || self.0.resize(length, &mut requests))?.map_err(to_python)?;
        Ok((PyArray1::from_vec(py, variables.values()), requests.into_iter().map(row).collect()))
    }

    /// The variables of closing the array, and the requests.
    fn close<'py>(&mut self, py: Python<'py>) -> PyResult<Shown<'py>> {
        let mut requests = Vec::new();
        let variables = detached(py, || self.0.close(&mut requests))?.map_err(to_python)?;
        Ok((PyArray1::from_vec(py, variables.values()), requests.into_iter().map(row).collect()))
    }

    /// The same for closing the file and opening it again: the library forgets what it has cached.
    fn reopen<'py>(&mut self, py: Python<'py>) -> PyResult<Shown<'py>> {
        let mut requests = Vec::new();
        let variables = detached(py, || self.0.reopen(&mut requests))?.map_err(to_python)?;
        Ok((PyArray1::from_vec(py, variables.values()), requests.into_iter().map(row).collect()))
    }

    /// The same for closing the array and opening it again, in a file that stays open.
    fn reopen_array<'py>(&mut self, py: Python<'py>) -> PyResult<Shown<'py>> {
        let mut requests = Vec::new();
        let variables = detached(py, || self.0.reopen_array(&mut requests))?.map_err(to_python)?;
        Ok((PyArray1::from_vec(py, variables.values()), requests.into_iter().map(row).collect()))
    }

    /// The names of the variables, in the order of all rows.
    #[staticmethod]
    fn variable_names() -> Vec<&'static str> {
        Variables::NAMES.to_vec()
    }
}

/// Formula 8 of the paper.
#[pyfunction]
pub(crate) fn contention(processes: u64, servers: u64) -> PyResult<f64> {
    hyperslab_model::contention(processes, servers)
        .ok_or_else(|| PyValueError::new_err("contention needs at least one process and one data server"))
}

/// For each touch, how many other chunks were touched since the last touch of its chunk; -1 for the first one.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 extracts it so
pub(crate) fn reuse_distances<'py>(
    py: Python<'py>,
    chunks: PyReadonlyArray1<'py, i64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let chunks = chunks.as_slice()?;
    let distances = detached(py, || hyperslab_model::reuse_distances(chunks))?;
    Ok(PyArray1::from_vec(py, distances))
}

fn row(request: Request) -> RequestRow {
    let purpose = match request.purpose {
        Purpose::ReadChunk => "read_chunk",
        Purpose::ReadPart => "read_part",
        Purpose::ReadIndex => "read_index",
        Purpose::WriteChunk => "write_chunk",
        Purpose::WritePart => "write_part",
    };
    (purpose, request.chunk, request.range.offset, request.range.length)
}

fn listed(columns: &[PyReadonlyArray1<'_, u64>; 3]) -> PyResult<Manifest> {
    let [indices, offsets, lengths] = columns.each_ref().map(PyReadonlyArray1::as_array);
    if indices.len() != offsets.len() || indices.len() != lengths.len() {
        return Err(PyValueError::new_err("the columns of manifest have different lengths"));
    }
    let mut chunks = Vec::with_capacity(indices.len());
    for ((&index, &offset), &length) in indices.iter().zip(offsets).zip(lengths) {
        let range = ByteRange::new(offset, length).map_err(errors::to_python)?;
        chunks.push(StoredChunk { index, file: 0, range, filter_mask: 0 });
    }
    Ok(Manifest::of_chunks(chunks))
}

fn parse_operation(operation: &str) -> PyResult<Operation> {
    match operation {
        "read" => Ok(Operation::Read),
        "write" => Ok(Operation::Write),
        other => Err(choose("operation", other, "read or write")),
    }
}

/// The options of a library. All are optional.
struct Options<'a, 'py>(Option<&'a Bound<'py, PyDict>>);

impl<'py> Options<'_, 'py> {
    fn get(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(given) = self.0 else { return Ok(None) };
        Ok(given.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn number(&self, name: &str, default: u64) -> PyResult<u64> {
        self.get(name)?.map_or(Ok(default), |value| integers::whole_number(name, &value))
    }

    fn flag(&self, name: &str, default: bool) -> PyResult<bool> {
        self.get(name)?.map_or(Ok(default), |value| value.extract())
    }

    fn check(&self, library: &str, known: &[&str]) -> PyResult<()> {
        for name in self.0.into_iter().flat_map(PyDictMethods::keys) {
            let name: String = name.extract()?;
            if !known.contains(&name.as_str()) {
                let message = format!("{library} has no option {name}: it takes {}", known.join(", "));
                return Err(PyTypeError::new_err(message));
            }
        }
        Ok(())
    }
}

fn parse_library(name: &str, options: &Options<'_, '_>) -> PyResult<Library> {
    let known: &[&str] = match name {
        "hdf5" => &[
            "chunk_cache_nbytes",
            "chunk_cache_slots",
            "w0",
            "index",
            "growing_axis",
            "max_shape",
            "fills",
            "lengths_vary",
            "allocates_late",
            "wide_lengths",
            "mpi_writing",
        ],
        "hyperslab" => &["chunk_cache_nbytes", "far"],
        "zarr" => &["shard_shape", "joined_gap_nbytes", "joined_nbytes", "reads_overwritten"],
        "paper_hdf5" => &["library_cache_nbytes", "index_block_chunk_count"],
        _ => &[],
    };
    options.check(name, known)?;
    Ok(match name {
        "hdf5" => Library::Hdf5(parse_hdf5(options)?),
        "zarr" => Library::Zarr(parse_zarr(options)?),
        "flat" => Library::Flat,
        "hyperslab" => Library::Hyperslab(HyperslabEngine {
            chunk_cache_nbytes: options.number("chunk_cache_nbytes", HyperslabEngine::CHUNK_CACHE_NBYTES)?,
            is_far: options.flag("far", false)?,
        }),
        "paper_hdf5" => Library::Paper(PaperLibrary::Hdf5 {
            library_cache_nbytes: options.number("library_cache_nbytes", ChunkCacheSize::BEFORE_2.nbytes)?,
            index_block_chunk_count: options.number("index_block_chunk_count", 64)?,
        }),
        "paper_zarr" => Library::Paper(PaperLibrary::Zarr),
        other => {
            return Err(choose("library", other, "hdf5, zarr, flat, hyperslab, paper_hdf5 or paper_zarr"));
        }
    })
}

fn parse_zarr(options: &Options<'_, '_>) -> PyResult<Zarr> {
    let shard_shape = options.get("shard_shape")?;
    let shard_shape = shard_shape.map(|shape| integers::per_axis("shard_shape", &shape)).transpose()?;
    let gap_nbytes = options.get("joined_gap_nbytes")?;
    let gap_nbytes = gap_nbytes.map(|gap| integers::whole_number("joined_gap_nbytes", &gap)).transpose()?;
    let most_nbytes = options.number("joined_nbytes", u64::MAX)?;
    let joining = gap_nbytes.map(|gap_nbytes| Joining { gap_nbytes, most_nbytes });
    Ok(Zarr { shard_shape, joining, reads_overwritten: options.flag("reads_overwritten", false)? })
}

fn parse_hdf5(options: &Options<'_, '_>) -> PyResult<Hdf5> {
    let default = ChunkCacheSize::FROM_2;
    let index = match options.get("index")? {
        None => IndexKind::BtreeV1,
        Some(name) => match name.extract::<String>()?.as_str() {
            "btree_v1" => IndexKind::BtreeV1,
            "btree_v2" => IndexKind::BtreeV2,
            "fixed_array" => IndexKind::FixedArray,
            "extensible_array" => {
                let axis = usize::try_from(options.number("growing_axis", 0)?).unwrap_or(usize::MAX);
                IndexKind::ExtensibleArray { axis }
            }
            "none" => IndexKind::None,
            "contiguous" => IndexKind::Contiguous,
            "compact" => IndexKind::Compact,
            other => {
                let choices = "btree_v1, btree_v2, fixed_array, extensible_array, none; contiguous or compact: no chunks at all";
                return Err(choose("index", other, choices));
            }
        },
    };
    Ok(Hdf5 {
        cache: ChunkCacheSize {
            nbytes: options.number("chunk_cache_nbytes", default.nbytes)?,
            slot_count: options.number("chunk_cache_slots", default.slot_count)?,
            w0: options.get("w0")?.map_or(Ok(default.w0), |value| value.extract())?,
        },
        index,
        max_shape: options
            .get("max_shape")?
            .map(|shape| integers::per_axis("max_shape", &shape))
            .transpose()?,
        fills: options.flag("fills", true)?,
        lengths_vary: options.flag("lengths_vary", true)?,
        allocates_late: options.flag("allocates_late", false)?,
        wide_lengths: options.flag("wide_lengths", false)?,
        mpi_writing: options.flag("mpi_writing", false)?,
    })
}

fn choose(what: &str, given: &str, choices: &str) -> PyErr {
    PyValueError::new_err(format!("{what} is {given:?}: choose {choices}"))
}

fn to_python(error: ModelError) -> PyErr {
    match error {
        ModelError::Geometry(error) => errors::to_python(error),
        other => PyValueError::new_err(other.to_string()),
    }
}
