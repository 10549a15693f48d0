//! A Zarr hierarchy: its keys, and where each leads: to a file, to a range of a file, or to inline bytes.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use hyperslab_core::{ByteRange, ChunkGrid, FileIndex, ListedFile, Unreadable};

use super::budget::MOST_NBYTES;
use super::chunk_bytes::{Chunk, ChunkBytes};
use super::keys::Keys;
use super::parts::Parts;
use super::tables::Table;
use crate::allowed::Allowed;
use crate::error::Error;
use crate::error::FetchError;
use crate::regular_file::open_regular;

/// Where a key leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// To a file, by its number, counting from 1: to all of it, or to a range.
    Stored { file: FileIndex, range: Option<ByteRange> },
    /// To these bytes.
    Inline(Box<[u8]>),
}

/// Sorted keys, and where they lead. Arrays may have their chunks in a table instead.
pub(super) struct Hierarchy {
    entries: Vec<(Box<str>, Location)>,
    tables: HashMap<String, Table>,
    files: Vec<String>,
    /// What the listing said of the first of the files.
    listed: Vec<ListedFile>,
    folder: PathBuf,
    /// The files that may be read.
    allowed: Allowed,
}

impl Hierarchy {
    /// From keys in any order. If a key occurs twice, the later one counts. File names are relative to `folder`.
    pub fn new(
        mut entries: Vec<(Box<str>, Location)>,
        files: Vec<String>,
        folder: &Path,
        allowed: &Allowed,
    ) -> Self {
        entries.sort_by(|(one, _), (other, _)| one.cmp(other)); // stable: the later of two stays last
        entries.reverse();
        entries.dedup_by(|(one, _), (other, _)| one == other);
        entries.reverse();
        let (tables, listed) = (HashMap::new(), Vec::new());
        Self { entries, tables, files, listed, folder: folder.to_owned(), allowed: allowed.clone() }
    }

    /// Adds what the listing of a folder said of its files, in their order.
    #[must_use]
    pub fn with_listed(self, listed: Vec<ListedFile>) -> Self {
        Self { listed, ..self }
    }

    /// Adds tables with the chunks of some arrays, by array path.
    #[must_use]
    pub fn with_tables(self, tables: HashMap<String, Table>) -> Self {
        Self { tables, ..self }
    }

    /// The same keys and more.
    pub fn with(self, more: Vec<(Box<str>, Location)>, files: Vec<String>) -> Self {
        let entries = self.entries.into_iter().chain(more).collect();
        let hierarchy = Self::new(entries, files, &self.folder, &self.allowed);
        Self { tables: self.tables, listed: self.listed, ..hierarchy }
    }

