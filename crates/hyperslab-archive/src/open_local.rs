//! Opens local files and folders.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{FileIdentity, Tree};
use hyperslab_engine::{ChunkCache, FileStore, OtherFile, ReadError, Store, Stores};
use hyperslab_parsers as parsers;
use hyperslab_parsers::zarr::Table;

use crate::archive::{Archive, ArchiveKind};
use crate::error::Error;
use crate::format::{Format, Parsed};
use crate::hdf5_search;
use crate::interrupt::{InterruptCheck, NeverInterrupted};
use crate::lazy_indexes::{BetweenCommits, LazyIndexes};
use crate::lazy_tables::{LazyTables, TableReader};
use crate::open_references::OpenReferences;
use crate::referenced::Referenced;
use crate::source_resolver::SourceResolver;
use crate::sources::LocalSource;
use crate::url::folder_of;

/// The default size of an archive's cache of decoded chunks, in bytes.
#[allow(clippy::cast_possible_truncation)] // 32 MiB
pub const CHUNK_CACHE_NBYTES: usize = hyperslab_core::CHUNK_CACHE_NBYTES as usize;

/// How an archive is opened.
#[derive(Clone)]
pub struct OpenOptions {
    /// The size of the chunk cache in bytes. It keeps decoded chunks that were read only in part.
    pub chunk_cache_nbytes: usize,
    /// A chunk cache that several archives share; by default, an archive has one of its own.
    pub cache: Option<Arc<ChunkCache>>,
    /// Finds the files that the archive names, and decides which may be opened.
    pub resolver: SourceResolver,
    /// Parse only the objects of an HDF5 file that match these patterns; all of them if there are none.
    pub patterns: Vec<String>,
    /// If given, the chunks of an HDF5 file are looked up when arrays are first read, while no commit overwrites the
    /// file.
    pub between_commits: Option<Arc<dyn BetweenCommits>>,
    /// Whether to note which structures of a far file are read, and where they are.
    pub notes_metadata: bool,
    /// Lets the caller interrupt long work.
    pub interrupts: Arc<dyn InterruptCheck>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            chunk_cache_nbytes: CHUNK_CACHE_NBYTES,
            cache: None,
            resolver: SourceResolver::default(),
            patterns: Vec::new(),
            between_commits: None,
            notes_metadata: false,
            interrupts: Arc::new(NeverInterrupted),
        }
    }
}

impl OpenOptions {
    pub(crate) fn cache(&self) -> Arc<ChunkCache> {
        self.cache.clone().unwrap_or_else(|| Arc::new(ChunkCache::new(self.chunk_cache_nbytes)))
    }
}

