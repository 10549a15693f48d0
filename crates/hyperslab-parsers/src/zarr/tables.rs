//! Chunks of an array as columns, for Kerchunk's Parquet references and our own archives.

use std::collections::BTreeMap;

use hyperslab_core::{ByteRange, FileIndex};

use crate::error::Error;

/// The locations of the chunks of one array. Entry `i` of each column belongs to the chunk with the linear index `i`.
///
/// As in Kerchunk's Parquet, offset and length 0 stand for a whole file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    files: Vec<FileIndex>,
    ranges: Vec<ByteRange>,
    inline: BTreeMap<u64, Vec<u8>>,
}

impl Table {
    /// In `files`: the chunk is in no file. It is missing, unless it is inline.
    pub const NO_FILE: FileIndex = FileIndex::MAX;

    /// From columns of equal length. Files count from 0; `file_count` is their number.
    pub fn new(
        files: &[FileIndex],
        offsets: &[u64],
        lengths: &[u64],
        inline: BTreeMap<u64, Vec<u8>>,
        file_count: usize,
    ) -> Result<Self, Error> {
        let wrong = |problem: String| Err(Error::invalid("a table of chunks", 0, problem));
        if offsets.len() != files.len() || lengths.len() != files.len() {
            let counts = (files.len(), offsets.len(), lengths.len());
            return wrong(format!("its columns have different lengths: {counts:?}"));
        }
        let is_known = |&&file: &&FileIndex| {
            file == Self::NO_FILE || usize::try_from(file).is_ok_and(|it| it < file_count)
        };
        if let Some(file) = files.iter().find(|file| !is_known(file)) {
            return wrong(format!("file {file} of {file_count}"));
        }
        let pairs = offsets.iter().zip(lengths);
        let Ok(ranges) = pairs.map(|(&offset, &length)| ByteRange::new(offset, length)).collect() else {
            return wrong("a range that ends beyond 2^64".to_owned());
        };
        Ok(Self { files: files.to_vec(), ranges, inline })
    }

    /// The linear index, file number (from 1) and range (`None` for a whole file) of each stored chunk.
    pub(super) fn stored(&self) -> impl Iterator<Item = (u64, FileIndex, Option<ByteRange>)> {
        let entries = (0..).zip(&self.files).zip(&self.ranges);
        let entries =
            entries.filter(|((index, file), _)| **file != Self::NO_FILE && !self.inline.contains_key(index));
        entries.map(|((index, &file), &range)| {
            let is_whole = range == ByteRange { offset: 0, length: 0 };
            (index, file.saturating_add(1), (!is_whole).then_some(range))
        })
    }

    /// The linear index and the bytes of each inline chunk.
    pub(super) fn inline(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.inline.iter().map(|(&index, bytes)| (index, bytes.as_slice()))
    }
}
