//! Zarr chunks that no index lists. They are looked for when they are read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{Array, ByteRange, FileIndex};
use hyperslab_engine::{
    FarStore, FileStore, ObjectEnd, OtherFile, ReadError, RemoteFolder, RemoteStore, Stop, Store, Stores,
};
use hyperslab_parsers::FetchError;
use hyperslab_parsers::zarr::{ArrayDocument, Parts};

/// Where the keys of a hierarchy lead.
pub enum Keys {
    /// To files below a local folder.
    Local(PathBuf),
    /// To remote objects.
    Far(Arc<RemoteFolder>),
}

/// An array with the chunks that one read touches.
pub(crate) struct Sought {
    pub(crate) array: Array,
    pub(crate) stores: Stores,
    /// Tells the array apart in the chunk cache.
    pub(crate) number: u64,
}

impl Sought {
    /// Looks for the chunks, or shards, with these linear indices, in an array of this shape.
    pub(crate) fn new(
        document: &ArrayDocument,
        keys: &Keys,
        shape: &[u64],
        touched: &[u64],
        number: u64,
        stop: Stop<'_>,
    ) -> Result<Self, ReadError> {
        let refused = |reason: hyperslab_core::Unreadable| ReadError::System {
            file: keys.name(),
            problem: reason.to_string(),
        };
        let names = document.keys(shape, touched).map_err(refused)?;
        let (array, stores) = match (document.shard_index().map_err(refused)?, keys) {
            (None, keys) => {
                let are_far = matches!(keys, Keys::Far(_));
                (document.with_chunks(shape, touched, are_far), keys.stores(names))
            }
            (Some(_), Keys::Local(folder)) => {
                let files = LocalShards::find(folder, touched, &names)?;
                (document.with_shards(shape, &files.found, &files), files.stores)
            }
            (Some((is_first, nbytes)), Keys::Far(folder)) => {
                let end = if is_first { ObjectEnd::First } else { ObjectEnd::Last };
                let nbytes = usize::try_from(nbytes).unwrap_or(usize::MAX).min(MOST_INDEX_NBYTES);
                let shards = FarShards::open(folder, touched, &names, end, nbytes, stop)?;
                let array = document.with_shards(shape, &shards.found, &shards);
                (array, shards.into_stores(folder))
            }
        };
        Ok(Self { array, stores, number })
    }
}

/// No sensible shard has a longer index.
const MOST_INDEX_NBYTES: usize = 256 << 20;

impl Keys {
    /// The hierarchy's name for people.
    pub fn name(&self) -> String {
        match self {
            Self::Local(folder) => folder.display().to_string(),
            Self::Far(folder) => folder.name().to_owned(),
        }
    }

    fn stores(&self, names: Vec<String>) -> Stores {
        match self {
            Self::Local(folder) => Stores::new(None, folder, names),
            Self::Far(folder) => {
                let paths = names.into_iter().map(PathBuf::from).collect();
                let none = |path: &Path| Err(ReadError::NoSuchObject { url: path.display().to_string() });
                Stores::with_opener(None, self.name(), paths, Arc::new(none)).below(Arc::clone(folder))
            }
        }
    }
}

/// The shards that exist, and their versions: index and subchunks must come from the same version.
struct LocalShards {
    found: Vec<(u64, FileIndex, u64)>,
    stores: Stores,
}

impl LocalShards {
    fn find(folder: &Path, touched: &[u64], names: &[String]) -> Result<Self, ReadError> {
        let (mut found, mut files) = (Vec::new(), Vec::new());
        for (&index, name) in touched.iter().zip(names) {
            let path = folder.join(name);
            let Some(store) = FileStore::find(&path)? else { continue };
            files.push(OtherFile { path, version: Some(store.version()), is_padded: false });
            found.push((index, number(files.len()), store.nbytes()));
        }
        Ok(Self { found, stores: Stores::new(None, folder, Vec::new()).with(files) })
    }
}

impl Parts for LocalShards {
    fn read(&self, asked: &[(FileIndex, ByteRange)]) -> Vec<Result<Vec<u8>, FetchError>> {
        let read = |(file, range): &(FileIndex, ByteRange)| {
            let mut bytes = vec![0; usize::try_from(range.length).unwrap_or(usize::MAX)];
            let store = self.stores.get(*file);
            let read = store.and_then(|store| store.read_into(range.offset, &mut bytes));
            read.map(|()| bytes).map_err(|error| FetchError(error.to_string()))
        };
        asked.iter().map(read).collect()
    }
}

/// The shards that exist, each with the end that holds its index.
struct FarShards<'s> {
    found: Vec<(u64, FileIndex, u64)>,
    opened: Vec<(String, Arc<RemoteStore>, Vec<u8>)>,
    end: ObjectEnd,
    stop: Stop<'s>,
}

impl<'s> FarShards<'s> {
    fn open(
        folder: &RemoteFolder,
        touched: &[u64],
        names: &[String],
        end: ObjectEnd,
        nbytes: usize,
        stop: Stop<'s>,
    ) -> Result<Self, ReadError> {
        let mut shards = Self { found: Vec::new(), opened: Vec::new(), end, stop };
        let opened = folder.open_each(names, end, nbytes, stop)?;
        for ((&index, name), opened) in touched.iter().zip(names).zip(opened) {
            let Some((store, bytes)) = opened else { continue };
            let length = store.nbytes();
            shards.opened.push((name.clone(), Arc::new(store), bytes));
            shards.found.push((index, number(shards.opened.len()), length));
        }
        Ok(shards)
    }

    fn into_stores(self, folder: &Arc<RemoteFolder>) -> Stores {
        let names = self.opened.iter().map(|(name, ..)| PathBuf::from(name)).collect();
        let opened: HashMap<PathBuf, Arc<dyn Store>> = self
            .opened
            .into_iter()
            .map(|(name, store, _)| (PathBuf::from(name), store as Arc<dyn Store>))
            .collect();
        let open = move |path: &Path| {
            let none = || ReadError::NoSuchObject { url: path.display().to_string() };
            opened.get(path).map(Arc::clone).ok_or_else(none)
        };
        Stores::with_opener(None, folder.name().to_owned(), names, Arc::new(open)).below(Arc::clone(folder))
    }
}

impl Parts for FarShards<'_> {
    fn read(&self, asked: &[(FileIndex, ByteRange)]) -> Vec<Result<Vec<u8>, FetchError>> {
        let read = |(file, range): &(FileIndex, ByteRange)| {
            let position = usize::try_from(*file).ok().and_then(|number| number.checked_sub(1));
            let Some((_, store, held)) = position.and_then(|position| self.opened.get(position)) else {
                return Err(FetchError(format!("shard number {file} was not opened")));
            };
            let first = if self.end == ObjectEnd::First { 0 } else { store.nbytes() - held.len() as u64 };
            let start = range.offset.checked_sub(first).and_then(|start| usize::try_from(start).ok());
            let stop = start.zip(usize::try_from(range.length).ok());
            let part = stop.and_then(|(start, length)| held.get(start..start.checked_add(length)?));
            if let Some(part) = part {
                return Ok(part.to_vec());
            }
            let read = store.read_ranges(&[*range], self.stop);
            read.map(Vec::into_iter)
                .map(|mut read| read.next().unwrap_or_default())
                .map_err(|error| FetchError(error.to_string()))
        };
        asked.iter().map(read).collect()
    }
}

fn number(count: usize) -> FileIndex {
    FileIndex::try_from(count).unwrap_or(FileIndex::MAX)
}
