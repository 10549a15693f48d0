//! Linked blocks in Hyrax's documents of HDF4 files. `block` elements are an array in several pieces; `chunk` elements
//! with a `LinkedBlockIndex` are one chunk in several pieces. The pieces of each are in order.

use std::collections::BTreeMap;

use hyperslab_core::{ByteRange, Codec, Element, Fill, Manifest, Segment, Unreadable};

use super::xml::{Node, numbers};
use crate::pieces::{Piece, Pieces, addressed, grid_over};
use crate::segment::{array_nbytes, gridded, one_chunk, stored, too_large};

/// A chunk: its position and its bytes.
type Placed = (Box<[u64]>, ByteRange);

/// The data file's number; see `Document`.
pub(super) const DATA_FILE: u32 = 1;

/// The attribute with the number of a piece within its chunk.
const PART: &str = "LinkedBlockIndex";

/// The pieces of an array, if it is in `block` elements.
pub(super) fn blocks(of: &[Option<&Node>]) -> Result<Option<Pieces>, Unreadable> {
    let blocks: Vec<&Node> = of.iter().flatten().flat_map(|node| node.children("block")).collect();
    if blocks.is_empty() {
        return Ok(None);
    }
    let mut pieces = Pieces { file: DATA_FILE, list: Vec::new() };
    for block in blocks {
        pieces.push(piece(block)?);
    }
    Ok(Some(pieces))
}

/// The segment of an array in pieces.
pub(super) fn segments(
    pieces: &Pieces,
    shape: &[u64],
    element: &Element,
    fill: &Fill,
    codecs: Vec<Codec>,
) -> Result<Vec<Segment>, Unreadable> {
    let nbytes = array_nbytes(shape, element).ok_or_else(too_large)?;
    let is_encoded = !codecs.is_empty();
    if pieces.nbytes() < nbytes && !is_encoded {
        let problem = format!("{} of {nbytes} bytes are in its linked blocks", pieces.nbytes());
        return Err(Unreadable::damaged(problem));
    }
    let pieces = if is_encoded { pieces.clone() } else { pieces.truncated(nbytes) };
    let (chunk_shape, manifest) = match pieces.range() {
        Some(range) => (one_chunk(shape), Manifest::of_chunks(vec![stored(0, DATA_FILE, range)])),
        None if is_encoded => return Err(Unreadable::unsupported("an encoded array in linked blocks")),
        None => {
            let chunk_shape = grid_over(&pieces, shape, element, 1);
            let cut = || Unreadable::unsupported("an array in linked blocks that end within an element");
            let chunk_shape = chunk_shape.ok_or_else(cut)?;
            let manifest = addressed(&pieces, &chunk_shape, element);
            (chunk_shape, manifest)
        }
    };
    Ok(vec![gridded(shape, chunk_shape, element, fill, codecs, manifest)?])
}

/// The chunks in several pieces: their positions, and the range that the pieces form.
pub(super) fn chunks(of: &[Option<&Node>]) -> Result<Vec<Placed>, Unreadable> {
    let mut found: BTreeMap<Box<[u64]>, Pieces> = BTreeMap::new();
    let parts = of.iter().flatten().flat_map(|node| node.children("chunk"));
    for part in parts.filter(|part| part.attribute(PART).is_some()) {
        let position = numbers(part.attribute("chunkPositionInArray").unwrap_or_default());
        let position =
            position.ok_or_else(|| Unreadable::damaged("a chunk's position is not a list of numbers"))?;
        let pieces = found.entry(position);
        pieces.or_insert_with(|| Pieces { file: DATA_FILE, list: Vec::new() }).push(piece(part)?);
    }
    let whole = |(position, pieces): (Box<[u64]>, Pieces)| {
        let apart = || Unreadable::unsupported("a chunk in linked blocks that are not contiguous");
        Ok((position, pieces.range().ok_or_else(apart)?))
    };
    found.into_iter().map(whole).collect()
}

fn piece(node: &Node) -> Result<Piece, Unreadable> {
    if node.attribute("href").is_some() {
        return Err(Unreadable::unsupported("a linked block that names a file"));
    }
    let number = |name: &str| node.attribute(name).and_then(|text| text.trim().parse().ok());
    let range = number("offset").zip(number("nBytes"));
    let range = range.and_then(|(offset, length)| ByteRange::new(offset, length).ok());
    let range = range.ok_or_else(|| Unreadable::damaged("a linked block without a range of bytes"))?;
    Ok(Piece { offset: Some(range.offset), length: range.length })
}
