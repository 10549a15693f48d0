//! Our own file of references (`.hs`). It has everything about archives except the bytes of their chunks.
//!
//! ```text
//! signature, version │ manifests, each with its checksum │ tables, checksum │ footer, checksum
//! ```
//!
//! The footer locates the tables. The tables hold the source files with their versions, groups and arrays with
//! attributes, elements, codecs and segments (`schema.rs`), and the location of each manifest. A manifest is read when
//! an array that needs it is first used (`columns.rs`). Numbers are little-endian or LEB128 (`stored.rs`); checksums
//! are Jenkins' lookup3, as in HDF5.

mod check;
mod columns;
mod known_codecs;
mod schema;
mod stored;
mod tables;

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use hyperslab_core::{
    Array, ByteRange, FileIndex, Group, Manifest, Segment, Tree, Unreadable, VirtualMappings,
};

use crate::cursor::Cursor;
use crate::error::Error;
use crate::hdf5::lookup3::{CHECKSUM_NBYTES, checked, lookup3};
use crate::pages::Source;
pub use columns::MOST_CHUNKS;
use stored::{Input, Stored};
pub use tables::SourceFile;
use tables::{ManifestLocation, StoredArray, StoredSegment, Tables};

/// The signature of a file of references.
pub const SIGNATURE: &[u8] = b"\x89HSR\r\n\x1a\n";
/// The version that we write, unless only the newest has a codec of the file: it stores codecs by name. We also read
/// version 1, which has no values of variable length in chunks.
const VERSION: u32 = 2;
const OLDEST_VERSION: u32 = 1;
const NEWEST_VERSION: u32 = 3;
const FOOTER_NBYTES: u64 = 24; // offset and length of the tables, version, checksum

/// An open file of references: everything except the manifests.
pub struct References {
    /// The files that hold chunks. Number `i + 1` in a manifest is file `i`.
    pub files: Vec<SourceFile>,
    /// Groups and arrays. The segments of the arrays have empty manifests.
    pub tree: Tree,
    arrays: Vec<StoredArray>,
    manifests: Vec<ManifestLocation>,
}

impl References {
    /// Reads the tables, in two rounds.
    pub fn read(source: &dyn Source) -> Result<Self, Error> {
        let invalid = |problem: &str| Error::invalid("references", 0, problem);
        let start = SIGNATURE.len() as u64 + 4;
        let footer_offset = source.length().checked_sub(FOOTER_NBYTES).filter(|&offset| offset >= start);
        let footer_offset = footer_offset.ok_or_else(|| invalid("cut off"))?;
        let bytes = fetched(source, footer_offset, FOOTER_NBYTES)?;
        let mut footer =
            Cursor::new("references", footer_offset, checked("references", footer_offset, &bytes)?);
        let (offset, nbytes, version) = (footer.u64()?, footer.u64()?, footer.u32()?);
        if !(OLDEST_VERSION..=NEWEST_VERSION).contains(&version) {
            return Err(Error::unsupported(format!("version {version} of references")));
        }
        if offset.checked_add(nbytes).is_none_or(|end| end > footer_offset) {
            return Err(invalid("the footer points outside the file"));
        }
        let bytes = fetched(source, offset, nbytes)?;
        let cursor = Cursor::new("references", offset, checked("references", offset, &bytes)?);
        Self::of(Tables::read(&mut Input::new(cursor))?, offset)
    }

    fn of(tables: Tables, end: u64) -> Result<Self, Error> {
        check::tables(&tables, end)?;
        let nothing = Arc::new(Manifest::empty());
        let array = |array: &StoredArray| {
            let with_nothing = |segments: &Vec<StoredSegment>| {
                segments.iter().map(|segment| segment.with(Arc::clone(&nothing))).collect()
            };
            let segments = array.segments.as_ref().map(with_nothing).map_err(Clone::clone);
            Array { segments, ..array.described.clone() }
        };
        let arrays = tables.arrays.iter().map(array).collect();
        let other_files = tables.files.iter().map(|file| file.path.clone()).collect();
        let tree =
            Tree { groups: tables.groups, arrays, declared_nbytes: None, other_files, ..Tree::default() };
        Ok(Self { files: tables.files, tree, arrays: tables.arrays, manifests: tables.manifests })
    }

