//! `ArchiveFile`: an open file of any format, its groups and its arrays.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use hyperslab_archive::{Archive, ArchiveArray, Error, OpenOptions, Opening};
use hyperslab_core::{Link, Unreadable};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::callbacks::{Context, Signals};
use crate::document_resolver::DocumentResolver;
use crate::given_file::GivenFile;
use crate::panics::detached;
use crate::remote::RemoteFile;
use crate::stored_array::StoredArray;
use crate::table_columns::{self, Columns, Tables};
use crate::{errors, object_facts, values};

/// An open file: its groups and arrays by number; group 0 is the root.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct ArchiveFile(pub(crate) Arc<Archive>);

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl ArchiveFile {
    #[new]
    #[pyo3(signature = (path, chunk_cache_nbytes, resolver=None, patterns=Vec::new(), between_commits=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        chunk_cache_nbytes: usize,
        resolver: Option<DocumentResolver>,
        patterns: Vec<String>,
        between_commits: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let between_commits = between_commits.map(Context::of);
        let options = OpenOptions { patterns, between_commits, ..options(chunk_cache_nbytes, resolver) };
        opened(py, || Archive::open(&path, &options))
    }

    /// A local file or folder that is not kept open. Its contents are known and can be combined with others.
    #[staticmethod]
    #[pyo3(signature = (path, resolver=None))]
    fn closed(py: Python<'_>, path: PathBuf, resolver: Option<DocumentResolver>) -> PyResult<Self> {
        let options = options(0, resolver);
        opened(py, || Archive::open_closed(&path, &options))
    }

    /// Open a remote file.
    #[staticmethod]
    #[pyo3(signature = (file, chunk_cache_nbytes, resolver=None, patterns=Vec::new(), notes_metadata=false))]
    fn remote(
        py: Python<'_>,
        file: &Bound<'_, RemoteFile>,
        chunk_cache_nbytes: usize,
        resolver: Option<DocumentResolver>,
        patterns: Vec<String>,
        notes_metadata: bool,
    ) -> PyResult<Self> {
        let options = OpenOptions { patterns, notes_metadata, ..options(chunk_cache_nbytes, resolver) };
        let file = file.get();
        opened(py, || Archive::open_remote(&file.0, &options))
    }

    /// Open a local file with the requests that would open it from afar.
    #[staticmethod]
    fn as_far(py: Python<'_>, path: PathBuf, resolver: Option<DocumentResolver>) -> PyResult<Self> {
        let options = OpenOptions { notes_metadata: true, ..options(0, resolver) };
        opened(py, || Archive::open_as_far(&path, &options))
    }

    /// Open a remote Zarr hierarchy.
    #[staticmethod]
    fn remote_zarr(
        py: Python<'_>,
        folder: &Bound<'_, RemoteFile>,
        chunk_cache_nbytes: usize,
    ) -> PyResult<Self> {
        let (folder, options) = (folder.get(), options(chunk_cache_nbytes, None));
        opened(py, || Archive::open_remote_zarr(&folder.0, &options))
    }

    /// Open a file that Python holds: its bytes, or an object that reads ranges of it.
    #[staticmethod]
    fn given(
        py: Python<'_>,
        file: &Bound<'_, GivenFile>,
        chunk_cache_nbytes: usize,
        resolver: Option<DocumentResolver>,
    ) -> PyResult<Self> {
        let (file, options) = (file.get(), options(chunk_cache_nbytes, resolver));
        let (store, version) = (file.store(), file.version.clone());
        opened(py, || Archive::open_given(store, version, &options))
    }

    /// An archive of Zarr metadata documents, by key, and tables of chunks, by array path.
    #[staticmethod]
    #[pyo3(signature = (documents, tables, files, folder, chunk_cache_nbytes, resolver=None))]
    #[allow(clippy::too_many_arguments)] // one for each keyword
    fn of_references(
        py: Python<'_>,
        documents: HashMap<String, Vec<u8>>,
        tables: HashMap<String, Columns<'_>>,
        files: Vec<String>,
        folder: PathBuf,
        chunk_cache_nbytes: usize,
        resolver: Option<DocumentResolver>,
    ) -> PyResult<Self> {
        let mut parsed = HashMap::new();
        for (array, columns) in tables {
            let table = table_columns::table(columns, files.len());
            let fault = |problem| Error::parse(folder.display().to_string(), problem);
            parsed.insert(array, table.map_err(fault).map_err(errors::of_archive)?);
        }
        let options = options(chunk_cache_nbytes, resolver);
        opened(py, || Archive::of_references(documents, parsed, &files, &folder, &options))
    }

    /// The same, but `table` gives the chunks of an array and the names of their files when the array is first used.
    #[staticmethod]
    #[pyo3(signature = (documents, table, folder, chunk_cache_nbytes, resolver=None))]
    fn of_tables(
        py: Python<'_>,
        documents: HashMap<String, Vec<u8>>,
        table: Py<PyAny>,
        folder: PathBuf,
        chunk_cache_nbytes: usize,
        resolver: Option<DocumentResolver>,
    ) -> PyResult<Self> {
        let tables = Box::new(Tables { function: table, name: folder.display().to_string() });
        let options = options(chunk_cache_nbytes, resolver);
        opened(py, || Archive::of_tables(documents, tables, &folder, &options))
    }

    /// The kind of the file.
    #[getter]
    fn format(&self) -> &'static str {
        self.0.format().name()
    }

    /// The version of the file that was opened: its `ETag`, or its size and modification time; None for a folder.
    #[getter]
    fn version(&self) -> Option<String> {
        self.0.version()
    }

    /// How many bytes the file lacks of the size that it records, because it was cut off or never closed.
    #[getter]
    fn lost_nbytes(&self) -> u64 {
        self.0.lost_nbytes()
    }

    /// What opening a far file took; None for a file that was not opened from afar, nor as if it were.
    #[getter]
    fn opening<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(Opening { nbytes, asked, metadata }) = self.0.opening() else { return Ok(None) };
        let facts = PyDict::new(py);
        facts.set_item("nbytes", nbytes)?;
        facts.set_item("round_count", asked.round_count)?;
        facts.set_item("request_count", asked.request_count)?;
        facts.set_item("fetched_nbytes", asked.fetched_nbytes)?;
        facts.set_item("metadata_nbytes", metadata.nbytes())?;
        facts.set_item("metadata_end", metadata.end())?;
        facts.set_item("place_count", metadata.place_count())?;
        let kinds = metadata.kinds().into_iter();
        let kinds = kinds.map(|one| (one.what, one.count, one.nbytes, one.first_offset, one.last_offset));
        facts.set_item("kinds", kinds.collect::<Vec<_>>())?;
        Ok(Some(facts))
    }

    /// URLs of the other remote files that hold chunks of this archive.
    #[getter]
    fn urls(&self) -> Vec<&str> {
        self.0.urls()
    }

    /// How many arrays the file has.
    #[getter]
    fn array_count(&self) -> usize {
        self.0.tree().arrays.len()
    }

    /// Fails if a file that these references point to has changed since they were made. Other archives never fail.
    fn check_sources(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.0.check_sources())?.map_err(errors::of_read)
    }

    /// The attributes of a group.
    fn attributes<'py>(&self, py: Python<'py>, group: usize) -> PyResult<Bound<'py, PyList>> {
        values::attributes(py, &self.group(group)?.attributes, &self.0)
    }

    /// What a group holds: `(name, kind, target)`.
    fn links<'py>(
        &self,
        py: Python<'py>,
        group: usize,
    ) -> PyResult<Vec<(String, &'static str, Bound<'py, PyAny>)>> {
        let links = &self.group(group)?.links;
        links.iter().map(|(name, link)| Ok((name.clone(), kind(link), target(py, link)?))).collect()
    }

    /// Objects of an HDF5 file as their headers describe them, by address; None stands for the root.
    fn hdf5_objects<'py>(
        &self,
        py: Python<'py>,
        addresses: Vec<Option<u64>>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let found = detached(py, || self.0.hdf5_objects(&addresses))?.map_err(errors::of_archive)?;
        found.iter().map(|object| object_facts::object(py, object)).collect()
    }

    /// The number of the array whose header is at an address of an HDF5 file; None if there is none.
    fn array_at(&self, py: Python<'_>, address: u64) -> PyResult<Option<usize>> {
        detached(py, || self.0.array_at(address))?.map_err(errors::of_archive)
    }

    /// An array, and the path that led to it.
    fn array(&self, number: usize, path: String) -> PyResult<StoredArray> {
        let missing = || PyIndexError::new_err(format!("there is no array number {number}"));
        ArchiveArray::new(&self.0, number, path).map(StoredArray).ok_or_else(missing)
    }
}

