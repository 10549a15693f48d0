//! `FileIdentity`: tells a local file from every other file, and from itself before a change.

use std::fs::{File, Metadata};

use hyperslab_engine::{FileStore, ReadError, Store};

use crate::error::Error;

/// Tells a local file from every other file, whatever its path, and from itself before someone wrote to it. Use it as
/// the key in a table of open archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The file system: `st_dev`.
    pub device: u64,
    /// The file's number in it: `st_ino`.
    pub inode: u64,
    /// Its size in bytes: `st_size`.
    pub nbytes: u64,
    /// The time of the last change, in seconds and nanoseconds since 1970: `st_mtim`.
    pub modified: (i64, i64),
}

impl FileIdentity {
    /// The identity of an open file. A caller that only has a descriptor can borrow it as a `File`.
    pub fn of(file: &File) -> std::io::Result<Self> {
        file.metadata().and_then(|metadata| Self::of_metadata(&metadata))
    }

    /// The identity from the file system's metadata.
    #[cfg(unix)]
    #[allow(clippy::unnecessary_wraps)] // other systems do not report it
    pub fn of_metadata(metadata: &Metadata) -> std::io::Result<Self> {
        use std::os::unix::fs::MetadataExt;

        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Ok(Self { device: metadata.dev(), inode: metadata.ino(), nbytes: metadata.size(), modified })
    }

    /// The identity from the file system's metadata.
    #[cfg(not(unix))]
    pub fn of_metadata(_: &Metadata) -> std::io::Result<Self> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    /// Fails unless the opened file is this one.
    pub(crate) fn check(self, store: &FileStore) -> Result<(), Error> {
        let found = Self::of(store.file()).map_err(|error| {
            let (file, problem) = (store.name().to_owned(), error.to_string());
            ReadError::System { file, problem }
        })?;
        if found == self {
            return Ok(());
        }
        Err(ReadError::FileChanged { file: store.name().to_owned() }.into())
    }
}
