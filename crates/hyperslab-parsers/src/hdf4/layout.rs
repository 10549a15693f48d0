//! From the pieces of an object to the chunks of an array.

use hyperslab_core::{ByteRange, Element, Fill, Manifest, Segment, Unreadable};

use super::pieces::{self, Located, Pieces};
use super::{File, chunked};
use crate::error::Error;
use crate::segment::{array_nbytes, gridded, one_chunk, stored, too_large};

const WHAT: &str = "the data of an HDF4 array";
/// Most chunks that linked blocks are cut into.
const MAX_CHUNK_COUNT: u64 = 1 << 22;

/// An array's chunks; the outer error is of bytes that are not held, the inner one of the array.
pub(super) type Segments = Result<Vec<Segment>, Unreadable>;

/// The chunks of an array whose data were located.
pub(super) fn segments(
    file: &File<'_>,
    located: &Located,
    shape: &[u64],
    element: &Element,
    fill: &Fill,
) -> Result<Segments, Error> {
    let made = made(file, located, shape, element, fill);
    match made {
        Err(error) if error.is_not_held() => Err(error),
        Err(error) => Ok(Err(error.into())),
        Ok(segments) => Ok(segments),
    }
}

fn made(
    file: &File<'_>,
    located: &Located,
    shape: &[u64],
    element: &Element,
    fill: &Fill,
) -> Result<Segments, Error> {
    let Some(nbytes) = array_nbytes(shape, element) else {
        return Ok(Err(too_large()));
    };
    if nbytes == 0 {
        return Ok(Ok(Vec::new()));
    }
    match located {
        Located::Nothing => Ok(Ok(Vec::new())), // the array's fill value
        Located::Plain(pieces) if pieces.nbytes() < nbytes => {
            let problem = format!("{} bytes are stored of the {nbytes} that the array has", pieces.nbytes());
            Ok(Err(Unreadable::damaged(problem)))
        }
        Located::Plain(pieces) => {
            let pieces = pieces.truncated(nbytes);
            let (chunk_shape, manifest) = match grid_over(&pieces, shape, element) {
                Some(chunk_shape) => (chunk_shape.clone(), addressed(&pieces, &chunk_shape, element)),
                None => (one_chunk(shape), Manifest::of_inline(pieces.bytes(file, WHAT)?)),
            };
            Ok(gridded(shape, chunk_shape, element, fill, Vec::new(), manifest).map(|segment| vec![segment]))
        }
        Located::Compressed(pieces, coder) => {
            let manifest = match pieces.range() {
                Some(range) => Manifest::of_chunks(vec![stored(0, pieces.file, range)]),
                None => Manifest::of_inline(pieces.bytes(file, WHAT)?),
            };
            let segment =
                gridded(shape, one_chunk(shape), element, fill, coder.codecs(element.nbytes()), manifest);
            Ok(segment.map(|segment| vec![segment]))
        }
        Located::Chunked(chunked) => chunked::segments(file, chunked, shape, element, fill),
    }
}

/// The largest chunks of which none lies in two pieces: some rows along one axis, whole along the axes behind
/// it. `None` where even elements are cut, or where there would be too many chunks.
fn grid_over(pieces: &Pieces, shape: &[u64], element: &Element) -> Option<Vec<u64>> {
    const SMALLEST: u64 = 512;
    let step = pieces.list.iter().fold(0, |step, piece| gcd(step, piece.length));
    if pieces.range().is_some() {
        return Some(one_chunk(shape));
    }
    let is_small = pieces.nbytes() <= pieces::MAX_INLINE_NBYTES;
    for (axis, &length) in shape.iter().enumerate() {
        let behind = shape.get(axis + 1..)?;
        let row_nbytes = array_nbytes(behind, element)?;
        if step % row_nbytes == 0 {
            let rows = gcd(step / row_nbytes, length);
            let mut chunk_shape = vec![1; axis];
            chunk_shape.push(rows);
            chunk_shape.extend(behind);
            let is_worth = rows.saturating_mul(row_nbytes) >= SMALLEST || !is_small;
            let count = pieces.nbytes() / rows.saturating_mul(row_nbytes).max(1);
            return (is_worth && count <= MAX_CHUNK_COUNT).then_some(chunk_shape);
        }
    }
    None
}

/// The manifest of chunks that follow one another in the pieces.
fn addressed(pieces: &Pieces, chunk_shape: &[u64], element: &Element) -> Manifest {
    let chunk_nbytes = array_nbytes(chunk_shape, element).unwrap_or(u64::MAX).max(1);
    let (mut chunks, mut index) = (Vec::new(), 0_u64);
    for piece in &pieces.list {
        for number in 0..piece.length / chunk_nbytes {
            let offset =
                piece.offset.and_then(|offset| offset.checked_add(number.checked_mul(chunk_nbytes)?));
            let range = offset.and_then(|offset| ByteRange::new(offset, chunk_nbytes).ok());
            chunks.extend(range.map(|range| stored(index, pieces.file, range)));
            index += 1;
        }
    }
    Manifest::of_chunks(chunks)
}

fn gcd(first: u64, second: u64) -> u64 {
    let (mut first, mut second) = (first, second);
    while second != 0 {
        (first, second) = (second, first % second);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::super::pieces::Piece;
    use super::*;
    use hyperslab_core::ByteOrder;

    fn pieces(lengths: &[u64]) -> Pieces {
        let list = lengths.iter().zip(1_u64..);
        Pieces { file: 0, list: list.map(|(&length, n)| Piece { offset: Some(n << 20), length }).collect() }
    }

    #[test]
    fn chunks_lie_in_one_piece_each() {
        let element = Element::integer(4, true, ByteOrder::Big);
        let over = |lengths: &[u64]| grid_over(&pieces(lengths), &[12, 100, 10], &element);
        assert_eq!(over(&[48_000]), Some(vec![12, 100, 10]));
        assert_eq!(over(&[16_000, 32_000]), Some(vec![4, 100, 10]));
        assert_eq!(over(&[2_000, 46_000]), Some(vec![1, 50, 10]));
        assert_eq!(over(&[2_001, 45_999]), None);
        let manifest = addressed(&pieces(&[16_000, 32_000]), &[4, 100, 10], &element);
        let offsets: Vec<u64> = manifest.stored().map(|chunk| chunk.range.offset).collect();
        assert_eq!(offsets, [1 << 20, 2 << 20, (2 << 20) + 16_000]);
    }
}
