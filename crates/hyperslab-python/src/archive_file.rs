//! `ArchiveFile`: an open file of any format, its tree, and what reading its arrays shares.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hyperslab_core::{Attribute, Link, Tree, Unreadable};
use hyperslab_engine::{
    ChunkCache, FileStore, FileVersion, Location, OtherFile, ReadError, RemoteOptions, RemoteStore, Store,
    Stores,
};
use hyperslab_parsers::zarr::Table;
use hyperslab_parsers::{self as parsers, Policy};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::format::Format;
use crate::references::{self, OpenReferences};
use crate::remote::RemoteFile;
use crate::sources::{Interrupts, LocalSource, RemoteSource};
use crate::stored_array::StoredArray;
use crate::values;
use crate::virtual_sources::{self, Problem, Resolved};
use crate::{dmrpp, errors};

/// An open file or folder.
pub(crate) struct Opened {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) tree: Tree,
    pub(crate) bytes: Bytes,
    pub(crate) stores: Stores,
    pub(crate) cache: ChunkCache,
    /// Attributes that the format's own libraries do not show.
    pub(crate) hidden: &'static [&'static str],
    /// Virtual arrays, by their numbers, once they were used.
    resolved: Mutex<HashMap<usize, Arc<Resolved>>>,
    /// Files that their sources are in.
    sources: Mutex<HashMap<PathBuf, Arc<SourceFile>>>,
}

/// A file that arrays of another one show parts of, as it was when it was parsed. It is not held open.
pub(crate) struct SourceFile {
    pub(crate) tree: Tree,
    pub(crate) version: FileVersion,
}

/// Where parsers find more bytes of a file after it was opened.
pub(crate) enum Bytes {
    Folder,
    Local(Arc<FileStore>),
    Remote(Arc<RemoteStore>),
    References(Box<OpenReferences>),
}

/// Of each chunk of an array, by its linear index: file, offset, length; and the bytes of those at hand.
type Columns<'py> = (
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u64>,
    PyReadonlyArray1<'py, u64>,
    BTreeMap<u64, Vec<u8>>,
);

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

    /// Metadata documents of Zarr, by their keys, and the chunks of arrays, by the arrays' paths, as one archive.
    #[staticmethod]
    fn of_references(
        py: Python<'_>,
        documents: HashMap<String, Vec<u8>>,
        tables: HashMap<String, Columns<'_>>,
        files: Vec<String>,
        folder: PathBuf,
        chunk_cache_nbytes: usize,
    ) -> PyResult<Self> {
        let fault = |error| errors::of_parser(&folder.display().to_string(), error);
        let mut parsed = HashMap::new();
        for (array, (numbers, offsets, lengths, inline)) in tables {
            let (numbers, offsets, lengths) = (numbers.as_slice()?, offsets.as_slice()?, lengths.as_slice()?);
            let table = Table::new(numbers, offsets, lengths, inline, files.len()).map_err(fault)?;
            parsed.insert(array, table);
        }
        let tree = py.detach(|| parsers::zarr::parse_tables(documents, parsed, &files, &folder));
        let opened = Opened::of_folder(&folder, Format::References, tree.map_err(fault)?, chunk_cache_nbytes);
        Ok(Self(Arc::new(opened)))
    }

    /// What kind of file it is.
    #[getter]
    fn format(&self) -> &'static str {
        self.0.format.name()
    }

    /// Which version of the file was opened: its `ETag`, or its size and time of change; None for a folder.
    #[getter]
    fn version(&self) -> Option<String> {
        match &self.0.bytes {
            Bytes::Folder => None,
            Bytes::References(references) => Some(references.version.to_string()),
            Bytes::Local(store) => Some(store.version().to_string()),
            Bytes::Remote(store) => Some(store.version()),
        }
    }

    /// Bytes by which the file is shorter than it says that it is: it was cut off, or never closed.
    #[getter]
    fn lost_nbytes(&self) -> u64 {
        let held = match &self.0.bytes {
            Bytes::Folder | Bytes::References(_) => return 0,
            Bytes::Local(store) => store.nbytes(),
            Bytes::Remote(store) => store.nbytes(),
        };
        self.0.tree.declared_nbytes.map_or(0, |declared| declared.saturating_sub(held))
    }

    /// How many arrays the file has.
    #[getter]
    fn array_count(&self) -> usize {
        self.0.tree.arrays.len()
    }

    /// Fails if a file that references were made of is another one now; other archives have none.
    fn check_sources(&self, py: Python<'_>) -> PyResult<()> {
        if self.0.references().is_none() {
            return Ok(());
        }
        py.detach(|| references::check_sources(&self.0)).map_err(errors::of_read)
    }

    /// The attributes of a group.
    fn attributes<'py>(&self, py: Python<'py>, group: usize) -> PyResult<Bound<'py, PyList>> {
        attributes(py, &self.group(group)?.attributes, &self.0)
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
    pub(crate) fn opened(&self) -> Arc<Opened> {
        Arc::clone(&self.0)
    }

    fn group(&self, number: usize) -> PyResult<&hyperslab_core::Group> {
        let missing = || PyIndexError::new_err(format!("there is no group number {number}"));
        self.0.tree.groups.get(number).ok_or_else(missing)
    }
}