impl ArchiveFile {
    fn group(&self, number: usize) -> PyResult<&hyperslab_core::Group> {
        let missing = || PyIndexError::new_err(format!("there is no group number {number}"));
        self.0.tree().groups.get(number).ok_or_else(missing)
    }
}

/// Options for archives that Python opens: signals interrupt long work.
pub(crate) fn options(chunk_cache_nbytes: usize, resolver: Option<DocumentResolver>) -> OpenOptions {
    let resolver = resolver.unwrap_or_default().0;
    OpenOptions { chunk_cache_nbytes, resolver, interrupts: Arc::new(Signals), ..OpenOptions::default() }
}

/// Runs `open` without holding the interpreter.
pub(crate) fn opened(
    py: Python<'_>,
    open: impl FnOnce() -> Result<Archive, Error> + Send,
) -> PyResult<ArchiveFile> {
    let archive = detached(py, open)?.map_err(errors::of_archive)?;
    Ok(ArchiveFile(Arc::new(archive)))
}

fn kind(link: &Link) -> &'static str {
    match link {
        Link::Group(_) => "group",
        Link::Array(_) => "array",
        Link::Soft(_) => "soft",
        Link::External { .. } => "external",
        Link::Unreadable(Unreadable::Unsupported { .. }) => "unsupported",
        Link::Unreadable(Unreadable::Damaged { .. }) => "damaged",
        Link::Unreadable(Unreadable::Unfetched { .. }) => "unfetched",
    }
}

fn target<'py>(py: Python<'py>, link: &Link) -> PyResult<Bound<'py, PyAny>> {
    Ok(match link {
        Link::Group(number) | Link::Array(number) => number.into_pyobject(py)?.into_any(),
        Link::Soft(path) => path.into_pyobject(py)?.into_any(),
        Link::Unreadable(reason) => reason.to_string().into_pyobject(py)?.into_any(),
        Link::External { file, path } => (file, path).into_pyobject(py)?.into_any(),
    })
}
