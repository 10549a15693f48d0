//! The version of a local file.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, SystemTime};

use hyperslab_core::{FileIdentity, ListedFile};

/// Tells a file from a later one of the same name: its size and modification time.
#[derive(Clone, Copy, Debug)]
pub struct FileVersion {
    nbytes: u64,
    modified: Option<SystemTime>,
    /// What else the file system told, if the file itself was looked at. A replacement differs in it, even with the same
    /// size and a time within the same clock tick, and so does a file that was written to.
    identity: Option<FileIdentity>,
}

impl FileVersion {
    /// From a known size and modification time.
    pub fn new(nbytes: u64, modified: Option<SystemTime>) -> Self {
        Self { nbytes, modified, identity: None }
    }

    /// The version of the file at a path; `None` if there is no file.
    pub fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().filter(Metadata::is_file).map(|metadata| Self::of_metadata(&metadata))
    }

    pub(super) fn of_metadata(metadata: &Metadata) -> Self {
        let identity = FileIdentity::of_metadata(metadata);
        Self { nbytes: metadata.len(), modified: metadata.modified().ok(), identity }
    }

    /// The file's size.
    pub fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// Whether it is the file of `before` with the bytes that it had then, as far as both are known.
    pub fn keeps(&self, before: &Self) -> bool {
        let identities = self.identity.zip(before.identity);
        let is_one = identities.is_none_or(|(now, before)| now.keeps(&before));
        is_one && self.nbytes == before.nbytes && self.modified == before.modified
    }

    /// Whether it is the file of `before`, which has another name now: that alone changes the time of the last change.
    pub fn was_moved(&self, before: &Self, path: &Path) -> bool {
        let Some((now, before)) = self.identity.zip(before.identity) else { return false };
        let there = std::fs::metadata(path).ok().and_then(|there| FileIdentity::of_metadata(&there));
        now.seems(&before) && !there.is_some_and(|there| there.is_file(&now))
    }

    /// When the file was last modified.
    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }
}

impl From<ListedFile> for FileVersion {
    fn from(listed: ListedFile) -> Self {
        let ListedFile { nbytes, modified, identity } = listed;
        Self { nbytes, modified: modified.and_then(at), identity }
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

impl std::fmt::Display for FileVersion {
    /// The size, and nanoseconds since 1970.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let since = self.modified.and_then(|modified| modified.duration_since(SystemTime::UNIX_EPOCH).ok());
        write!(formatter, "{} bytes of {}", self.nbytes, since.map_or(0, |since| since.as_nanos()))
    }
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
