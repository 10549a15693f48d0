//! `FileIdentity`: tells a local file from every other file, and from itself before a change.

/// Tells a local file from every other file, whatever its path, and from itself before someone wrote to it. Use it as
/// the key in a table of open archives; `keeps` compares the file with an earlier look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The file system: `st_dev`.
    pub device: u64,
    /// The file's number in it: `st_ino`.
    pub inode: u64,
    /// Its size in bytes: `st_size`.
    pub nbytes: u64,
    /// The time of the last write, in seconds and nanoseconds since 1970: `st_mtim`. Programs may set it.
    pub modified: (i64, i64),
    /// The time of the last change of any kind: `st_ctim`. Only the system sets it.
    pub changed: (i64, i64),
    /// What such a change may be besides writing: the number of links, the mode, the owner and the group.
    pub status: (u64, u32, u32, u32),
}

impl FileIdentity {
    /// The identity from the file system's metadata; `None` if the system reports none.
    #[cfg(unix)]
    #[allow(clippy::unnecessary_wraps)] // other systems do not report it
    pub fn of_metadata(metadata: &impl std::os::unix::fs::MetadataExt) -> Option<Self> {
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            nbytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            status: (metadata.nlink(), metadata.mode(), metadata.uid(), metadata.gid()),
        })
    }

    /// The identity from the file system's metadata; `None` if the system reports none.
    #[cfg(not(unix))]
    pub fn of_metadata<M>(_: &M) -> Option<Self> {
        None
    }

    /// Whether it is the file of `before`, whatever was written to it since.
    pub fn is_file(&self, before: &Self) -> bool {
        (self.device, self.inode) == (before.device, before.inode)
    }

    /// Whether it is the file of `before` with the same size and time of the last write.
    pub fn seems(&self, before: &Self) -> bool {
        self.is_file(before) && (self.nbytes, self.modified) == (before.nbytes, before.modified)
    }

    /// Whether it is the file of `before` with the bytes that it had then. A program that writes may put the time of the
    /// write back, but not that of the last change. If only the latter is new, and the file was unlinked, linked or
    /// given to someone since, that explains it: programs go on reading files whose names are gone.
    pub fn keeps(&self, before: &Self) -> bool {
        self.seems(before) && (self.changed == before.changed || self.status != before.status)
    }
}

#[cfg(test)]
mod tests {
    use super::FileIdentity;

    const FOUND: FileIdentity = FileIdentity {
        device: 1,
        inode: 2,
        nbytes: 3,
        modified: (4, 5),
        changed: (6, 7),
        status: (1, 0o644, 0, 0),
    };

    #[test]
    fn a_write_shows_in_the_time_of_the_change_although_the_other_is_put_back() {
        assert!(FOUND.keeps(&FOUND));
        assert!(!FileIdentity { changed: (6, 8), ..FOUND }.keeps(&FOUND));
        assert!(!FileIdentity { modified: (4, 6), ..FOUND }.keeps(&FOUND));
        assert!(!FileIdentity { inode: 3, ..FOUND }.keeps(&FOUND));
    }

    #[test]
    fn a_file_that_lost_its_name_keeps_its_bytes() {
        let unlinked = FileIdentity { changed: (6, 8), status: (0, 0o644, 0, 0), ..FOUND };
        assert!(unlinked.keeps(&FOUND));
        assert!(!FileIdentity { modified: (4, 6), ..unlinked }.keeps(&FOUND));
    }
}
