//! `ArchiveFile`: an open file of any format, its tree, and what reading its arrays shares.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{Attribute, Link, Tree};
use hyperslab_engine::{
    ChunkCache, FileStore, Location, ReadError, RemoteOptions, RemoteStore, Store, Stores,
};
use hyperslab_parsers::{self as parsers, Pages, Policy};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors;
use crate::format::Format;
use crate::remote::RemoteFile;
use crate::sources::{Interrupts, LocalSource, RemoteSource};
use crate::stored_array::StoredArray;
use crate::values;

/// An open file or folder.
pub(crate) struct Opened {
    pub(crate) name: String,
    pub(crate) format: Format,
    pub(crate) tree: Tree,
    pub(crate) bytes: Bytes,
    pub(crate) stores: Stores,
    pub(crate) cache: ChunkCache,
}

/// Where parsers find more bytes of a file after it was opened.
pub(crate) enum Bytes {
    Folder,
    Local(Arc<FileStore>),
    Remote(Arc<RemoteStore>),
}

/// An open file: groups and arrays by their numbers; group 0 is the root.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct ArchiveFile(Arc<Opened>);

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl ArchiveFile {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, chunk_cache_nbytes: usize) -> PyResult<Self> {
        let opened = py.detach(|| Opened::open(&path, chunk_cache_nbytes));
        opened.map(|opened| Self(Arc::new(opened))).map_err(|failure| failure.into_python(&path))
    }

    /// Open a file far away.
    #[staticmethod]
    fn remote(py: Python<'_>, file: &Bound<'_, RemoteFile>, chunk_cache_nbytes: usize) -> PyResult<Self> {
        let (file, interrupts) = (file.get(), Interrupts::default());
        let opened = py.detach(|| Opened::open_remote(file, chunk_cache_nbytes, &interrupts));
        let opened = opened.map(|opened| Self(Arc::new(opened)));
        let name = Path::new(&file.location.name);
        opened.map_err(|failure| interrupts.raised().unwrap_or_else(|| failure.into_python(name)))
    }

    /// What kind of file it is.
    #[getter]
    fn format(&self) -> &'static str {
        self.0.format.name()
    }

    /// How many arrays the file has.
    #[getter]
    fn array_count(&self) -> usize {
        self.0.tree.arrays.len()
    }

    /// The attributes of a group.
    fn attributes<'py>(&self, py: Python<'py>, group: usize) -> PyResult<Bound<'py, PyList>> {
        attributes(py, &self.group(group)?.attributes)
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

    /// An array, under the path by which it was found.
    fn array(&self, number: usize, path: String) -> PyResult<StoredArray> {
        if number >= self.0.tree.arrays.len() {
            return Err(PyIndexError::new_err(format!("there is no array number {number}")));
        }
        Ok(StoredArray::new(Arc::clone(&self.0), number, path))
    }
}

impl ArchiveFile {
    fn group(&self, number: usize) -> PyResult<&hyperslab_core::Group> {
        let missing = || PyIndexError::new_err(format!("there is no group number {number}"));
        self.0.tree.groups.get(number).ok_or_else(missing)
    }
}

/// `(name, value)` of each attribute; a value that cannot be had is the exception that says why.
pub(crate) fn attributes<'py>(py: Python<'py>, attributes: &[Attribute]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for attribute in attributes {
        let value = match &attribute.value {
            Ok(value) => values::attribute(py, value),
            Err(reason) => Err(errors::unsupported(format!("attribute {:?}: {reason}", attribute.name))),
        };
        let value = value.unwrap_or_else(|error| error.into_value(py).into_bound(py).into_any());
        list.append((&attribute.name, value))?;
    }
    Ok(list)
}

fn kind(link: &Link) -> &'static str {
    match link {
        Link::Group(_) => "group",
        Link::Array(_) => "array",
        Link::Soft(_) => "soft",
        Link::External { .. } => "external",
        Link::Unsupported(_) => "unsupported",
    }
}

