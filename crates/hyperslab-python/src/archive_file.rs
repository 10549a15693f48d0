//! `ArchiveFile`: an open file of any format, its tree, and what reading its arrays shares.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hyperslab_core::{Attribute, FileIndex, Link, Tree, Unreadable};
use hyperslab_engine::{
    ChunkCache, FileStore, FileVersion, Identity, Opener, OtherFile, RemoteStore, Store, Stores,
};
use hyperslab_parsers as parsers;
use hyperslab_parsers::zarr::ArrayDocument;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors;
use crate::failure::Failure;
use crate::format::{Format, Parsed};
use crate::hdf5_places;
use crate::lazy_indexes::LazyIndexes;
use crate::lazy_tables::{self, Columns, LazyTables};
use crate::referenced::{Reach, Referenced, folder_of, is_url};
use crate::references::{self, OpenReferences};
use crate::remote::RemoteFile;
use crate::sought::Keys;
use crate::sources::{Interrupts, LocalSource};
use crate::stored_array::StoredArray;
use crate::values;
use crate::virtual_sources::{self, Problem, Resolved};

/// An open file or folder.
pub(crate) struct Opened {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) tree: Tree,
    pub(crate) bytes: Bytes,
    pub(crate) stores: Stores,
    pub(crate) cache: ChunkCache,
    /// What it may lead to.
    pub(crate) reach: Reach,
    /// Attributes that the format's own libraries do not show.
    pub(crate) hidden: &'static [&'static str],
    /// Where chunks are looked up when they are needed.
    pub(crate) indexes: Option<LazyIndexes>,
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
    /// A local file that is not held open.
    Closed(FileVersion),
    Remote(Arc<RemoteStore>),
    References(Box<OpenReferences>),
    /// A Zarr hierarchy far away: nowhere else than in its keys.
    Keys(Box<FarArrays>),
    Tables(Box<LazyTables>),
    Collection(Box<OpenCollection>),
}

/// How the chunks of a Zarr hierarchy far away are looked for.
pub(crate) struct FarArrays {
    /// By the numbers of the arrays.
    pub(crate) documents: Vec<ArrayDocument>,
    pub(crate) keys: Keys,
    pub(crate) digest: u64,
}

/// Files that are shown as one.
pub(crate) struct OpenCollection {
    /// Tells its files' versions from others.
    pub(crate) version: String,
    /// By an array's number, the file that its elements point into.
    pub(crate) heaps: HashMap<usize, Heap>,
    /// What is known of files far away.
    pub(crate) identities: HashMap<PathBuf, Identity>,
}

/// A file of a collection that elements point into.
pub(crate) struct Heap {
    pub(crate) file: Arc<Opened>,
    /// Its number in the collection.
    pub(crate) number: FileIndex,
}

