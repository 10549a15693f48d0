//! Opens remote files and remote Zarr hierarchies.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::Tree;
use hyperslab_engine::{
    AsFarStore, FileStore, Location, ReadError, RemoteFolder, RemoteOptions, RemoteStore, Store, Stores,
};
use hyperslab_parsers::references::References;
use hyperslab_parsers::{self as parsers, Noted, Pages, Policy, Source};

use crate::archive::{Archive, ArchiveKind, FarArrays};
use crate::embedded::{Embedded, Indexed};
use crate::error::Error;
use crate::format::Format;
use crate::interrupt::Interruptible;
use crate::open_local::OpenOptions;
use crate::open_references::OpenReferences;
use crate::opening::Opening;
use crate::referenced::Referenced;
use crate::sought::Keys;
use crate::source_resolver::SourceResolver;
use crate::sources::{RemoteKeys, RemoteSource};
use crate::url::{beside, folder_of, is_url, shown};

/// Where a remote file is and how to reach it, including secrets.
#[derive(Clone)]
pub struct RemoteFile {
    /// The URL as it was given.
    pub url: String,
    /// The location that it leads to.
    pub location: Location,
    /// The options for requests.
    pub options: RemoteOptions,
}

impl Archive {
    /// Opens a remote file.
    pub fn open_remote(file: &RemoteFile, options: &OpenOptions) -> Result<Self, Error> {
        let work = Interruptible::new(&*options.interrupts);
        Self::of_remote(file, options, &work).map_err(|error| work.failure(error))
    }

    fn of_remote(file: &RemoteFile, options: &OpenOptions, work: &Interruptible<'_>) -> Result<Self, Error> {
        let head_nbytes = usize::try_from(Policy::REMOTE.first_nbytes).unwrap_or(usize::MAX);
        let (location, remote_options) = (file.location.clone(), file.options.clone());
        let (store, head) = RemoteStore::open(location, remote_options, head_nbytes, &|| work.is_over())?;
        let (name, path) = (file.location.name.clone(), Path::new(&file.location.name));
        let (resolver, folder) = (&options.resolver, folder_of(path));
        let source = RemoteSource::new(&store, &head, work);
        let parsed = ParsedFar::of(&source, path, options);
        let failure = source.failure();
        let fault = |problem| failure.map_or_else(|| Error::parse_of(path, problem), Error::Read);
        let ParsedFar { format, tree, references, opening } = parsed.map_err(fault)?;
        let store = Arc::new(store);
        if let Some(found) = references {
            let open = OpenReferences::far(Arc::clone(&store), found);
            return Ok(Self::of_own_references(open, path, options).opened_by(opening));
        }
        let stores = if matches!(format, Format::References | Format::Dmrpp) {
            Referenced::of_names(name.clone(), &folder, &tree.other_files).stores(resolver.clone())
        } else {
            stores_beside(file, Arc::clone(&store), format, &tree, resolver)
        };
        let kind = ArchiveKind::Remote(store);
        let archive = Self::new(name, path, format, tree, kind, stores, options.cache());
        Ok(archive.with_options(options).opened_by(opening))
    }

    /// Opens a local file with the requests that would open it from afar. `opening` has their counts.
    pub fn open_as_far(path: &Path, options: &OpenOptions) -> Result<Self, Error> {
        let work = Interruptible::new(&*options.interrupts);
        Self::of_local(path, options, &work).map_err(|error| work.failure(error))
    }

    fn of_local(path: &Path, options: &OpenOptions, work: &Interruptible<'_>) -> Result<Self, Error> {
        let file = FileStore::open(path)?;
        let version = file.version().to_string();
        let store = Arc::new(AsFarStore::new(file));
        let head = store.head(Policy::REMOTE.first_nbytes)?;
        let source = RemoteSource::new(&*store, &head, work);
        let parsed = ParsedFar::of(&source, path, options);
        store.check_unchanged()?; // a file that changed explains any other failure
        let failure = source.failure();
        let fault = |problem| failure.map_or_else(|| Error::parse_of(path, problem), Error::Read);
        let ParsedFar { format, tree, references, opening } = parsed.map_err(fault)?;
        if references.is_some() {
            let problem =
                parsers::Error::Unsupported { feature: "a local file of references as a far one".to_owned() };
            return Err(Error::parse_of(path, problem));
        }
        let stores =
            Self::stores_of(path, Arc::clone(&store) as Arc<dyn Store>, format, &tree, &options.resolver);
        let (name, kind) = (path.display().to_string(), ArchiveKind::Given { store, version });
        let archive = Self::new(name, path, format, tree, kind, stores, options.cache());
        Ok(archive.with_options(options).opened_by(opening))
    }

