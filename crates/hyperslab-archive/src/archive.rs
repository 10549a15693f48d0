//! `Archive`: an open file of any format, its tree, and what its arrays share when they are read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hyperslab_core::{Attribute, ByteRange, FileIndex, Tree, Unreadable};
use hyperslab_engine::{
    ChunkCache, FileStore, FileVersion, Identity, Opener, OtherFile, ReadError, RemoteStore, Store, Stores,
};
use hyperslab_parsers as parsers;
use hyperslab_parsers::zarr::ArrayDocument;

use crate::error::Problem;
use crate::format::Format;
use crate::interrupt::{InterruptCheck, NeverInterrupted};
use crate::lazy_indexes::LazyIndexes;
use crate::lazy_tables::LazyTables;
use crate::open_references::OpenReferences;
use crate::opening::Opening;
use crate::resolved::{Resolved, next_numbers};
use crate::sought::Keys;
use crate::source_resolver::SourceResolver;
use crate::tree_path::{self, Node};
use crate::url::is_url;
use crate::virtual_array::{self, SourceFiles, VirtualFile};

/// An open file or folder, or several archives shown as one. Threads share it.
pub struct Archive {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) tree: Tree,
    pub(crate) kind: ArchiveKind,
    pub(crate) stores: Stores,
    pub(crate) cache: Arc<ChunkCache>,
    /// The number in the chunk cache of the first array. No other array of this process has it, so archives may share a
    /// cache.
    pub(crate) first_number: u64,
    /// The files it may name.
    pub(crate) resolver: SourceResolver,
    /// Asked whether a read may go on.
    pub(crate) interrupts: Arc<dyn InterruptCheck>,
    /// Attributes that the format's own libraries hide.
    pub(crate) hidden: &'static [&'static str],
    /// Looks up chunks when an array needs them.
    pub(crate) indexes: Option<LazyIndexes>,
    /// What opening it took, if it is far, or was opened as if it were.
    pub(crate) opening: Option<Opening>,
    /// Resolved virtual arrays, by array number, once they have been used.
    resolved: Mutex<HashMap<usize, Arc<Resolved>>>,
    sources: SourceFiles,
}

/// Where a parser finds more bytes of an archive that is already open.
pub(crate) enum ArchiveKind {
    Folder,
    Local(Arc<FileStore>),
    /// A local file that is not kept open.
    Closed(FileVersion),
    Remote(Arc<RemoteStore>),
    /// A file that the caller passed, and what tells it from others of the same name.
    Given {
        store: Arc<dyn Store>,
        version: String,
    },
    References(Box<OpenReferences>),
    /// A remote Zarr hierarchy. It is known only by its keys.
    Keys(Box<FarArrays>),
    Tables(Box<LazyTables>),
    Collection(Box<OpenCollection>),
}

/// How to look for the chunks of a remote Zarr hierarchy.
pub(crate) struct FarArrays {
    /// By array number.
    pub(crate) documents: Vec<ArrayDocument>,
    pub(crate) keys: Keys,
    pub(crate) digest: u64,
}

/// Several files shown as one.
pub(crate) struct OpenCollection {
    /// Tells this version of the files from others.
    pub(crate) version: String,
    /// By array number: the file that the array's elements point into.
    pub(crate) heaps: HashMap<usize, Heap>,
    /// What is known of remote files.
    pub(crate) identities: HashMap<PathBuf, Identity>,
}

/// A file of a collection that elements point into.
pub(crate) struct Heap {
    pub(crate) file: Arc<Archive>,
    /// Its number in the collection.
    pub(crate) number: FileIndex,
}

impl Archive {
    pub(crate) fn new(
        name: String,
        path: &Path,
        format: Format,
        tree: Tree,
        kind: ArchiveKind,
        stores: Stores,
        cache: Arc<ChunkCache>,
    ) -> Self {
        let is_netcdf4 = format == Format::Hdf5 && parsers::hdf5::is_netcdf4(&tree);
        let hidden = if is_netcdf4 { parsers::hdf5::HIDDEN } else { &[] };
        let first_number = next_numbers(tree.arrays.len());
        Self {
            name,
            path: path.to_owned(),
            format,
            tree,
            kind,
            stores,
            cache,
            first_number,
            resolver: SourceResolver::default(),
            interrupts: Arc::new(NeverInterrupted),
            hidden,
            indexes: None,
            opening: None,
            resolved: Mutex::default(),
            sources: SourceFiles::default(),
        }
    }

