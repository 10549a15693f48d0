//! From the keys of chunks to manifests.

use hyperslab_core::{Codec, Manifest, Segment, Unreadable};

use super::hierarchy::{Chunk, ChunkBytes, Hierarchy};
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
}

/// Decimal digits, no sign, no leading zero: other names are other files.
fn plain_number(text: &str) -> Option<u64> {
    let is_plain = text == "0" || text.starts_with(|digit: char| ('1'..='9').contains(&digit));
    text.parse().ok().filter(|_| is_plain && text.bytes().all(|digit| digit.is_ascii_digit()))
}

/// All of an array's chunks.
pub(super) fn segments(
    hierarchy: &Hierarchy,
    path: &str,
    description: &Description,
    codecs: &[Codec],
) -> Result<Vec<Segment>, Unreadable> {
    let Description { shape, chunk_shape, element, fill, .. } = description;
    if shape.contains(&0) {
        return Ok(Vec::new());
    }
    let make = |chunk_shape: &[u64], manifest| {
        gridded(shape, chunk_shape.to_vec(), element, fill, codecs.to_vec(), manifest)
    };
    let mut unit = chunk_shape.as_slice();
    let mut grid = make(unit, Manifest::empty())?.grid; // before its chunks: they are checked against it
    let mut chunks = hierarchy.chunks(path, &description.keys, &grid)?;
    // Indices of shards, one within the other, are together no longer than the outermost shards.
    let mut entries_left = chunks.iter().map(|shard| shard.bytes.length() / 16).fold(0, u64::saturating_add);
    let mut shards = description.shards.as_ref();
    while let Some(level) = shards {
        unit = &level.subchunk_shape;
        let inner = make(unit, Manifest::empty())?.grid;
        chunks = shards::subchunks(hierarchy, level, &grid, &inner, &chunks, &mut entries_left)?;
        (grid, shards) = (inner, level.within.as_deref());
    }
    Ok(vec![make(unit, manifest(chunks))?])
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
