//! The version of a local file.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, SystemTime};

use hyperslab_core::ListedFile;

/// Tells a file from a later one of the same name: its size and modification time.
#[derive(Clone, Copy, Debug)]
pub struct FileVersion {
    nbytes: u64,
    modified: Option<SystemTime>,
    /// The file's identity in its file system, if known. A replacement differs in it, even with the same size and a
    /// time within the same clock tick.
    inode: Option<u64>,
}

impl FileVersion {
    /// From a known size and modification time.
    pub fn new(nbytes: u64, modified: Option<SystemTime>) -> Self {
        Self { nbytes, modified, inode: None }
    }

    /// The version of the file at a path; `None` if there is no file.
    pub fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().filter(Metadata::is_file).map(|metadata| Self::of_metadata(&metadata))
    }

    pub(super) fn of_metadata(metadata: &Metadata) -> Self {
        Self { nbytes: metadata.len(), modified: metadata.modified().ok(), inode: inode(metadata) }
    }

    /// The file's size.
    pub fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// When the file was last modified.
    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }
}

impl From<ListedFile> for FileVersion {
    fn from(listed: ListedFile) -> Self {
        let ListedFile { nbytes, modified, inode } = listed;
        Self { nbytes, modified: modified.and_then(at), inode }
    }
}

/// The time so many nanoseconds after the beginning of 1970.
fn at(nanoseconds: i128) -> Option<SystemTime> {
    let distance = nanoseconds.unsigned_abs();
    let whole = u64::try_from(distance / 1_000_000_000).ok()?;
    let distance = Duration::new(whole, u32::try_from(distance % 1_000_000_000).ok()?);
    let epoch = SystemTime::UNIX_EPOCH;
    if nanoseconds < 0 { epoch.checked_sub(distance) } else { epoch.checked_add(distance) }
}

impl PartialEq for FileVersion {
    /// Whether both may be versions of one file. Unknown parts are not compared.
    fn eq(&self, other: &Self) -> bool {
        let inodes = self.inode.zip(other.inode);
        let is_one = inodes.is_none_or(|(one, other)| one == other);
        is_one && self.nbytes == other.nbytes && self.modified == other.modified
    }
}

impl std::fmt::Display for FileVersion {
    /// The size, and nanoseconds since 1970.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let since = self.modified.and_then(|modified| modified.duration_since(SystemTime::UNIX_EPOCH).ok());
        write!(formatter, "{} bytes of {}", self.nbytes, since.map_or(0, |since| since.as_nanos()))
    }
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // other systems have none
fn inode(metadata: &Metadata) -> Option<u64> {
    Some(std::os::unix::fs::MetadataExt::ino(metadata))
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::at;

    #[test]
    fn times_before_and_after_1970() {
        let half = Duration::from_millis(1500);
        assert_eq!(at(1_500_000_000), Some(SystemTime::UNIX_EPOCH + half));
        assert_eq!(at(-1_500_000_000), Some(SystemTime::UNIX_EPOCH - half));
        assert_eq!(at(i128::MAX), None);
    }
}
