//! From the keys of chunks to manifests.

use hyperslab_core::{ChunkGrid, Codec, Manifest, Segment, Unreadable};

use super::chunk_bytes::{Chunk, ChunkBytes};
use super::description::Description;
use super::hierarchy::Hierarchy;
use super::parts::Parts;
use super::shards;
use crate::segment::{gridded, stored};

/// All of an array's chunks in the hierarchy.
pub(super) fn segments(
    hierarchy: &Hierarchy,
    path: &str,
    description: &Description,
) -> Result<Vec<Segment>, Unreadable> {
    let codecs = description.codecs.as_ref().map_err(Clone::clone)?;
    if description.shape.contains(&0) {
        return Ok(Vec::new());
    }
    let grid = outer_grid(description, &description.shape)?; // comes first: chunks are checked against it
    let chunks = hierarchy.chunks(path, &description.keys, &grid)?;
    of_chunks(hierarchy, description, &description.shape, codecs, grid, chunks)
}

/// The grid of what one key holds.
pub(super) fn outer_grid(description: &Description, shape: &[u64]) -> Result<ChunkGrid, Unreadable> {
    Ok(ChunkGrid::new(shape.to_vec(), description.chunk_shape.clone())?)
}

/// The segment of these chunks. Shards become their subchunks, whose indexes `parts` reads.
pub(super) fn of_chunks(
    parts: &dyn Parts,
    description: &Description,
    shape: &[u64],
    codecs: &[Codec],
    mut grid: ChunkGrid,
    mut chunks: Vec<Chunk<'_>>,
) -> Result<Vec<Segment>, Unreadable> {
    // Nested indexes of shards are together no longer than the outermost shards.
    let mut entries_left = chunks.iter().map(|shard| shard.bytes.length() / 16).fold(0, u64::saturating_add);
    let mut shards = description.shards.as_ref();
    while let Some(level) = shards {
        let inner = ChunkGrid::new(shape.to_vec(), level.subchunk_shape.clone())?;
        chunks = shards::subchunks(parts, level, &grid, &inner, &chunks, &mut entries_left)?;
        (grid, shards) = (inner, level.within.as_deref());
    }
    segment(description, shape, codecs, grid.chunk_shape(), manifest(chunks))
}

/// The array's only segment.
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
