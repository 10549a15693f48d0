//! The files of a directory tree, listed once.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::pages::FetchError;

const MAX_DEPTH: usize = 64;
const MAX_FILE_COUNT: usize = 1 << 26;
/// No sensible metadata document is longer.
const MAX_DOCUMENT_NBYTES: u64 = 512 << 20;

/// Paths relative to the root, with `/`, and their lengths.
pub(super) struct Listing {
    root: PathBuf,
    lengths: BTreeMap<String, u64>,
}

impl Listing {
    /// List a directory.
    pub fn of(root: &Path) -> Result<Self, Error> {
        let mut listing = Self { root: root.to_path_buf(), lengths: BTreeMap::new() };
        let mut linked = HashSet::new();
        let mut open = vec![(root.to_path_buf(), String::new(), 0)];
        while let Some((directory, prefix, depth)) = open.pop() {
            for entry in std::fs::read_dir(&directory).map_err(|error| fault(&directory, &error))? {
                let entry = entry.map_err(|error| fault(&directory, &error))?;
                // no key is other than UTF-8
                let Ok(name) = entry.file_name().into_string() else { continue };
                let path = format!("{prefix}{name}");
                let Ok(metadata) = std::fs::metadata(entry.path()) else { continue }; // a link to nowhere
                if metadata.is_file() {
                    listing.lengths.insert(path, metadata.len());
                } else if metadata.is_dir() && depth < MAX_DEPTH && enters(&entry, &mut linked) {
                    open.push((entry.path(), format!("{path}/"), depth + 1));
                }
                if listing.lengths.len() > MAX_FILE_COUNT {
                    return Err(Error::TooMany {
                        what: "files of a Zarr directory",
                        limit: MAX_FILE_COUNT as u64,
                    });
                }
            }
        }
        Ok(listing)
    }

    /// All files, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.lengths.keys().map(String::as_str)
    }

    /// Files whose path starts with `prefix`, and their lengths.
    pub fn below<'l>(&'l self, prefix: &'l str) -> impl Iterator<Item = (&'l str, u64)> {
        let from = self.lengths.range(prefix.to_owned()..);
        from.map(|(path, &length)| (path.as_str(), length))
            .take_while(move |(path, _)| path.starts_with(prefix))
    }

    /// A whole document.
    pub fn document(&self, path: &str) -> Result<Vec<u8>, Error> {
        let length = self.lengths.get(path).copied().unwrap_or_default();
        if length > MAX_DOCUMENT_NBYTES {
            return Err(Error::TooMany {
                what: "bytes of a Zarr metadata document",
                limit: MAX_DOCUMENT_NBYTES,
            });
        }
        self.bytes(path, 0, length)
    }

    /// Bytes of a file; the caller has made sure that the file is so long.
    pub fn bytes(&self, path: &str, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
        let full = self.root.join(path);
        let read = || {
            let mut file = File::open(&full)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = Vec::new();
            file.take(length).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error: std::io::Error| fault(&full, &error))?;
        if bytes.len() as u64 == length {
            return Ok(bytes);
        }
        Err(Error::Fetch(FetchError(format!("{} became shorter while it was read", full.display()))))
    }
}

/// Links to directories are followed once each, so that none leads round in circles.
fn enters(entry: &std::fs::DirEntry, linked: &mut HashSet<PathBuf>) -> bool {
    if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
        return true;
    }
    std::fs::canonicalize(entry.path()).is_ok_and(|target| linked.insert(target))
}

fn fault(path: &Path, error: &std::io::Error) -> Error {
    Error::Fetch(FetchError(format!("{}: {error}", path.display())))
}
