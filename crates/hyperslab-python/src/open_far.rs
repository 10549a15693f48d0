//! Files and Zarr hierarchies far away, opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::Tree;
use hyperslab_engine::{
    ChunkCache, Location, ReadError, RemoteFolder, RemoteOptions, RemoteStore, Store, Stores,
};
use hyperslab_parsers::references::References;
use hyperslab_parsers::{self as parsers, Policy};

use crate::archive_file::{Bytes, FarArrays, Opened};
use crate::failure::Failure;
use crate::format::Format;
use crate::referenced::{Reach, Referenced, folder_of};
use crate::references::OpenReferences;
use crate::remote::RemoteFile;
use crate::sought::Keys;
use crate::sources::{Interrupts, RemoteKeys, RemoteSource};

impl Opened {
    pub(crate) fn open_remote(
        file: &RemoteFile,
        chunk_cache_nbytes: usize,
        reach: Reach,
        interrupts: &Interrupts,
    ) -> Result<Self, Failure> {
        let (location, options) = (file.location.clone(), file.options.clone());
        let head_nbytes = usize::try_from(Policy::REMOTE.first_nbytes).unwrap_or(usize::MAX);
        let stop = || interrupts.are_pending();
        let (store, head) = RemoteStore::open(location, options, head_nbytes, &stop)?;
        let (name, cache) = (file.location.name.clone(), ChunkCache::new(chunk_cache_nbytes));
        let (path, folder) = (Path::new(&file.location.name), folder_of(Path::new(&name)));
        let source = RemoteSource::new(&store, &head, interrupts);
        let parsed = Format::of(&source).and_then(|format| {
            if format == Format::OwnReferences {
                return Ok((format, Tree::default(), Some(References::read(&source)?)));
            }
            Ok((format, format.parse(&source, Policy::REMOTE, path, &[])?, None))
        });
        let failure = source.failure();
        let parsed = parsed.map_err(|error| failure.map_or(Failure::Parse(error), Failure::Read))?;
        let store = Arc::new(store);
        let (format, tree) = match parsed {
            (_, _, Some(found)) => {
                let open = OpenReferences::far(Arc::clone(&store), found);
                return Ok(Self::of_own_references(open, path, reach, cache));
            }
            (format @ (Format::References | Format::Dmrpp), tree, None) => {
                let stores = Referenced::of_names(name.clone(), folder, &tree.other_files).stores(reach);
                let bytes = Bytes::Remote(store);
                return Ok(Self::new(name, path, format, tree, bytes, stores, cache));
            }
            (format, tree, None) => (format, tree),
        };
        let opened = Arc::clone(&store) as Arc<dyn Store>;
        let (url, options) = (file.url.clone(), file.options.clone());
        let open = Arc::new(move |other: &Path| open_beside(&url, &other.to_string_lossy(), &options));
        let others = tree.other_files.iter().map(PathBuf::from).collect();
        let stores = Stores::with_opener(Some(opened), name.clone(), others, open);
        Ok(Self::new(name, path, format, tree, Bytes::Remote(store), stores, cache))
    }

    pub(crate) fn open_remote_zarr(
        file: &RemoteFile,
        chunk_cache_nbytes: usize,
        interrupts: &Interrupts,
    ) -> Result<Self, Failure> {
        let folder = Arc::new(RemoteFolder::new(file.location.clone(), file.options.clone()));
        let keys = RemoteKeys::new(&folder, interrupts);
        let parsed = parsers::zarr::parse_far(&keys);
        let failure = keys.failure();
        let found = parsed.map_err(|error| match (failure, error) {
            (Some(failure), _) => Failure::Read(failure),
            (None, parsers::Error::UnknownFormat { reason }) => {
                Failure::Read(ReadError::NoSuchObject { url: format!("{} ({reason})", folder.name()) })
            }
            (None, error) => Failure::Parse(error),
        })?;
        let (path, cache) = (PathBuf::from(folder.name()), ChunkCache::new(chunk_cache_nbytes));
        let stores = Stores::new(None, &path, Vec::new());
        let far = FarArrays { documents: found.documents, keys: Keys::Far(folder), digest: found.digest };
        let (name, bytes) = (path.display().to_string(), Bytes::Keys(Box::new(far)));
        Ok(Self::new(name, &path, Format::Zarr, found.tree, bytes, stores, cache))
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
