//! `OpenReferences`: our own file of references. Its arrays are read when they are first used.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use hyperslab_core::Array;
use hyperslab_engine::{FileStore, FileVersion, Identity, OtherFile, ReadError, RemoteStore, Store};
use hyperslab_parsers::references::{References, SourceFile};

use crate::error::Error;
use crate::interrupt::{InterruptCheck, Interruptible};
use crate::referenced::Referenced;
use crate::sources::{LocalSource, RemoteSource};
use crate::url::{is_url, location_in};

/// A file of references as it was when it was opened. A local one is not kept open, because thousands may be in use at
/// once.
pub(crate) struct OpenReferences {
    location: Location,
    pub(crate) found: References,
}

enum Location {
    Local(PathBuf, FileVersion),
    Far(Arc<RemoteStore>),
}

impl OpenReferences {
    pub(crate) fn open(path: &Path, store: &FileStore) -> Result<Self, Error> {
        let found = References::read(&LocalSource(store));
        store.check_unchanged()?;
        Ok(Self {
            location: Location::Local(path.to_owned(), store.version()),
            found: found.map_err(|problem| Error::parse_of(path, problem))?,
        })
    }

    /// For a remote file that has been read.
    pub(crate) fn far(store: Arc<RemoteStore>, found: References) -> Self {
        Self { location: Location::Far(store), found }
    }

    /// The version of the file that was opened.
    pub(crate) fn version(&self) -> Option<String> {
        match &self.location {
            Location::Local(_, version) => Some(version.to_string()),
            Location::Far(store) => store.version(),
        }
    }

    /// An array with its chunks. Errors call the file `name`.
    pub(crate) fn array(
        &self,
        number: usize,
        name: &str,
        interrupts: &dyn InterruptCheck,
    ) -> Result<Array, Error> {
        let fault = |problem| Error::parse(name, problem);
        let (path, version) = match &self.location {
            Location::Local(path, version) => (path, version),
            Location::Far(store) => {
                let work = Interruptible::new(interrupts);
                let source = RemoteSource::new(&**store, &[], &work);
                let array = self.found.array(&source, number);
                let failure = source.failure();
                return match (work.raised(), array) {
                    (Some(raised), _) => Err(raised),
                    (None, array) => {
                        array.map_err(|problem| failure.map_or_else(|| fault(problem), Error::Read))
                    }
                };
            }
        };
        let store = FileStore::open(path)?;
        let array = self.found.array(&LocalSource(&store), number);
        store.check_unchanged()?;
        if !store.version().keeps(version) {
            return Err(ReadError::FileChanged { file: store.name().to_owned() }.into());
        }
        array.map_err(fault)
    }

    /// The files that hold its chunks, as they were when the references were made.
    pub(crate) fn referenced(&self, name: String, folder: &Path) -> Referenced {
        let mut identities = HashMap::new();
        let file = |file: &SourceFile| {
            let path = location_in(folder, &file.path);
            let (nbytes, modified) = (file.nbytes, file.modified);
            let version = if path.to_str().is_some_and(is_url) {
                let modified = modified.and_then(|(seconds, _)| i64::try_from(seconds).ok()).unwrap_or(0);
                let identity = |nbytes| Identity { nbytes, etag: file.etag.clone(), modified };
                identities.extend(nbytes.map(|nbytes| (path.clone(), identity(nbytes))));
                None
            } else {
                let modified = modified.and_then(|(seconds, nanoseconds)| {
                    UNIX_EPOCH
                        .checked_add(Duration::from_secs(seconds))?
                        .checked_add(Duration::from_nanos(nanoseconds.into()))
                });
                nbytes.map(|nbytes| FileVersion::new(nbytes, modified))
            };
            OtherFile { path, version, is_padded: file.is_padded }
        };
        let files = self.found.files.iter().map(file).collect();
        Referenced { name, files, identities }
    }
}