fn target<'py>(py: Python<'py>, link: &Link) -> PyResult<Bound<'py, PyAny>> {
    Ok(match link {
        Link::Group(number) | Link::Array(number) => number.into_pyobject(py)?.into_any(),
        Link::Soft(path) | Link::Unsupported(path) => path.into_pyobject(py)?.into_any(),
        Link::External { file, path } => (file, path).into_pyobject(py)?.into_any(),
    })
}

/// Why a file could not be opened.
enum Failure {
    Parse(parsers::Error),
    Read(ReadError),
}

impl From<parsers::Error> for Failure {
    fn from(error: parsers::Error) -> Self {
        Self::Parse(error)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl Failure {
    fn into_python(self, path: &Path) -> PyErr {
        match self {
            Self::Parse(error) => errors::of_parser(&path.display().to_string(), error),
            Self::Read(error) => errors::of_read(error),
        }
    }
}

impl Opened {
    fn open(path: &Path, chunk_cache_nbytes: usize) -> Result<Self, Failure> {
        let cache = ChunkCache::new(chunk_cache_nbytes);
        let name = path.display().to_string();
        if path.is_dir() {
            let tree = parsers::zarr::parse_directory(path)?;
            let stores = Stores::new(None, path.to_owned(), tree.other_files.clone());
            return Ok(Self { name, format: Format::Zarr, tree, bytes: Bytes::Folder, stores, cache });
        }
        let store = Arc::new(FileStore::open(path)?);
        let source = LocalSource(&store);
        let format = Format::of(&source)?;
        let parsed = format.parse(&mut Pages::new(&source, Policy::LOCAL));
        store.check_unchanged()?; // a file that changed explains whatever went wrong
        let tree = parsed?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let opened: Arc<dyn Store> = Arc::clone(&store) as Arc<dyn Store>;
        let stores = Stores::new(Some(opened), folder, tree.other_files.clone());
        Ok(Self { name, format, tree, bytes: Bytes::Local(store), stores, cache })
    }

    fn open_remote(
        file: &RemoteFile,
        chunk_cache_nbytes: usize,
        interrupts: &Interrupts,
    ) -> Result<Self, Failure> {
        let (location, options) = (file.location.clone(), file.options.clone());
        let head_nbytes = usize::try_from(Policy::REMOTE.first_nbytes).unwrap_or(usize::MAX);
        let stop = || interrupts.are_pending();
        let (store, head) = RemoteStore::open(location, options, head_nbytes, &stop)?;
        let source = RemoteSource::new(&store, &head, interrupts);
        let parsed = Format::of(&source).and_then(|format| {
            let tree = format.parse(&mut Pages::new(&source, Policy::REMOTE))?;
            Ok((format, tree))
        });
        let failure = source.failure();
        let (format, tree) = parsed.map_err(|error| failure.map_or(Failure::Parse(error), Failure::Read))?;
        let (store, name) = (Arc::new(store), file.location.name.clone());
        let opened = Arc::clone(&store) as Arc<dyn Store>;
        let (url, options) = (file.url.clone(), file.options.clone());
        let open = Box::new(move |other: &str| open_beside(&url, other, &options));
        let stores = Stores::with_opener(Some(opened), name.clone(), tree.other_files.clone(), open);
        let (bytes, cache) = (Bytes::Remote(store), ChunkCache::new(chunk_cache_nbytes));
        Ok(Self { name, format, tree, bytes, stores, cache })
    }
}

/// A file that a remote one names: it must lie below the same folder, so that no file leads elsewhere.
fn open_beside(url: &str, other: &str, options: &RemoteOptions) -> Result<Arc<dyn Store>, ReadError> {
    let base = url.split(['?', '#']).next().unwrap_or_default();
    let refused = |problem: String| ReadError::System { file: base.to_owned(), problem };
    let folder = base.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
    let leads_elsewhere =
        other.starts_with('/') || other.contains("://") || other.split('/').any(|part| part == "..");
    if leads_elsewhere {
        return Err(refused(format!("it leads to {other:?}, outside its own folder: that is not followed")));
    }
    let location = Location::of_url(&format!("{folder}/{other}"), options).map_err(refused)?;
    let (store, _) = RemoteStore::open(location, options.clone(), 1, &|| false)?;
    Ok(Arc::new(store))
}
