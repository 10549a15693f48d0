//! Where the bytes of each chunk of a grid are.
//!
//! There are columns with one entry for each stored chunk: offset (8 bytes) and length (4, or 8 if a chunk exceeds 4
//! GiB). If they differ between chunks, there are also columns for the file (4) and the filter mask (4). In a dense
//! manifest, the position is the linear chunk index; a sparse one has a sorted column of linear indices (8).

use std::collections::HashMap;

use crate::byte_range::ByteRange;

/// The number of a file in the tree's table of files. 0 is the file that was opened.
pub type FileIndex = u32;

/// What is known of a chunk. The set is closed: there are no sentinel values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkState<'a> {
    /// In a file. Bit `i` of the filter mask is set if codec `i` of the chain was skipped.
    Stored {
        /// The file.
        file: FileIndex,
        /// The range in it.
        range: ByteRange,
        /// The codecs that this chunk skipped.
        filter_mask: u32,
    },
    /// The manifest holds its encoded bytes.
    Inline(&'a [u8]),
    /// The chunk is a file of its own, if that file exists; otherwise it was never written. Only reading tells.
    Sought {
        /// The file.
        file: FileIndex,
    },
    /// Never written: every element is the fill value.
    Missing,
}

/// One stored chunk, as a parser finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredChunk {
    /// Its linear index in the grid.
    pub index: u64,
    /// The file.
    pub file: FileIndex,
    /// The range in it.
    pub range: ByteRange,
    /// The codecs that this chunk skipped.
    pub filter_mask: u32,
}

/// The chunks of one grid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Linear indices of the stored chunks, sorted; `None` if chunk `i` is entry `i`.
    indices: Option<Vec<u64>>,
    offsets: Vec<u64>,
    lengths: Lengths,
    files: PerChunk,
    masks: PerChunk,
    inline: HashMap<u64, Box<[u8]>>,
    /// Linear indices of chunks that are files of their own, sorted, and these files.
    sought: Vec<(u64, FileIndex)>,
    /// Whether these files are never read in parts.
    are_fetched_whole: bool,
}

/// The length of each stored chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// If no chunk exceeds 4 GiB.
    Narrow(Vec<u32>),
    /// If a chunk does.
    Wide(Vec<u64>),
}

impl Default for Lengths {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

impl Lengths {
    /// The length of one chunk.
    pub fn get(&self, entry: usize) -> Option<u64> {
        match self {
            Self::Narrow(lengths) => lengths.get(entry).map(|&length| u64::from(length)),
            Self::Wide(lengths) => lengths.get(entry).copied(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Narrow(lengths) => lengths.len(),
            Self::Wide(lengths) => lengths.len(),
        }
    }
}

/// A column that usually has one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerChunk {
    /// One value for all chunks.
    Same(u32),
    /// One value for each chunk.
    Each(Vec<u32>),
}

impl Default for PerChunk {
    fn default() -> Self {
        Self::Same(0)
    }
}

impl PerChunk {
    fn of(values: impl Iterator<Item = u32> + Clone) -> Self {
        let first = values.clone().next().unwrap_or(0);
        if values.clone().all(|value| value == first) {
            Self::Same(first)
        } else {
            Self::Each(values.collect())
        }
    }

    fn get(&self, entry: usize) -> u32 {
        match self {
            Self::Same(value) => *value,
            Self::Each(values) => values.get(entry).copied().unwrap_or(0),
        }
    }

    fn map(&self, change: impl Fn(u32) -> u32) -> Self {
        match self {
            Self::Same(value) => Self::Same(change(*value)),
            Self::Each(values) => Self::Each(values.iter().copied().map(change).collect()),
        }
    }