    /// An array with its manifests.
    pub fn array(&self, source: &dyn Source, number: usize) -> Result<Array, Error> {
        let none = || Error::invalid("references", 0, "there is no such array");
        let array = self.arrays.get(number).ok_or_else(none)?;
        let mut known: HashMap<usize, Arc<Manifest>> = HashMap::new();
        let mut with_manifest = |segment: &StoredSegment| -> Result<Segment, Error> {
            if let Some(manifest) = known.get(&segment.manifest) {
                return Ok(segment.with(Arc::clone(manifest)));
            }
            let location = self.manifests.get(segment.manifest).ok_or_else(none)?;
            let bytes = fetched(source, location.offset, location.nbytes)?;
            let bytes = checked("a manifest", location.offset, &bytes)?;
            let manifest = Arc::new(columns::decode(bytes, location.offset, segment.grid.chunk_count())?);
            known.insert(segment.manifest, Arc::clone(&manifest));
            Ok(segment.with(manifest))
        };
        let segments = match &array.segments {
            Ok(segments) => Ok(segments.iter().map(&mut with_manifest).collect::<Result<_, _>>()?),
            Err(reason) => Err(reason.clone()),
        };
        Ok(Array { segments, ..array.described.clone() })
    }

    /// The number of the file into which the variable-length elements of an array point.
    pub fn heap_file(&self, number: usize) -> Option<FileIndex> {
        self.arrays.get(number)?.heap_file
    }
}

fn fetched(source: &dyn Source, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
    let fetched = source.read_ranges(&[ByteRange { offset, length }])?;
    Ok(fetched.into_iter().next().unwrap_or_default())
}

/// Writes references from front to back: manifests as arrays are added, and everything else at the end.
pub struct Writer<W> {
    out: W,
    offset: u64,
    tables: Tables,
}

impl<W: Write> Writer<W> {
    /// Starts a file.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(SIGNATURE)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(Self { out, offset: SIGNATURE.len() as u64 + 4, tables: Tables::default() })
    }

    /// How many groups have been added.
    pub fn group_count(&self) -> usize {
        self.tables.groups.len()
    }

    /// How many arrays have been added.
    pub fn array_count(&self) -> usize {
        self.tables.arrays.len()
    }

    /// Adds a group. The first one is the root.
    pub fn group(&mut self, group: Group) {
        self.tables.groups.push(group);
    }

    /// Adds a file that holds chunks. Returns its number.
    pub fn file(&mut self, file: SourceFile) -> FileIndex {
        self.tables.files.push(file);
        FileIndex::try_from(self.tables.files.len()).unwrap_or(FileIndex::MAX)
    }

    /// Adds an array with its chunks and renumbers their files. An array with too many chunks becomes unreadable.
    pub fn array(
        &mut self,
        array: &Array,
        heap_file: Option<FileIndex>,
        number: impl Fn(FileIndex) -> FileIndex,
    ) -> io::Result<()> {
        let described =
            Array { segments: Ok(Vec::new()), virtual_mappings: VirtualMappings::NONE, ..array.clone() };
        let segments = match &array.segments {
            Ok(segments) => self.segments(segments, number)?,
            Err(reason) => Err(reason.clone()),
        };
        self.tables.arrays.push(StoredArray { described, segments, heap_file });
        Ok(())
    }

    fn segments(
        &mut self,
        segments: &[Segment],
        number: impl Fn(FileIndex) -> FileIndex,
    ) -> io::Result<Result<Vec<StoredSegment>, Unreadable>> {
        let (mut known, mut stored) = (HashMap::new(), Vec::new());
        for segment in segments {
            let key = Arc::as_ptr(&segment.manifest);
            if let Some(&location) = known.get(&key) {
                stored.push(StoredSegment::of(segment, location));
                continue;
            }
            let Some(mut bytes) = columns::encode(&segment.manifest.moved(&number, 0)) else {
                let feature = format!("an array of more than {MOST_CHUNKS} chunks in references");
                return Ok(Err(Unreadable::unsupported(feature)));
            };
            let location = self.tables.manifests.len();
            let section = self.section(&mut bytes)?;
            self.tables.manifests.push(section);
            known.insert(key, location);
            stored.push(StoredSegment::of(segment, location));
        }
        Ok(Ok(stored))
    }

    /// Writes the rest. Returns the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        let mut bytes = Vec::new();
        self.tables.write(&mut bytes);
        let location = self.section(&mut bytes)?;
        let mut footer = [location.offset.to_le_bytes(), location.nbytes.to_le_bytes()].concat();
        let version = if self.tables.name_codecs() { NEWEST_VERSION } else { VERSION };
        footer.extend(version.to_le_bytes());
        self.section(&mut footer)?;
        Ok(self.out)
    }

    /// Writes bytes and their checksum.
    fn section(&mut self, bytes: &mut Vec<u8>) -> io::Result<ManifestLocation> {
        bytes.extend(lookup3(bytes).to_le_bytes());
        self.out.write_all(bytes)?;
        let location = ManifestLocation { offset: self.offset, nbytes: bytes.len() as u64 };
        debug_assert!(bytes.len() >= CHECKSUM_NBYTES);
        self.offset += location.nbytes;
        Ok(location)
    }
}