    /// The same, but limited to the files that `resolver` allows.
    pub(crate) fn resolving(self, resolver: SourceResolver) -> Self {
        Self { resolver, ..self }
    }

    /// The same, with what opening it took.
    pub(crate) fn opened_by(self, opening: Opening) -> Self {
        Self { opening: Some(opening), ..self }
    }

    /// The same, but the caller can interrupt its reads.
    #[must_use]
    pub fn interrupted_by(self, interrupts: Arc<dyn InterruptCheck>) -> Self {
        Self { interrupts, ..self }
    }

    /// The name shown to people: a path, or a URL without its secrets.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The archive's path or URL.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What kind of file it is.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What opening it took, if it is far, or was opened as if it were; not for a Zarr hierarchy.
    pub fn opening(&self) -> Option<&Opening> {
        self.opening.as_ref()
    }

    /// The groups and arrays that the metadata describe. A virtual array has no segments here, and neither has an array
    /// whose chunks are looked up later. `ArchiveArray` has them.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Keeps those of the attributes that the format's own libraries show.
    pub fn shown<'a>(&self, attributes: &'a [Attribute]) -> impl Iterator<Item = &'a Attribute> {
        attributes.iter().filter(|attribute| !self.hidden.contains(&attribute.name.as_str()))
    }

    /// The path of every array, by array number; `None` if no path of names leads to it.
    pub fn array_paths(&self) -> Vec<Option<String>> {
        tree_path::array_paths(&self.tree)
    }

    /// The number of the array at a path from the root. Follows soft links. `None` if there is no such array.
    pub fn find_array(&self, path: &str) -> Result<Option<usize>, Unreadable> {
        let found = tree_path::find(&self.tree, 0, path, 0)?;
        Ok(found.and_then(|node| match node {
            Node::Array(number) => Some(number),
            Node::Group(_) => None,
        }))
    }

    /// The version of the file that was opened: its `ETag`, or its size and modification time; `None` for a folder.
    pub fn version(&self) -> Option<String> {
        match &self.kind {
            ArchiveKind::Folder | ArchiveKind::Tables(_) => None,
            ArchiveKind::References(references) => references.version(),
            ArchiveKind::Local(store) => Some(store.version().to_string()),
            ArchiveKind::Keys(far) => Some(format!("metadata {:016x}", far.digest)),
            ArchiveKind::Closed(version) => Some(version.to_string()),
            ArchiveKind::Remote(store) => store.version(),
            ArchiveKind::Given { version, .. } => Some(version.clone()),
            ArchiveKind::Collection(collection) => Some(collection.version.clone()),
        }
    }

    /// How many bytes the file lacks of the size that it records, because it was cut off or never closed.
    pub fn lost_nbytes(&self) -> u64 {
        let held = match &self.kind {
            ArchiveKind::Folder
            | ArchiveKind::References(_)
            | ArchiveKind::Keys(_)
            | ArchiveKind::Tables(_)
            | ArchiveKind::Collection(_) => return 0,
            ArchiveKind::Local(store) => store.nbytes(),
            ArchiveKind::Closed(version) => version.nbytes(),
            ArchiveKind::Remote(store) => store.nbytes(),
            ArchiveKind::Given { store, .. } => store.nbytes(),
        };
        self.tree.declared_nbytes.map_or(0, |declared| declared.saturating_sub(held))
    }

    /// URLs of the other remote files that hold chunks of this archive.
    pub fn urls(&self) -> Vec<&str> {
        let paths = self.stores.others().iter().filter_map(|file| file.path.to_str());
        paths.filter(|path| is_url(path)).collect()
    }

    /// Fails if a file that these references point to has changed since they were made. Other archives never fail.
    pub fn check_sources(&self) -> Result<(), ReadError> {
        let ArchiveKind::References(_) = self.kind else { return Ok(()) };
        (1..self.stores.next_number()).try_for_each(|number| {
            let number = FileIndex::try_from(number).unwrap_or(FileIndex::MAX);
            let store = self.stores.get(number)?;
            match store.far() {
                Some(far) if store.nbytes() > 0 => {
                    far.read_ranges(&[ByteRange { offset: 0, length: 1 }], &|| false).map(drop)
                }
                _ => Ok(()), // checked when it was opened
            }
        })
    }

    /// The opened file as a file that holds chunks. Folders, references and collections have none.
    pub(crate) fn own_file(&self) -> Option<OtherFile> {
        let version = match &self.kind {
            _ if matches!(self.format, Format::References | Format::Dmrpp) => return None,
            ArchiveKind::Local(store) => Some(store.version()),
            ArchiveKind::Closed(version) => Some(*version),
            ArchiveKind::Remote(_) | ArchiveKind::Given { .. } => None,
            ArchiveKind::Folder
            | ArchiveKind::References(_)
            | ArchiveKind::Keys(_)
            | ArchiveKind::Tables(_)
            | ArchiveKind::Collection(_) => return None,
        };
        Some(OtherFile { path: self.path.clone(), version, is_padded: false })
    }

    /// What opens it, if a path is not enough.
    pub(crate) fn own_opener(&self) -> Option<Opener> {
        let store = match &self.kind {
            ArchiveKind::Remote(store) => Arc::clone(store) as Arc<dyn Store>,
            ArchiveKind::Given { store, .. } => Arc::clone(store),
            _ => return None,
        };
        Some(Arc::new(move |_| Ok(Arc::clone(&store))))
    }

    /// Whether the array's chunks are missing from the tree and are looked up when the array is first used.
    pub(crate) fn is_lazy(&self, number: usize) -> bool {
        matches!(self.kind, ArchiveKind::References(_) | ArchiveKind::Tables(_))
            || self.indexes.as_ref().is_some_and(|indexes| indexes.has(number))
    }

    /// A virtual or lazy array, if it has been resolved already.
    pub(crate) fn known(&self, number: usize) -> Option<Arc<Resolved>> {
        self.resolved.try_lock().ok().and_then(|known| known.get(&number).cloned())
    }

    /// What looks up the chunks of an array on demand; `None` once all have been looked up.
    pub(crate) fn indexes_of(&self, number: usize) -> Option<&LazyIndexes> {
        self.indexes.as_ref().filter(|_| self.known(number).is_none())
    }

    /// A virtual array, or an array of references or of a collection, with its segments. Threads that call this at the
    /// same time may each resolve the array: waiting for a lock could hang a forked process whose parent held it.
    pub(crate) fn resolved(&self, number: usize) -> Result<Arc<Resolved>, Problem> {
        if let Some(known) = self.known(number) {
            return Ok(known);
        }
        let found = Arc::new(match &self.kind {
            ArchiveKind::References(references) => {
                let array = references.array(number, &self.name, &*self.interrupts)?;
                Resolved::new(array, self.stores.with(Vec::new()))
            }
            ArchiveKind::Tables(tables) => tables.array(number)?,
            ArchiveKind::Collection(_) => {
                Resolved::new(self.tree.arrays[number].clone(), self.stores.with(Vec::new()))
            }
            _ => virtual_array::resolved(self.virtual_file(), number)?,
        });
        Ok(match self.resolved.try_lock() {
            Ok(mut known) => Arc::clone(known.entry(number).or_insert(found)),
            Err(_) => found,
        })
    }

    fn virtual_file(&self) -> VirtualFile<'_> {
        VirtualFile {
            path: &self.path,
            tree: &self.tree,
            stores: &self.stores,
            resolver: &self.resolver,
            indexes: self.indexes.as_ref(),
            sources: &self.sources,
            is_far: matches!(self.kind, ArchiveKind::Remote(_)),
        }
    }
}
