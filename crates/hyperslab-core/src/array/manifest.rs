//! Where the bytes of each chunk of a grid are.
//!
//! Columns, one entry a stored chunk: offset (8 bytes), length (4, or 8 where one chunk exceeds 4 GiB), and only
//! where they differ between chunks the file (4) and the filter mask (4). A dense manifest's position is its linear
//! chunk index; a sparse one keeps the linear indices, sorted (8).

use std::collections::HashMap;

use crate::byte_range::ByteRange;

/// Number of a file in the table of files that a tree keeps; 0 is the file that was opened.
pub type FileIndex = u32;

/// What is known of a chunk. A closed set: no sentinels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkState<'a> {
    /// In a file. Bits of the mask, from the least: codecs of the chain, from the first, that were skipped.
    Stored {
        /// Which file.
        file: FileIndex,
        /// Where in it.
        range: ByteRange,
        /// Codecs left out for this chunk.
        filter_mask: u32,
    },
    /// Its encoded bytes are here.
    Inline(&'a [u8]),
    /// All of a file of its own, if there is one, else it was never written: whoever reads it finds out.
    Sought {
        /// Which file.
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
    /// Which file.
    pub file: FileIndex,
    /// Where in it.
    pub range: ByteRange,
    /// Codecs left out for this chunk.
    pub filter_mask: u32,
}

/// The chunks of one grid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Linear indices of the stored chunks, sorted; `None` where chunk `i` is simply entry `i`.
    indices: Option<Vec<u64>>,
    offsets: Vec<u64>,
    lengths: Lengths,
    files: PerChunk,
    masks: PerChunk,
    inline: HashMap<u64, Box<[u8]>>,
    /// Linear indices of chunks in files of their own, sorted, and these files.
    sought: Vec<(u64, FileIndex)>,
    /// Of these files no parts are read.
    are_fetched_whole: bool,
}

/// Bytes of each stored chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// Where no chunk exceeds 4 GiB.
    Narrow(Vec<u32>),
    /// Where one does.
    Wide(Vec<u64>),
}

impl Default for Lengths {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

impl Lengths {
    /// That of one chunk.
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

/// A column that mostly is one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerChunk {
    /// One value for all chunks.
    Same(u32),
    /// One for each.
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
    /// Of stored chunks in any order. Of two entries for one chunk the later one counts.
    pub fn of_chunks(mut chunks: Vec<StoredChunk>) -> Self {
        if !chunks.is_sorted_by(|one, next| one.index < next.index) {
            chunks.sort_by_key(|chunk| chunk.index); // stable: the later of two stays behind
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

    /// Of chunks, by their linear indices in increasing order, that are each a file of its own, if there is such a file;
    /// of far ones no parts are read, for nobody knows beforehand how long they are.
    pub fn of_sought(chunks: Vec<(u64, FileIndex)>, are_far: bool) -> Self {
        Self { sought: chunks, are_fetched_whole: are_far, ..Self::default() }
    }

    /// Whether uncompressed chunks are not read in parts either.
    pub(crate) fn are_fetched_whole(&self) -> bool {
        self.are_fetched_whole
    }

    /// Of columns of equal length, one entry a stored chunk; `indices` are linear ones in strictly ascending order, or
    /// `None` where chunk `i` is simply entry `i`. `None` if the columns are not so, or a chunk ends beyond 2^64.
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

    /// Of one chunk whose encoded bytes the metadata hold.
    pub fn of_inline(bytes: Vec<u8>) -> Self {
        Self { inline: HashMap::from([(0, bytes.into_boxed_slice())]), ..Self::default() }
    }

    /// Of no chunk at all.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Put a chunk's encoded bytes here.
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

    /// The same chunks in files of other numbers, with `codec_count` more codecs, which none skips, before the others.
    #[must_use]
    pub fn moved(&self, number: impl Fn(FileIndex) -> FileIndex, codec_count: u32) -> Self {
        let mask = |mask: u32| mask.checked_shl(codec_count).unwrap_or(0);
        Self { files: self.files.map(number), masks: self.masks.map(mask), ..self.clone() }
    }

    /// How many chunks are stored, inline or sought.
    pub fn chunk_count(&self) -> u64 {
        (self.offsets.len() + self.inline.len() + self.sought.len()) as u64
    }

    /// Encoded bytes of all chunks but those that are sought.
    pub fn stored_nbytes(&self) -> u64 {
        let stored = (0..self.offsets.len()).filter_map(|entry| self.lengths.get(entry));
        let inline = self.inline.values().map(|bytes| bytes.len() as u64);
        stored.chain(inline).fold(0, u64::saturating_add)
    }

    /// Stored chunks in the order of their linear indices; inline and sought ones are not among them.
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

    /// Linear indices of the chunks that are stored, inline or sought, in no order, some maybe twice.
    pub fn indices(&self) -> impl Iterator<Item = u64> + '_ {
        let stored = |entry: usize| match &self.indices {
            None => Some(entry as u64),
            Some(indices) => indices.get(entry).copied(),
        };
        let sought = self.sought.iter().map(|(index, _)| *index);
        (0..self.offsets.len()).filter_map(stored).chain(self.inline.keys().copied()).chain(sought)
    }

    /// Linear indices of the chunks whose encoded bytes are here, ascending.
    pub fn inline_indices(&self) -> Vec<u64> {
        let mut indices: Vec<u64> = self.inline.keys().copied().collect();
        indices.sort_unstable();
        indices
    }

    /// Numbers of the files that stored chunks lie in, each at least once.
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

    /// Memory that the columns take.
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
