//! Parts of files that parsers read on their own, many at a time: the indexes of shards.

use hyperslab_core::{ByteRange, FileIndex};

use super::chunk_bytes::ChunkBytes;
use crate::error::Error;
use crate::error::FetchError;

/// Reads parts of files.
pub trait Parts {
    /// The bytes of several ranges of files. If one fails, the others are not affected.
    fn read(&self, asked: &[(FileIndex, ByteRange)]) -> Vec<Result<Vec<u8>, FetchError>>;
}

/// The same, if some bytes may be inline.
pub(super) fn read_each(parts: &dyn Parts, asked: &[ChunkBytes<'_>]) -> Vec<Result<Vec<u8>, Error>> {
    let stored = |bytes: &ChunkBytes<'_>| match bytes {
        ChunkBytes::Stored { file, range } => Some((*file, *range)),
        ChunkBytes::Inline(_) => None,
    };
    let wanted: Vec<(FileIndex, ByteRange)> = asked.iter().filter_map(stored).collect();
    let mut read = if wanted.is_empty() { Vec::new() } else { parts.read(&wanted) }.into_iter();
    let mut each = |bytes: &ChunkBytes<'_>| match bytes {
        ChunkBytes::Inline(bytes) => Ok(bytes.to_vec()),
        ChunkBytes::Stored { range, .. } => match read.next() {
            Some(Ok(bytes)) if bytes.len() as u64 == range.length => Ok(bytes),
            Some(Err(error)) => Err(error.into()),
            _ => Err(Error::Fetch(FetchError("a part of a file came incomplete".to_owned()))),
        },
    };
    asked.iter().map(&mut each).collect()
}