    fn nbytes(&self) -> usize {
        match self {
            Self::Same(_) => 0,
            Self::Each(values) => values.len() * size_of::<u32>(),
        }
    }
}

impl Manifest {
    /// From stored chunks in any order. If there are two entries for a chunk, the later one counts.
    pub fn of_chunks(mut chunks: Vec<StoredChunk>) -> Self {
        if !chunks.is_sorted_by(|one, next| one.index < next.index) {
            chunks.sort_by_key(|chunk| chunk.index); // stable: the later of two stays last
            chunks.reverse();
            chunks.dedup_by_key(|chunk| chunk.index);
            chunks.reverse();
        }
        let dense = chunks.iter().zip(0..).all(|(chunk, position)| chunk.index == position);
        let narrow: Option<Vec<u32>> =
            chunks.iter().map(|chunk| u32::try_from(chunk.range.length).ok()).collect();
        Self {
            indices: (!dense).then(|| chunks.iter().map(|chunk| chunk.index).collect()),
            offsets: chunks.iter().map(|chunk| chunk.range.offset).collect(),
            lengths: narrow.map_or_else(
                || Lengths::Wide(chunks.iter().map(|chunk| chunk.range.length).collect()),
                Lengths::Narrow,
            ),
            files: PerChunk::of(chunks.iter().map(|chunk| chunk.file)),
            masks: PerChunk::of(chunks.iter().map(|chunk| chunk.filter_mask)),
            inline: HashMap::new(),
            sought: Vec::new(),
            are_fetched_whole: false,
        }
    }

    /// From chunks that are each a file of its own, which may not exist, by linear index in increasing order. Remote
    /// files are never read in parts, because their lengths are unknown beforehand.
    pub fn of_sought(chunks: Vec<(u64, FileIndex)>, are_far: bool) -> Self {
        Self { sought: chunks, are_fetched_whole: are_far, ..Self::default() }
    }

    /// Whether uncompressed chunks are never read in parts either.
    pub(crate) fn are_fetched_whole(&self) -> bool {
        self.are_fetched_whole
    }

    /// From columns of equal length, with one entry for each stored chunk. `indices` are linear and strictly ascending;
    /// `None` means that chunk `i` is entry `i`. `None` if the columns break these rules, or if a chunk ends beyond
    /// 2^64.
    pub fn of_columns(
        indices: Option<Vec<u64>>,
        offsets: Vec<u64>,
        lengths: Lengths,
        files: PerChunk,
        masks: PerChunk,
    ) -> Option<Self> {
        let count = offsets.len();
        let fits = |column: &PerChunk| match column {
            PerChunk::Same(_) => true,
            PerChunk::Each(values) => values.len() == count,
        };
        let ascend =
            |indices: &Vec<u64>| indices.len() == count && indices.is_sorted_by(|one, next| one < next);
        let is_sound = lengths.len() == count
            && fits(&files)
            && fits(&masks)
            && indices.as_ref().is_none_or(ascend)
            && offsets.iter().zip(0..).all(|(offset, entry)| {
                lengths.get(entry).is_some_and(|length| offset.checked_add(length).is_some())
            });
        is_sound.then(|| Self { indices, offsets, lengths, files, masks, ..Self::default() })
    }

    /// With one chunk, whose encoded bytes are in the metadata.
    pub fn of_inline(bytes: Vec<u8>) -> Self {
        Self { inline: HashMap::from([(0, bytes.into_boxed_slice())]), ..Self::default() }
    }

    /// Without any chunk.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Stores a chunk's encoded bytes in the manifest.
    pub fn insert_inline(&mut self, index: u64, bytes: Vec<u8>) {
        self.inline.insert(index, bytes.into_boxed_slice());
    }

    /// What is known of the chunk with this linear index.
    pub fn state(&self, index: u64) -> ChunkState<'_> {
        if let Some(bytes) = self.inline.get(&index) {
            return ChunkState::Inline(bytes);
        }
        if !self.sought.is_empty() {
            return self.sought_state(index);
        }
        let entry = match &self.indices {
            None => usize::try_from(index).ok(),
            Some(indices) => indices.binary_search(&index).ok(),
        };
        let found =
            entry.and_then(|entry| Some((entry, *self.offsets.get(entry)?, self.lengths.get(entry)?)));
        match found {
            None => ChunkState::Missing,
            Some((entry, offset, length)) => ChunkState::Stored {
                file: self.files.get(entry),
                range: ByteRange { offset, length },
                filter_mask: self.masks.get(entry),
            },
        }
    }

