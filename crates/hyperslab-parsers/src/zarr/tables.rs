//! Chunks of an array as columns, as Kerchunk's Parquet references and archives of our own have them.

use std::collections::BTreeMap;

use hyperslab_core::{ByteRange, FileIndex};

use crate::error::Error;

/// Where the chunks of one array are: entry `i` of each column is the chunk with the linear index `i`.
///
/// As in Kerchunk's Parquet, offset and length 0 stand for all of a file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    files: Vec<FileIndex>,
    ranges: Vec<ByteRange>,
    inline: BTreeMap<u64, Vec<u8>>,
}

impl Table {
    /// In `files`, stands for a chunk that is in no file: missing, unless it is inline.
    pub const NO_FILE: FileIndex = FileIndex::MAX;

    /// Of columns of one length; files count from 0. `file_count` is how many there are.
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

    /// Linear index, file from 1 on, and range (`None`: all of the file) of each stored chunk.
    pub(super) fn stored(&self) -> impl Iterator<Item = (u64, FileIndex, Option<ByteRange>)> {
        let entries = (0..).zip(&self.files).zip(&self.ranges);
        let entries =
            entries.filter(|((index, file), _)| **file != Self::NO_FILE && !self.inline.contains_key(index));
        entries.map(|((index, &file), &range)| {
            let is_whole = range == ByteRange { offset: 0, length: 0 };
            (index, file.saturating_add(1), (!is_whole).then_some(range))
        })
    }

    /// Linear index and bytes of each chunk that is at hand.
    pub(super) fn inline(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.inline.iter().map(|(&index, bytes)| (index, bytes.as_slice()))
    }
}
