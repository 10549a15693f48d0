//! The files of a directory tree, listed once. Each file is a key.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use hyperslab_core::{ByteRange, FileIdentity, FileIndex, ListedFile};

use super::hierarchy::{Hierarchy, Location};
use crate::allowed::Allowed;
use crate::error::Error;
use crate::error::FetchError;

const MAX_DEPTH: usize = 64;
const MAX_FILE_COUNT: usize = 1 << 26;

/// The hierarchy of a directory. Keys are paths relative to it, with `/`.
pub(super) fn hierarchy(root: &Path, allowed: &Allowed) -> Result<Hierarchy, Error> {
    let (mut entries, mut files, mut listed) = (Vec::new(), Vec::new(), Vec::new());
    let mut linked = HashSet::new();
    let mut open = vec![(root.to_path_buf(), String::new(), 0)];
    while let Some((directory, prefix, depth)) = open.pop() {
        for entry in std::fs::read_dir(&directory).map_err(|error| fault(&directory, &error))? {
            let entry = entry.map_err(|error| fault(&directory, &error))?;
            // all keys are UTF-8
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = format!("{prefix}{name}");
            let Ok(metadata) = std::fs::metadata(entry.path()) else { continue }; // a dangling link
            if metadata.is_file() {
                let range = ByteRange { offset: 0, length: metadata.len() };
                let key = path.clone().into_boxed_str();
                files.push(path);
                listed.push(listed_file(&metadata));
                let file = FileIndex::try_from(files.len()).unwrap_or(FileIndex::MAX);
                entries.push((key, Location::Stored { file, range: Some(range) }));
            } else if metadata.is_dir() && depth < MAX_DEPTH && enters(&entry, &mut linked, allowed) {
                open.push((entry.path(), format!("{path}/"), depth + 1));
            }
            if files.len() > MAX_FILE_COUNT {
                return Err(Error::TooMany {
                    what: "files of a Zarr directory",
                    limit: MAX_FILE_COUNT as u64,
                });
            }
        }
    }
    Ok(Hierarchy::new(entries, files, root, allowed).with_listed(listed))
}

/// What tells a file from a later one of the same name: chunks that were replaced must not be read beside others.
fn listed_file(metadata: &Metadata) -> ListedFile {
    let modified = metadata.modified().ok().map(nanoseconds);
    ListedFile { nbytes: metadata.len(), modified, identity: FileIdentity::of_metadata(metadata) }
}

/// Nanoseconds since the beginning of 1970; negative before.
fn nanoseconds(at: SystemTime) -> i128 {
    match at.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos().cast_signed(),
        Err(before) => -before.duration().as_nanos().cast_signed(),
    }
}

/// Follows each link to a directory once, so circles end.
fn enters(entry: &std::fs::DirEntry, linked: &mut HashSet<PathBuf>, allowed: &Allowed) -> bool {
    if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
        return true;
    }
    allowed.permits(&entry.path())
        && std::fs::canonicalize(entry.path()).is_ok_and(|target| linked.insert(target))
}

fn fault(path: &Path, error: &std::io::Error) -> Error {
    Error::Fetch(FetchError(format!("{}: {error}", path.display())))
}