    fn sought_state(&self, index: u64) -> ChunkState<'_> {
        let position = self.sought.binary_search_by_key(&index, |(known, _)| *known).ok();
        let found = position.and_then(|position| self.sought.get(position));
        found.map_or(ChunkState::Missing, |&(_, file)| ChunkState::Sought { file })
    }

    /// The same chunks, with other file numbers, and with `codec_count` more codecs at the start of the chain, which no
    /// chunk skips.
    #[must_use]
    pub fn moved(&self, number: impl Fn(FileIndex) -> FileIndex, codec_count: u32) -> Self {
        let mask = |mask: u32| mask.checked_shl(codec_count).unwrap_or(0);
        Self { files: self.files.map(number), masks: self.masks.map(mask), ..self.clone() }
    }

    /// How many chunks are stored, inline or sought.
    pub fn chunk_count(&self) -> u64 {
        (self.offsets.len() + self.inline.len() + self.sought.len()) as u64
    }

    /// Encoded bytes of all chunks except sought ones.
    pub fn stored_nbytes(&self) -> u64 {
        let stored = (0..self.offsets.len()).filter_map(|entry| self.lengths.get(entry));
        let inline = self.inline.values().map(|bytes| bytes.len() as u64);
        stored.chain(inline).fold(0, u64::saturating_add)
    }

    /// Stored chunks ordered by linear index. Excludes inline and sought chunks.
    pub fn stored(&self) -> impl Iterator<Item = StoredChunk> + '_ {
        (0..self.offsets.len()).filter_map(|entry| {
            let index =
                self.indices.as_ref().map_or(Some(entry as u64), |indices| indices.get(entry).copied())?;
            Some(StoredChunk {
                index,
                file: self.files.get(entry),
                range: ByteRange { offset: *self.offsets.get(entry)?, length: self.lengths.get(entry)? },
                filter_mask: self.masks.get(entry),
            })
        })
    }

    /// Linear indices of the stored, inline and sought chunks, in no order, possibly with duplicates.
    pub fn indices(&self) -> impl Iterator<Item = u64> + '_ {
        let stored = |entry: usize| match &self.indices {
            None => Some(entry as u64),
            Some(indices) => indices.get(entry).copied(),
        };
        let sought = self.sought.iter().map(|(index, _)| *index);
        (0..self.offsets.len()).filter_map(stored).chain(self.inline.keys().copied()).chain(sought)
    }

    /// Linear indices of the inline chunks, ascending.
    pub fn inline_indices(&self) -> Vec<u64> {
        let mut indices: Vec<u64> = self.inline.keys().copied().collect();
        indices.sort_unstable();
        indices
    }

    /// Numbers of the files that hold stored chunks, each at least once.
    pub fn files(&self) -> Vec<FileIndex> {
        match &self.files {
            PerChunk::Same(_) if self.offsets.is_empty() => Vec::new(),
            PerChunk::Same(file) => vec![*file],
            PerChunk::Each(files) => {
                let mut files = files.clone();
                files.sort_unstable();
                files.dedup();
                files
            }
        }
    }

    /// Memory used by the columns.
    pub fn memory_nbytes(&self) -> usize {
        let lengths = match &self.lengths {
            Lengths::Narrow(lengths) => lengths.len() * size_of::<u32>(),
            Lengths::Wide(lengths) => lengths.len() * size_of::<u64>(),
        };
        let indices = self.indices.as_ref().map_or(0, |indices| indices.len() * size_of::<u64>());
        let inline: usize = self.inline.values().map(|bytes| bytes.len() + 64).sum();
        self.offsets.len() * size_of::<u64>()
            + lengths
            + indices
            + self.files.nbytes()
            + self.masks.nbytes()
            + inline
            + self.sought.len() * size_of::<(u64, FileIndex)>()
    }
}