    /// All keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(key, _)| &**key)
    }

    /// The names of its files. File number 1 comes first.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// The same and what the listing said of them, when nothing else is needed any more.
    pub fn into_files(self) -> (Vec<String>, Vec<ListedFile>) {
        (self.files, self.listed)
    }

    /// The whole content of a key; `None` if there is no such key.
    pub fn document(&self, key: &str) -> Result<Vec<u8>, Error> {
        let position = self.entries.binary_search_by(|(known, _)| (**known).cmp(key)).ok();
        let Some((_, location)) = position.and_then(|position| self.entries.get(position)) else {
            return Ok(Vec::new());
        };
        let bytes = self.chunk_bytes(location)?;
        if bytes.length() > MOST_NBYTES {
            return Err(Error::TooMany { what: "bytes of a Zarr metadata document", limit: MOST_NBYTES });
        }
        self.bytes(&bytes)
    }

    /// The chunks, or shards, of an array. Keys outside its grid are left over from a larger shape.
    pub fn chunks(&self, array: &str, keys: &Keys, grid: &ChunkGrid) -> Result<Vec<Chunk<'_>>, Unreadable> {
        if let Some(table) = self.tables.get(array) {
            return self.tabled(table, grid);
        }
        let prefix = if array.is_empty() { String::new() } else { format!("{array}/") };
        let from = self.entries.partition_point(|(key, _)| **key < *prefix);
        let below = self.entries.get(from..).unwrap_or_default().iter();
        let mut found = Vec::new();
        for (key, location) in below.take_while(|(key, _)| key.starts_with(&prefix)) {
            let key = key.get(prefix.len()..).unwrap_or_default();
            let index = keys.chunk_index(key, grid.shape().len());
            let Some(index) = index.and_then(|index| grid.linear_index(&index).ok()) else { continue };
            found.push(Chunk { index, bytes: self.chunk_bytes(location)? });
        }
        Ok(found)
    }

    fn tabled<'h>(&'h self, table: &'h Table, grid: &ChunkGrid) -> Result<Vec<Chunk<'h>>, Unreadable> {
        let mut found = Vec::new();
        for (index, file, range) in table.stored() {
            let bytes = match range {
                Some(range) => ChunkBytes::Stored { file, range },
                None => self.whole(file)?,
            };
            found.push(Chunk { index, bytes });
        }
        found.extend(table.inline().map(|(index, bytes)| Chunk { index, bytes: ChunkBytes::Inline(bytes) }));
        found.retain(|chunk| chunk.index < grid.chunk_count()); // tables are padded to a multiple of their files' rows
        Ok(found)
    }

    fn chunk_bytes<'h>(&self, location: &'h Location) -> Result<ChunkBytes<'h>, Error> {
        match location {
            Location::Inline(bytes) => Ok(ChunkBytes::Inline(bytes)),
            Location::Stored { file, range: Some(range) } => {
                Ok(ChunkBytes::Stored { file: *file, range: *range })
            }
            Location::Stored { file, range: None } => self.whole(*file),
        }
    }

    /// The location of a whole file. If it does not exist, reading it will report that.
    fn whole(&self, file: FileIndex) -> Result<ChunkBytes<'static>, Error> {
        let path = self.path(file)?;
        let length = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        Ok(ChunkBytes::Stored { file, range: ByteRange { offset: 0, length } })
    }

    fn path(&self, file: FileIndex) -> Result<PathBuf, Error> {
        let position = usize::try_from(file).ok().and_then(|number| number.checked_sub(1));
        let name = position.and_then(|position| self.files.get(position));
        let name =
            name.ok_or_else(|| Error::invalid("a chunk's file", 0, format!("number {file} has no name")))?;
        let is_far = |path: &str| path.contains("://");
        if is_far(name) || self.folder.to_str().is_some_and(is_far) {
            let shown = name.split('?').next().unwrap_or_default();
            return Err(Error::unsupported(format!("a key that leads to the whole remote file {shown}")));
        }
        Ok(super::files::place_of(&self.folder, name))
    }

    /// Bytes, read now.
    fn bytes(&self, bytes: &ChunkBytes<'_>) -> Result<Vec<u8>, Error> {
        match bytes {
            ChunkBytes::Inline(bytes) => Ok(bytes.to_vec()),
            ChunkBytes::Stored { file, range } => Ok(read_range(&self.path(*file)?, *range, &self.allowed)?),
        }
    }
}

impl Parts for Hierarchy {
    fn read(&self, asked: &[(FileIndex, ByteRange)]) -> Vec<Result<Vec<u8>, FetchError>> {
        let read = |(file, range): &(FileIndex, ByteRange)| {
            let path = self.path(*file).map_err(|error| FetchError(error.to_string()))?;
            read_range(&path, *range, &self.allowed)
        };
        asked.iter().map(read).collect()
    }
}

fn read_range(path: &Path, range: ByteRange, allowed: &Allowed) -> Result<Vec<u8>, FetchError> {
    let fault = |problem: String| FetchError(format!("{}: {problem}", path.display()));
    let read = || {
        let refused = || std::io::Error::other("this file is not allowed: see allowed= in docs/security.md");
        if !allowed.permits(path) {
            return Err(refused());
        }
        let mut file = open_regular(path)?;
        if !allowed.permits_open(path, &file) {
            return Err(refused());
        }
        file.seek(SeekFrom::Start(range.offset))?;
        let mut bytes = Vec::new();
        file.take(range.length).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error: std::io::Error| fault(error.to_string()))?;
    if bytes.len() as u64 == range.length {
        return Ok(bytes);
    }
    Err(fault(format!("it ends before byte {}, which it should hold", range.end())))
}
