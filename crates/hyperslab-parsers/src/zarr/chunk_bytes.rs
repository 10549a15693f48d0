//! The chunks of a hierarchy, and the location of their bytes.

use hyperslab_core::{ByteRange, FileIndex};

/// One chunk, or one shard: its linear index in the grid, and its bytes.
pub(super) struct Chunk<'h> {
    pub index: u64,
    pub bytes: ChunkBytes<'h>,
}

/// Where the bytes of a chunk are.
#[derive(Clone, Copy)]
pub(super) enum ChunkBytes<'h> {
    Stored { file: FileIndex, range: ByteRange },
    Inline(&'h [u8]),
}

impl<'h> ChunkBytes<'h> {
    pub fn length(&self) -> u64 {
        match self {
            Self::Stored { range, .. } => range.length,
            Self::Inline(bytes) => bytes.len() as u64,
        }
    }

    /// A part of a whole file. If the file ends before it, reading will report that.
    pub fn beyond(&self, part: ByteRange) -> Option<Self> {
        match self {
            Self::Stored { file, range } if range.offset == 0 => {
                Some(Self::Stored { file: *file, range: part })
            }
            _ => None,
        }
    }

    /// A part of them; `None` if they end before it.
    pub fn part(&self, part: ByteRange) -> Option<Self> {
        if part.offset.checked_add(part.length)? > self.length() {
            return None;
        }
        Some(match self {
            Self::Stored { file, range } => {
                let range = ByteRange::new(range.offset.checked_add(part.offset)?, part.length).ok()?;
                Self::Stored { file: *file, range }
            }
            Self::Inline(bytes) => {
                let (start, stop) = (usize::try_from(part.offset).ok()?, usize::try_from(part.end()).ok()?);
                let bytes: &'h [u8] = bytes.get(start..stop)?;
                Self::Inline(bytes)
            }
        })
    }
}