impl Archive {
    /// Opens a local file or folder.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, Error> {
        if path.is_dir() {
            return Self::open_folder(path, options);
        }
        Self::of_file(path, FileStore::open(path)?, options)
    }

    /// Opens a local file that the caller knows already. Fails with `FileChanged` in `Error::Read` if the path leads to
    /// another file now, or if the file has been written to.
    pub fn open_known(path: &Path, identity: FileIdentity, options: &OpenOptions) -> Result<Self, Error> {
        let store = FileStore::open(path)?;
        if !Self::identity_of(&store).is_some_and(|found| found.keeps(&identity)) {
            return Err(ReadError::FileChanged { file: store.name().to_owned() }.into());
        }
        Self::of_file(path, store, options)
    }

    /// A local file or folder that is not kept open. Its contents are known and can be combined with others.
    pub fn open_closed(path: &Path, options: &OpenOptions) -> Result<Self, Error> {
        let mut archive = Self::open(path, options)?;
        let ArchiveKind::Local(store) = &archive.kind else { return Ok(archive) };
        let version = store.version();
        let own = OtherFile { path: archive.path.clone(), version: Some(version), is_padded: false };
        (archive.stores, archive.kind) = (archive.stores.closed(own), ArchiveKind::Closed(version));
        Ok(archive)
    }

    /// The identity of the opened file; `None` unless it is a local file that is kept open.
    pub fn identity(&self) -> Option<FileIdentity> {
        let ArchiveKind::Local(store) = &self.kind else { return None };
        Self::identity_of(store)
    }

    fn identity_of(store: &FileStore) -> Option<FileIdentity> {
        FileIdentity::of_metadata(&store.file().metadata().ok()?)
    }

    /// An archive of Zarr metadata documents, by key, and tables of chunks, by array path. The tables refer to `files`
    /// by number; file names are relative to `folder`.
    pub fn of_references(
        documents: HashMap<String, Vec<u8>>,
        tables: HashMap<String, Table>,
        files: &[String],
        folder: &Path,
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        let allowed = options.resolver.allowed();
        let tree = parsers::zarr::parse_tables(documents, tables, files, folder, allowed);
        let tree = tree.map_err(|problem| Error::parse_of(folder, problem))?;
        let name = folder.display().to_string();
        let named = Referenced::of_names(name.clone(), folder, &tree.other_files);
        let stores = named.stores(options.resolver.clone());
        let (format, kind) = (Format::References, ArchiveKind::Folder);
        Ok(Self::new(name, folder, format, tree, kind, stores, options.cache()).with_options(options))
    }

    /// The same, but `tables` gives the chunks of an array when the array is first used.
    pub fn of_tables(
        documents: HashMap<String, Vec<u8>>,
        tables: Box<dyn TableReader>,
        folder: &Path,
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        let name = folder.display().to_string();
        let stores = Stores::new(None, folder, Vec::new());
        let found = LazyTables::new(documents, tables, folder.to_owned(), options.resolver.clone());
        let (tables, tree) = found.map_err(|problem| Error::parse_of(folder, problem))?;
        let (format, kind) = (Format::References, ArchiveKind::Tables(Box::new(tables)));
        Ok(Self::new(name, folder, format, tree, kind, stores, options.cache()).with_options(options))
    }

    /// A Zarr hierarchy. Its files are in a folder or elsewhere; none has the number 0.
    fn open_folder(path: &Path, options: &OpenOptions) -> Result<Self, Error> {
        let tree = parsers::zarr::parse_directory(path, options.resolver.allowed());
        let tree = tree.map_err(|problem| Error::parse_of(path, problem))?;
        let name = path.display().to_string();
        let versions = tree.listed.iter().map(|&listed| Some(listed.into())).chain(std::iter::repeat(None));
        let other =
            |(file, version): (&String, _)| OtherFile { path: path.join(file), version, is_padded: false };
        let others = tree.other_files.iter().zip(versions).map(other).collect();
        let stores = Stores::of_files(name.clone(), others, options.resolver.opener(), None);
        let kind = ArchiveKind::Folder;
        Ok(Self::new(name, path, Format::Zarr, tree, kind, stores, options.cache()).with_options(options))
    }

    fn of_file(path: &Path, store: FileStore, options: &OpenOptions) -> Result<Self, Error> {
        let OpenOptions { resolver, patterns, between_commits, .. } = options;
        let (name, opened) = (path.display().to_string(), Arc::new(store));
        let format = Format::of(&LocalSource(&*opened));
        if format.map_err(|problem| Error::parse_of(path, problem))? == Format::OwnReferences {
            return Ok(Self::of_own_references(OpenReferences::open(path, &opened)?, path, options));
        }
        let Parsed { store, format, tree, indexes } =
            Parsed::of(path, opened, patterns, between_commits.is_some(), resolver.allowed())?;
        let stores = Self::stores_of(path, Arc::clone(&store) as Arc<dyn Store>, format, &tree, resolver);
        let indexes = between_commits.as_ref().map(|between_commits| {
            LazyIndexes::new(indexes, Arc::clone(&store), Arc::clone(between_commits))
        });
        let kind = ArchiveKind::Local(store);
        let mut archive = Self::new(name, path, format, tree, kind, stores, options.cache());
        archive.indexes = indexes;
        Ok(archive.with_options(options))
    }

    /// The opened file, and the files that it names.
    pub(crate) fn stores_of(
        path: &Path,
        opened: Arc<dyn Store>,
        format: Format,
        tree: &Tree,
        resolver: &SourceResolver,
    ) -> Stores {
        let folder = folder_of(path);
        match format {
            Format::References | Format::Dmrpp => {
                let name = path.display().to_string();
                Referenced::of_names(name, &folder, &tree.other_files).stores(resolver.clone())
            }
            Format::Hdf5 => hdf5_search::stores(path, opened, tree, resolver),
            _ => Stores::new(Some(opened), &folder, tree.other_files.clone()).opened_by(resolver.opener()),
        }
    }

    pub(crate) fn of_own_references(mut open: OpenReferences, path: &Path, options: &OpenOptions) -> Self {
        let (name, tree) = (path.display().to_string(), std::mem::take(&mut open.found.tree));
        let stores = open.referenced(name.clone(), &folder_of(path)).stores(options.resolver.clone());
        let kind = ArchiveKind::References(Box::new(open));
        let format = Format::OwnReferences;
        Self::new(name, path, format, tree, kind, stores, options.cache()).with_options(options)
    }

    pub(crate) fn with_options(self, options: &OpenOptions) -> Self {
        self.resolving(options.resolver.clone()).interrupted_by(Arc::clone(&options.interrupts))
    }
}
