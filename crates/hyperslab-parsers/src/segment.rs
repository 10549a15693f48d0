//! The segment of a whole array. Every format has this except for virtual arrays.

use hyperslab_core::{
    ByteRange, ChunkGrid, Codec, Element, Fill, Manifest, Segment, SegmentAxis, StoredChunk, Unreadable,
};

/// An array's chunks, as one segment. Fails if there cannot be such a grid.
pub(crate) fn gridded(
    shape: &[u64],
    chunk_shape: Vec<u64>,
    element: &Element,
    fill: &Fill,
    codecs: Vec<Codec>,
    manifest: Manifest,
) -> Result<Segment, Unreadable> {
    let grid = ChunkGrid::new(shape.to_vec(), chunk_shape)?;
    let origin = vec![0; shape.len()];
    let axes = SegmentAxis::of_box(&origin, shape, &origin)?;
    Ok(Segment {
        axes,
        grid,
        codecs,
        element: element.clone(),
        plain_edge_chunks: false,
        manifest: manifest.into(),
        fill: fill.clone(),
    })
}

/// The chunk shape of an array that is one chunk.
pub(crate) fn one_chunk(shape: &[u64]) -> Vec<u64> {
    shape.iter().map(|&length| length.max(1)).collect()
}

/// Bytes of a whole array, unless no file can hold them.
pub(crate) fn array_nbytes(shape: &[u64], element: &Element) -> Option<u64> {
    shape.iter().try_fold(element.nbytes(), |product, &length| product.checked_mul(length))
}

/// A chunk that skipped none of its codecs.
pub(crate) fn stored(index: u64, file: u32, range: ByteRange) -> StoredChunk {
    StoredChunk { index, file, range, filter_mask: 0 }
}

/// The error of an array that no file can hold.
pub(crate) fn too_large() -> Unreadable {
    Unreadable::damaged("an array of more than 2^64 bytes")
}