/// An open file: groups and arrays by their numbers; group 0 is the root.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct ArchiveFile(Arc<Opened>);

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl ArchiveFile {
    #[new]
    #[pyo3(signature = (path, chunk_cache_nbytes, reach=None, patterns=Vec::new(), settled=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        chunk_cache_nbytes: usize,
        reach: Option<Reach>,
        patterns: Vec<String>,
        settled: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let reach = reach.unwrap_or_default();
        let opened = py.detach(|| Opened::open(&path, chunk_cache_nbytes, reach, &patterns, settled));
        opened.map(|opened| Self(Arc::new(opened))).map_err(|failure| failure.into_python(&path))
    }

    /// A local file or folder that is not held open: what it holds is known, and can be combined.
    #[staticmethod]
    #[pyo3(signature = (path, reach=None))]
    fn closed(py: Python<'_>, path: PathBuf, reach: Option<Reach>) -> PyResult<Self> {
        let reach = reach.unwrap_or_default();
        let opened = py.detach(|| Opened::open(&path, 0, reach, &[], None).map(Opened::closed));
        opened.map(Self::of).map_err(|failure| failure.into_python(&path))
    }

    /// Open a file far away.
    #[staticmethod]
    #[pyo3(signature = (file, chunk_cache_nbytes, reach=None, patterns=Vec::new()))]
    fn remote(
        py: Python<'_>,
        file: &Bound<'_, RemoteFile>,
        chunk_cache_nbytes: usize,
        reach: Option<Reach>,
        patterns: Vec<String>,
    ) -> PyResult<Self> {
        let (file, interrupts, reach) = (file.get(), Interrupts::default(), reach.unwrap_or_default());
        let opened =
            py.detach(|| Opened::open_remote(file, chunk_cache_nbytes, reach, &patterns, &interrupts));
        opened.map(Self::of).map_err(|failure| failure.raised(interrupts, &file.location.name))
    }

    /// Open a Zarr hierarchy far away.
    #[staticmethod]
    fn remote_zarr(
        py: Python<'_>,
        folder: &Bound<'_, RemoteFile>,
        chunk_cache_nbytes: usize,
    ) -> PyResult<Self> {
        let (folder, interrupts) = (folder.get(), Interrupts::default());
        let opened = py.detach(|| Opened::open_remote_zarr(folder, chunk_cache_nbytes, &interrupts));
        opened.map(Self::of).map_err(|failure| failure.raised(interrupts, &folder.location.name))
    }

    /// Metadata documents of Zarr, by their keys, and the chunks of arrays, by the arrays' paths, as one archive.
    #[staticmethod]
    #[pyo3(signature = (documents, tables, files, folder, chunk_cache_nbytes, reach=None))]
    #[allow(clippy::too_many_arguments)] // one a keyword
    fn of_references(
        py: Python<'_>,
        documents: HashMap<String, Vec<u8>>,
        tables: HashMap<String, Columns<'_>>,
        files: Vec<String>,
        folder: PathBuf,
        chunk_cache_nbytes: usize,
        reach: Option<Reach>,
    ) -> PyResult<Self> {
        let reach = reach.unwrap_or_default();
        let fault = |error| errors::of_parser(&folder.display().to_string(), error);
        let mut parsed = HashMap::new();
        for (array, columns) in tables {
            parsed.insert(array, lazy_tables::table(columns, files.len()).map_err(fault)?);
        }
        let tree =
            py.detach(|| parsers::zarr::parse_tables(documents, parsed, &files, &folder, reach.allowed()));
        let (tree, name) = (tree.map_err(fault)?, folder.display().to_string());
        let named = Referenced::of_names(name.clone(), &folder, &tree.other_files);
        let (stores, cache) = (named.stores(reach.clone()), ChunkCache::new(chunk_cache_nbytes));
        let opened = Opened::new(name, &folder, Format::References, tree, Bytes::Folder, stores, cache);
        Ok(Self(Arc::new(opened.reaching(reach))))
    }

    /// The same, where `table` gives the chunks of an array and the names of their files when it is first used.
    #[staticmethod]
    #[pyo3(signature = (documents, table, folder, chunk_cache_nbytes, reach=None))]
    fn of_tables(
        documents: HashMap<String, Vec<u8>>,
        table: Py<PyAny>,
        folder: PathBuf,
        chunk_cache_nbytes: usize,
        reach: Option<Reach>,
    ) -> PyResult<Self> {
        let (name, reach) = (folder.display().to_string(), reach.unwrap_or_default());
        let tables = LazyTables::new(documents, table, folder.clone(), reach.clone());
        let (tables, tree) = tables.map_err(|error| errors::of_parser(&name, error))?;
        let (stores, cache) = (Stores::new(None, &folder, Vec::new()), ChunkCache::new(chunk_cache_nbytes));
        let bytes = Bytes::Tables(Box::new(tables));
        let opened = Opened::new(name, &folder, Format::References, tree, bytes, stores, cache);
        Ok(Self(Arc::new(opened.reaching(reach))))
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
            Bytes::Folder | Bytes::Tables(_) => None,
            Bytes::References(references) => references.version(),
            Bytes::Local(store) => Some(store.version().to_string()),
            Bytes::Keys(far) => Some(format!("metadata {:016x}", far.digest)),
            Bytes::Closed(version) => Some(version.to_string()),
            Bytes::Remote(store) => store.version(),
            Bytes::Collection(collection) => Some(collection.version.clone()),
        }
    }

    /// Bytes by which the file is shorter than it says that it is: it was cut off, or never closed.
    #[getter]
    fn lost_nbytes(&self) -> u64 {
        let held = match &self.0.bytes {
            Bytes::Folder
            | Bytes::References(_)
            | Bytes::Keys(_)
            | Bytes::Tables(_)
            | Bytes::Collection(_) => return 0,
            Bytes::Local(store) => store.nbytes(),
            Bytes::Closed(version) => version.nbytes(),
            Bytes::Remote(store) => store.nbytes(),
        };
        self.0.tree.declared_nbytes.map_or(0, |declared| declared.saturating_sub(held))
    }

    /// URLs of the files far away that chunks lie in beside this one.
    #[getter]
    fn urls(&self) -> Vec<&str> {
        let paths = self.0.stores.others().iter().filter_map(|file| file.path.to_str());
        paths.filter(|path| is_url(path)).collect()
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
    pub(crate) fn of(opened: Opened) -> Self {
        Self(Arc::new(opened))
    }

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

impl Opened {
    fn open(
        path: &Path,
        chunk_cache_nbytes: usize,
        reach: Reach,
        patterns: &[String],
        settled: Option<Py<PyAny>>,
    ) -> Result<Self, Failure> {
        let cache = ChunkCache::new(chunk_cache_nbytes);
        let name = path.display().to_string();
        if path.is_dir() {
            let tree = parsers::zarr::parse_directory(path, reach.allowed())?;
            return Ok(Self::of_folder(path, Format::Zarr, tree, chunk_cache_nbytes, reach));
        }
        let folder = folder_of(path);
        let opened = Arc::new(FileStore::open(path)?);
        if Format::of(&LocalSource(&*opened))? == Format::OwnReferences {
            return Ok(Self::of_own_references(OpenReferences::open(path, &opened)?, path, reach, cache));
        }
        let Parsed { store, format, tree, indexes } =
            Parsed::of(path, opened, patterns, settled.is_some(), reach.allowed())?;
        let opened: Arc<dyn Store> = Arc::clone(&store) as Arc<dyn Store>;
        let stores = match format {
            Format::References | Format::Dmrpp => {
                Referenced::of_names(name.clone(), &folder, &tree.other_files).stores(reach.clone())
            }
            Format::Hdf5 => hdf5_places::stores(path, opened, &tree, &reach),
            _ => Stores::new(Some(opened), &folder, tree.other_files.clone()).opened_by(reach.opener()),
        };
        let indexes = settled.map(|settled| LazyIndexes::new(indexes, settled));
        Ok(Self { reach, indexes, ..Self::new(name, path, format, tree, Bytes::Local(store), stores, cache) })
    }

    pub(crate) fn of_own_references(
        mut open: OpenReferences,
        path: &Path,
        reach: Reach,
        cache: ChunkCache,
    ) -> Self {
        let (name, tree) = (path.display().to_string(), std::mem::take(&mut open.found.tree));
        let stores = open.referenced(name.clone(), &folder_of(path)).stores(reach.clone());
        let bytes = Bytes::References(Box::new(open));
        Self::new(name, path, Format::OwnReferences, tree, bytes, stores, cache).reaching(reach)
    }

    pub(crate) fn new(
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
        let (reach, indexes) = (Reach::default(), None);
        Self { name, path, format, tree, bytes, stores, cache, reach, hidden, indexes, resolved, sources }
    }

    /// The same, which may lead so far.
    pub(crate) fn reaching(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// All of whose files are in a folder, or elsewhere; there is no file number 0.
    fn of_folder(path: &Path, format: Format, tree: Tree, chunk_cache_nbytes: usize, reach: Reach) -> Self {
        let stores = Stores::new(None, path, tree.other_files.clone()).opened_by(reach.opener());
        let (name, cache) = (path.display().to_string(), ChunkCache::new(chunk_cache_nbytes));
        Self::new(name, path, format, tree, Bytes::Folder, stores, cache).reaching(reach)
    }

    /// What the file is, if it is no archive itself but knows where the chunks of some are.
    pub(crate) fn references(&self) -> Option<&OpenReferences> {
        match &self.bytes {
            Bytes::References(references) => Some(references),
            _ => None,
        }
    }

    /// Whether an array has no chunks as it is in its tree, but gets them when it is first used.
    pub(crate) fn is_lazy(&self, number: usize) -> bool {
        matches!(self.bytes, Bytes::References(_) | Bytes::Tables(_))
            || self.indexes.as_ref().is_some_and(|indexes| indexes.has(number))
    }

    /// A virtual array, or one that is lazy, as far as it was resolved before.
    pub(crate) fn known(&self, number: usize) -> Option<Arc<Resolved>> {
        self.resolved.try_lock().ok().and_then(|known| known.get(&number).cloned())
    }

    /// The same, but for the open file.
    fn closed(self) -> Self {
        let Bytes::Local(store) = &self.bytes else { return self };
        let version = store.version();
        let own = OtherFile { path: self.path.clone(), version: Some(version), is_padded: false };
        Self { stores: self.stores.closed(own), bytes: Bytes::Closed(version), ..self }
    }

    /// The opened file as one that chunks lie in; folders, references and collections have none.
    pub(crate) fn own_file(&self) -> Option<OtherFile> {
        let version = match &self.bytes {
            _ if matches!(self.format, Format::References | Format::Dmrpp) => return None,
            Bytes::Local(store) => Some(store.version()),
            Bytes::Closed(version) => Some(*version),
            Bytes::Remote(_) => None,
            Bytes::Folder
            | Bytes::References(_)
            | Bytes::Keys(_)
            | Bytes::Tables(_)
            | Bytes::Collection(_) => return None,
        };
        Some(OtherFile { path: self.path.clone(), version, is_padded: false })
    }

    /// What opens it, where that is no matter of its path.
    pub(crate) fn own_opener(&self) -> Option<Opener> {
        let Bytes::Remote(store) = &self.bytes else { return None };
        let store = Arc::clone(store);
        Some(Arc::new(move |_| Ok(Arc::clone(&store) as Arc<dyn Store>)))
    }

    /// A virtual array, or one of references or a collection, as one with segments. It is resolved once, or, by threads
    /// at the same time, more than once: nobody waits for a lock that a thread may have held when the process was forked.
    pub(crate) fn resolved(&self, number: usize) -> Result<Arc<Resolved>, Problem> {
        if let Some(known) = self.known(number) {
            return Ok(known);
        }
        let found = Arc::new(match &self.bytes {
            Bytes::References(references) => references.array(self, number)?,
            Bytes::Tables(tables) => tables.array(number)?,
            Bytes::Collection(_) => {
                Resolved::new(self.tree.arrays[number].clone(), self.stores.with(Vec::new()))
            }
            _ => virtual_sources::resolved(self, number)?,
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
        let opened = Arc::new(self.reach.open_file(path)?);
        let Parsed { store, tree, .. } = Parsed::of(path, opened, &[], false, self.reach.allowed())?;
        let found = Arc::new(SourceFile { tree, version: store.version() });
        if let Ok(mut known) = self.sources.try_lock() {
            known.insert(path.to_owned(), Arc::clone(&found));
        }
        Ok(found)
    }
}