    /// Opens a remote Zarr hierarchy.
    pub fn open_remote_zarr(file: &RemoteFile, options: &OpenOptions) -> Result<Self, Error> {
        let work = Interruptible::new(&*options.interrupts);
        let folder = Arc::new(RemoteFolder::new(file.location.clone(), file.options.clone()));
        let keys = RemoteKeys::new(&folder, &work);
        let parsed = parsers::zarr::parse_far(&keys);
        let failure = keys.failure();
        let found = match (failure, parsed) {
            (_, Ok(found)) => found,
            (Some(failure), Err(_)) => return Err(work.failure(failure)),
            (None, Err(parsers::Error::UnknownFormat { reason })) => {
                let url = format!("{} ({reason})", folder.name());
                return Err(work.failure(ReadError::NoSuchObject { url }));
            }
            (None, Err(problem)) => return Err(work.failure(Error::parse(folder.name(), problem))),
        };
        let path = PathBuf::from(folder.name());
        let stores = Stores::new(None, &path, Vec::new());
        let far = FarArrays { documents: found.documents, keys: Keys::Far(folder), digest: found.digest };
        let (name, kind) = (path.display().to_string(), ArchiveKind::Keys(Box::new(far)));
        let archive = Self::new(name, &path, Format::Zarr, found.tree, kind, stores, options.cache());
        Ok(archive.interrupted_by(Arc::clone(&options.interrupts)))
    }
}

/// A far file, parsed.
struct ParsedFar {
    format: Format,
    tree: Tree,
    /// What a file of our own references holds, in place of a tree.
    references: Option<References>,
    opening: Opening,
}

impl ParsedFar {
    fn of(source: &RemoteSource<'_>, path: &Path, options: &OpenOptions) -> Result<Self, parsers::Error> {
        let format = Format::of(source)?;
        if format == Format::OwnReferences {
            let references = Some(References::read(source)?);
            let opening = Opening::new(source, Noted::default());
            return Ok(Self { format, tree: Tree::default(), references, opening });
        }
        let index = if format == Format::Hdf5 { Embedded::find(source)? } else { None };
        let indexed = index.as_ref().map(|index| Indexed { file: source, index });
        let (bytes, policy): (&dyn Source, Policy) = match &indexed {
            Some(indexed) => (indexed, Embedded::POLICY),
            None => (source, Policy::REMOTE),
        };
        let pages = Pages::new(bytes, policy);
        let pages = &mut if options.notes_metadata { pages.noting() } else { pages };
        let tree = format.parse_pages(pages, bytes, path, &options.patterns, options.resolver.allowed())?;
        let opening = Opening::new(source, pages.noted());
        Ok(Self { format, tree, references: None, opening })
    }
}

/// A remote file, and the files that it names.
fn stores_beside(
    file: &RemoteFile,
    store: Arc<RemoteStore>,
    format: Format,
    tree: &Tree,
    resolver: &SourceResolver,
) -> Stores {
    let (url, options, resolver) = (file.url.clone(), file.options.clone(), resolver.clone());
    let open = move |other: &Path| open_beside(&url, &other.to_string_lossy(), &options, &resolver);
    let others = tree.other_files.iter().map(PathBuf::from).collect();
    let stores = Stores::with_opener(Some(store), file.location.name.clone(), others, Arc::new(open));
    if format == Format::Hdf5 { stores.with_padded_others() } else { stores }
}

/// A file that a remote file names: a URL, a file beside it, or a local file if that is allowed by name.
fn open_beside(
    url: &str,
    other: &str,
    options: &RemoteOptions,
    resolver: &SourceResolver,
) -> Result<Arc<dyn Store>, ReadError> {
    let target = beside(url, other);
    if !is_url(&target) {
        return Ok(Arc::new(resolver.open_file(Path::new(&target))?));
    }
    let (location, own) = resolver.location(&target)?;
    let (location, options) = if is_url(other) {
        (location, own)
    } else {
        let failed = |problem: String| ReadError::System { file: shown(&target), problem };
        (Location::of_url(&target, options).map_err(failed)?, options.clone())
    };
    let (store, _) = RemoteStore::open(location, options, 1, &|| false)?;
    Ok(Arc::new(store))
}
