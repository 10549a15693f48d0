//! From the keys of chunks to manifests.

use hyperslab_core::{ChunkGrid, Codec, Manifest, Segment, Unreadable};

use super::hierarchy::{Chunk, ChunkBytes, Hierarchy};
use super::parts::Parts;
use super::{Description, shards};
use crate::segment::{gridded, stored};

/// How the keys of an array's chunks look.
pub(super) struct Keys {
    /// What stands before the first number.
    pub start: String,
    /// What stands between numbers.
    pub separator: String,
    /// The only key of an array without axes.
    pub scalar: String,
}

impl Keys {
    /// The chunk that a key names, if it does name one.
    pub fn chunk_index(&self, key: &str, ndim: usize) -> Option<Vec<u64>> {
        if ndim == 0 {
            // VirtualiZarr 2.5 writes references to scalars without a key.
            return (key == self.scalar || key.is_empty()).then(Vec::new);
        }
        let numbers = key.strip_prefix(self.start.as_str())?.split(self.separator.as_str());
        let index: Vec<u64> = numbers.map(plain_number).collect::<Option<_>>()?;
        (index.len() == ndim).then_some(index)
    }

    /// The key of a chunk.
    pub fn key(&self, chunk_index: &[u64]) -> String {
        if chunk_index.is_empty() {
            return self.scalar.clone();
        }
        let numbers: Vec<String> = chunk_index.iter().map(u64::to_string).collect();
        format!("{}{}", self.start, numbers.join(&self.separator))
    }
}

/// Decimal digits, no sign, no leading zero: other names are other files.
fn plain_number(text: &str) -> Option<u64> {
    let is_plain = text == "0" || text.starts_with(|digit: char| ('1'..='9').contains(&digit));
    text.parse().ok().filter(|_| is_plain && text.bytes().all(|digit| digit.is_ascii_digit()))
}

/// All of an array's chunks, as its hierarchy has them.
pub(super) fn segments(
    hierarchy: &Hierarchy,
    path: &str,
    description: &Description,
) -> Result<Vec<Segment>, Unreadable> {
    let codecs = description.codecs.as_ref().map_err(Clone::clone)?;
    if description.shape.contains(&0) {
        return Ok(Vec::new());
    }
    let grid = outer_grid(description, &description.shape)?; // before its chunks: they are checked against it
    let chunks = hierarchy.chunks(path, &description.keys, &grid)?;
    of_chunks(hierarchy, description, &description.shape, codecs, grid, chunks)
}

/// The grid of what one key holds.
pub(super) fn outer_grid(description: &Description, shape: &[u64]) -> Result<ChunkGrid, Unreadable> {
    Ok(ChunkGrid::new(shape.to_vec(), description.chunk_shape.clone())?)
}

/// The segment of these chunks; of shards their subchunks, found in the indices that `parts` reads.
pub(super) fn of_chunks(
    parts: &dyn Parts,
    description: &Description,
    shape: &[u64],
    codecs: &[Codec],
    mut grid: ChunkGrid,
    mut chunks: Vec<Chunk<'_>>,
) -> Result<Vec<Segment>, Unreadable> {
    // Indices of shards, one within the other, are together no longer than the outermost shards.
    let mut entries_left = chunks.iter().map(|shard| shard.bytes.length() / 16).fold(0, u64::saturating_add);
    let mut shards = description.shards.as_ref();
    while let Some(level) = shards {
        let inner = ChunkGrid::new(shape.to_vec(), level.subchunk_shape.clone())?;
        chunks = shards::subchunks(parts, level, &grid, &inner, &chunks, &mut entries_left)?;
        (grid, shards) = (inner, level.within.as_deref());
    }
    segment(description, shape, codecs, grid.chunk_shape(), manifest(chunks))
}

/// One segment, the array's.
pub(super) fn segment(
    description: &Description,
    shape: &[u64],
    codecs: &[Codec],
    chunk_shape: &[u64],
    manifest: Manifest,
) -> Result<Vec<Segment>, Unreadable> {
    let Description { element, fill, .. } = description;
    Ok(vec![gridded(shape, chunk_shape.to_vec(), element, fill, codecs.to_vec(), manifest)?])
}

fn manifest(chunks: Vec<Chunk<'_>>) -> Manifest {
    let (mut in_files, mut inline) = (Vec::new(), Vec::new());
    for Chunk { index, bytes } in chunks {
        match bytes {
            ChunkBytes::Stored { file, range } => in_files.push(stored(index, file, range)),
            ChunkBytes::Inline(bytes) => inline.push((index, bytes.to_vec())),
        }
    }
    let mut manifest = Manifest::of_chunks(in_files);
    for (index, bytes) in inline {
        manifest.insert_inline(index, bytes);
    }
    manifest
}
