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
use crate::referenced::{Reach, Referenced, folder_of, is_url, shown};
use crate::references::OpenReferences;
use crate::remote::RemoteFile;
use crate::sought::Keys;
use crate::sources::{Interrupts, RemoteKeys, RemoteSource};

impl Opened {
    pub(crate) fn open_remote(
        file: &RemoteFile,
        chunk_cache_nbytes: usize,
        reach: Reach,
        patterns: &[String],
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
            Ok((format, format.parse(&source, Policy::REMOTE, path, patterns, reach.allowed())?, None))
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
                let stores =
                    Referenced::of_names(name.clone(), &folder, &tree.other_files).stores(reach.clone());
                let bytes = Bytes::Remote(store);
                return Ok(Self::new(name, path, format, tree, bytes, stores, cache).reaching(reach));
            }
            (format, tree, None) => (format, tree),
        };
        let opened = Arc::clone(&store) as Arc<dyn Store>;
        let (url, options) = (file.url.clone(), file.options.clone());
        let beside = reach.clone();
        let open =
            Arc::new(move |other: &Path| open_beside(&url, &other.to_string_lossy(), &options, &beside));
        let others = tree.other_files.iter().map(PathBuf::from).collect();
        let stores = Stores::with_opener(Some(opened), name.clone(), others, open);
        let stores = if format == Format::Hdf5 { stores.with_padded_others() } else { stores };
        Ok(Self::new(name, path, format, tree, Bytes::Remote(store), stores, cache).reaching(reach))
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

/// A file that a remote one names: a URL, one beside it, or, where that is allowed by name, one of this machine.
fn open_beside(
    url: &str,
    other: &str,
    options: &RemoteOptions,
    reach: &Reach,
) -> Result<Arc<dyn Store>, ReadError> {
    let target = beside(url, other);
    if !is_url(&target) {
        return Ok(Arc::new(reach.open_file(Path::new(&target))?));
    }
    let (location, own) = reach.location(&target)?;
    let (location, options) = if is_url(other) {
        (location, own)
    } else {
        let failed = |problem: String| ReadError::System { file: shown(&target), problem };
        (Location::of_url(&target, options).map_err(failed)?, options.clone())
    };
    let (store, _) = RemoteStore::open(location, options, 1, &|| false)?;
    Ok(Arc::new(store))
}

/// What a file far away means by a name: a URL, or a path of this machine.
pub(crate) fn beside(url: &str, other: &str) -> String {
    if is_url(other) || Path::new(other).is_absolute() {
        return other.to_owned();
    }
    let base = url.split(['?', '#']).next().unwrap_or_default();
    let folder = base.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
    format!("{folder}/{other}")
}