/// `(name, value)` of each attribute; a value that cannot be had is the exception that says why.
pub(crate) fn attributes<'py>(
    py: Python<'py>,
    attributes: &[Attribute],
    file: &Opened,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for attribute in attributes.iter().filter(|attribute| !file.hidden.contains(&attribute.name.as_str())) {
        let value = match &attribute.value {
            Ok(value) => values::attribute(py, value, &file.tree.names),
            Err(reason) => {
                Err(errors::unreadable(reason, format!("attribute {:?}: {reason}", attribute.name)))
            }
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

/// Why a file could not be opened.
pub(crate) enum Failure {
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
    pub(crate) fn into_python(self, path: &Path) -> PyErr {
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
            return Ok(Self::of_folder(path, Format::Zarr, tree, chunk_cache_nbytes));
        }
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let opened = Arc::new(FileStore::open(path)?);
        if Format::of(&LocalSource(&*opened))? == Format::OwnReferences {
            let mut open = OpenReferences::open(path, &opened)?;
            let tree = std::mem::take(&mut open.found.tree);
            let stores = Stores::of_references(name.clone(), open.files(&folder), open.opener(&name));
            let bytes = Bytes::References(Box::new(open));
            return Ok(Self::new(name, path, Format::OwnReferences, tree, bytes, stores, cache));
        }
        let (store, format, tree) = parsed(path, opened)?;
        let opened: Arc<dyn Store> = Arc::clone(&store) as Arc<dyn Store>;
        let stores = Stores::new(Some(opened), &folder, tree.other_files.clone());
        let stores = if format == Format::Hdf5 { stores.with_padded_others() } else { stores };
        Ok(Self::new(name, path, format, tree, Bytes::Local(store), stores, cache))
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
            let mut tree = format.parse(&source, Policy::REMOTE, None)?;
            if format == Format::Dmrpp {
                dmrpp::place_files(&mut tree, Path::new(&file.location.name));
            }
            Ok((format, tree))
        });
        let failure = source.failure();
        let (format, tree) = parsed.map_err(|error| failure.map_or(Failure::Parse(error), Failure::Read))?;
        let (store, name) = (Arc::new(store), file.location.name.clone());
        let opened = Arc::clone(&store) as Arc<dyn Store>;
        let (url, options) = (file.url.clone(), file.options.clone());
        let open = Arc::new(move |other: &Path| open_beside(&url, &other.to_string_lossy(), &options));
        let others = tree.other_files.iter().map(PathBuf::from).collect();
        let stores = Stores::with_opener(Some(opened), name.clone(), others, open);
        let (cache, path) = (ChunkCache::new(chunk_cache_nbytes), Path::new(&file.location.name));
        Ok(Self::new(name, path, format, tree, Bytes::Remote(store), stores, cache))
    }

    fn new(
        name: String,
        path: &Path,
        format: Format,
        tree: Tree,
        bytes: Bytes,
        stores: Stores,
        cache: ChunkCache,
    ) -> Self {
        let is_netcdf4 = format == Format::Hdf5 && parsers::hdf5::is_netcdf4(&tree);
        let hidden = if is_netcdf4 { parsers::hdf5::HIDDEN } else { &[] };
        let (path, resolved, sources) = (path.to_owned(), Mutex::default(), Mutex::default());
        Self { name, path, format, tree, bytes, stores, cache, hidden, resolved, sources }
    }

    /// All of whose files are in a folder, or elsewhere; there is no file number 0.
    fn of_folder(path: &Path, format: Format, tree: Tree, chunk_cache_nbytes: usize) -> Self {
        let stores = Stores::new(None, path, tree.other_files.clone());
        let (name, cache) = (path.display().to_string(), ChunkCache::new(chunk_cache_nbytes));
        Self::new(name, path, format, tree, Bytes::Folder, stores, cache)
    }

    /// What the file is, if it is no archive itself but knows where the chunks of some are.
    pub(crate) fn references(&self) -> Option<&OpenReferences> {
        match &self.bytes {
            Bytes::References(references) => Some(references),
            Bytes::Folder | Bytes::Local(_) | Bytes::Remote(_) => None,
        }
    }

    /// The opened file as one that chunks lie in; folders and references have none.
    pub(crate) fn own_file(&self) -> Option<OtherFile> {
        let version = match &self.bytes {
            Bytes::Local(store) => Some(store.version()),
            Bytes::Remote(_) => None,
            Bytes::Folder | Bytes::References(_) => return None,
        };
        Some(OtherFile { path: self.path.clone(), version, is_padded: false })
    }

    /// A virtual array as one with segments. It is resolved once, or, by threads at the same time, more than once:
    /// nobody waits for a lock that a thread may have held when the process was forked.
    pub(crate) fn resolved(&self, number: usize) -> Result<Arc<Resolved>, Problem> {
        let known = self.resolved.try_lock().ok().and_then(|known| known.get(&number).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        let found = Arc::new(match self.references() {
            Some(references) => references.array(self, number)?,
            None => virtual_sources::resolved(self, number)?,
        });
        Ok(match self.resolved.try_lock() {
            Ok(mut known) => Arc::clone(known.entry(number).or_insert(found)),
            Err(_) => found,
        })
    }

    /// A source's file, parsed, unless it was before.
    pub(crate) fn source(&self, path: &Path) -> Result<Arc<SourceFile>, Failure> {
        let known = self.sources.try_lock().ok().and_then(|known| known.get(path).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        let (store, _, tree) = parsed(path, Arc::new(FileStore::open(path)?))?;
        let found = Arc::new(SourceFile { tree, version: store.version() });
        if let Ok(mut known) = self.sources.try_lock() {
            known.insert(path.to_owned(), Arc::clone(&found));
        }
        Ok(found)
    }
}

/// A file's tree.
fn parsed(path: &Path, store: Arc<FileStore>) -> Result<(Arc<FileStore>, Format, Tree), Failure> {
    let source = LocalSource(&*store);
    let format = Format::of(&source)?;
    let parsed = format.parse(&source, Policy::LOCAL, Some(path.parent().unwrap_or(Path::new(""))));
    store.check_unchanged()?; // a file that changed explains whatever went wrong
    let mut tree = parsed?;
    if format == Format::Dmrpp {
        dmrpp::place_files(&mut tree, path);
    }
    Ok((store, format, tree))
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
