//! Bytes of an array in several pieces, one after another: linked blocks.

use hyperslab_core::{ByteRange, Element, Manifest};

use crate::segment::{array_nbytes, one_chunk, stored};

/// The most chunks that pieces are cut into.
const MAX_CHUNK_COUNT: u64 = 1 << 22;

/// Consecutive bytes of an object. Without an offset, they were never written and are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub offset: Option<u64>,
    pub length: u64,
}

/// The bytes of an object, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pieces {
    /// The file's number in manifests.
    pub file: u32,
    pub list: Vec<Piece>,
}

impl Pieces {
    /// One piece.
    pub fn one(file: u32, range: ByteRange) -> Self {
        Self { file, list: vec![Piece { offset: Some(range.offset), length: range.length }] }
    }

    /// Adds a piece. Merges pieces that are contiguous in the file.
    pub fn push(&mut self, piece: Piece) {
        if piece.length == 0 {
            return;
        }
        match self.list.last_mut() {
            Some(last) if follows(last, &piece) => last.length = last.length.saturating_add(piece.length),
            _ => self.list.push(piece),
        }
    }

    /// How many bytes there are.
    pub fn nbytes(&self) -> u64 {
        self.list.iter().fold(0, |sum, piece| sum.saturating_add(piece.length))
    }

    /// The first `nbytes` of them, if there are more.
    pub fn truncated(&self, nbytes: u64) -> Self {
        let mut left = nbytes;
        let mut list = Vec::new();
        for piece in &self.list {
            let length = piece.length.min(left);
            left -= length;
            if length > 0 {
                list.push(Piece { length, ..*piece });
            }
        }
        Self { file: self.file, list }
    }

    /// The range, if there is only one.
    pub fn range(&self) -> Option<ByteRange> {
        match self.list.as_slice() {
            [Piece { offset: Some(offset), length }] => ByteRange::new(*offset, *length).ok(),
            _ => None,
        }
    }
}

fn follows(last: &Piece, piece: &Piece) -> bool {
    match (last.offset, piece.offset) {
        (Some(offset), Some(next)) => offset.checked_add(last.length) == Some(next),
        (None, None) => true,
        _ => false,
    }
}

/// The largest chunks that each lie in a single piece: some rows along one axis, complete along the axes after it.
/// `None` if even elements are cut, if chunks would have fewer than `least` bytes, or if there would be too many.
pub(crate) fn grid_over(pieces: &Pieces, shape: &[u64], element: &Element, least: u64) -> Option<Vec<u64>> {
    let step = pieces.list.iter().fold(0, |step, piece| gcd(step, piece.length));
    if pieces.range().is_some() {
        return Some(one_chunk(shape));
    }
    for (axis, &length) in shape.iter().enumerate() {
        let behind = shape.get(axis + 1..)?;
        let row_nbytes = array_nbytes(behind, element)?;
        if step % row_nbytes == 0 {
            let rows = gcd(step / row_nbytes, length);
            let mut chunk_shape = vec![1; axis];
            chunk_shape.push(rows);
            chunk_shape.extend(behind);
            let chunk_nbytes = rows.saturating_mul(row_nbytes);
            let count = pieces.nbytes() / chunk_nbytes.max(1);
            return (chunk_nbytes >= least && count <= MAX_CHUNK_COUNT).then_some(chunk_shape);
        }
    }
    None
}

/// The manifest of consecutive chunks in the pieces.
pub(crate) fn addressed(pieces: &Pieces, chunk_shape: &[u64], element: &Element) -> Manifest {
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
    use super::*;
    use hyperslab_core::ByteOrder;

    fn pieces(lengths: &[u64]) -> Pieces {
        let list = lengths.iter().zip(1_u64..);
        Pieces { file: 0, list: list.map(|(&length, n)| Piece { offset: Some(n << 20), length }).collect() }
    }

    #[test]
    fn chunks_lie_in_one_piece_each() {
        let element = Element::integer(4, true, ByteOrder::Big);
        let over = |lengths: &[u64]| grid_over(&pieces(lengths), &[12, 100, 10], &element, 512);
        assert_eq!(over(&[48_000]), Some(vec![12, 100, 10]));
        assert_eq!(over(&[16_000, 32_000]), Some(vec![4, 100, 10]));
        assert_eq!(over(&[2_000, 46_000]), Some(vec![1, 50, 10]));
        assert_eq!(over(&[2_001, 45_999]), None);
        assert_eq!(over(&[4, 47_996]), None);
        let manifest = addressed(&pieces(&[16_000, 32_000]), &[4, 100, 10], &element);
        let offsets: Vec<u64> = manifest.stored().map(|chunk| chunk.range.offset).collect();
        assert_eq!(offsets, [1 << 20, 2 << 20, (2 << 20) + 16_000]);
    }
}
