//! Gathers and encodes the chunks of arrays in memory, with several threads.

use hyperslab_core::{ChunkBox, ChunkGrid};
use hyperslab_engine::codecs::{self, Filter};
use hyperslab_engine::{default_thread_count, in_shares};

/// Below this many bytes, starting threads takes longer than the work.
pub(crate) const FEW_NBYTES: usize = 1 << 18;

/// Gathers whole chunks of an array, by linear index, and pads them with the fill value outside the array. `bytes`
/// holds all elements of the array in C order, `fill` holds one element. `None` if memory does not suffice.
pub fn gather_chunks(bytes: &[u8], grid: &ChunkGrid, numbers: &[i64], fill: &[u8]) -> Option<Vec<u8>> {
    let width = fill.len();
    let chunk_nbytes = chunk_nbytes(grid, width)?;
    let mut out = vec![0_u8; numbers.len().checked_mul(chunk_nbytes)?];
    let nbytes = out.len();
    in_shares(&mut out, chunk_nbytes, thread_count(nbytes), |first, share| {
        for (&number, out) in numbers[first..].iter().zip(share.chunks_exact_mut(chunk_nbytes.max(1))) {
            let chunk = u64::try_from(number).ok().and_then(|number| chunk_box(grid, number));
            if let Some(chunk) = chunk {
                gather_chunk(bytes, grid, &chunk, fill, out);
            }
        }
    });
    Some(out)
}

/// Gathers one chunk.
pub(crate) fn gather_chunk(bytes: &[u8], grid: &ChunkGrid, chunk: &ChunkBox, fill: &[u8], out: &mut [u8]) {
    let width = fill.len();
    if chunk.valid_shape != chunk.stored_shape {
        out.chunks_exact_mut(width.max(1)).for_each(|element| element.copy_from_slice(fill));
    }
    let origin = vec![0; grid.shape().len()];
    let valid = &chunk.valid_shape;
    let outer = outer_count(valid, grid.shape()).max(outer_count(valid, grid.chunk_shape()));
    let from = Runs::new(grid.shape(), &chunk.start, valid, outer, width);
    let to = Runs::new(grid.chunk_shape(), &origin, valid, outer, width);
    for (from, to) in from.zip(to) {
        if let (Some(from), Some(to)) = (bytes.get(from), out.get_mut(to)) {
            to.copy_from_slice(from);
        }
    }
}

/// Stored chunks of equal length, and for each the filters that were skipped.
pub fn encoded_chunks(chunks: &[u8], chunk_nbytes: usize, filters: &[Filter]) -> Vec<Option<(Vec<u8>, u32)>> {
    let mut out = vec![None; chunks.len() / chunk_nbytes.max(1)];
    in_shares(&mut out, 1, thread_count(chunks.len()), |first, share| {
        let chunks = chunks.chunks_exact(chunk_nbytes.max(1)).skip(first);
        share.iter_mut().zip(chunks).for_each(|(out, chunk)| *out = codecs::encode(chunk, filters));
    });
    out
}

fn thread_count(nbytes: usize) -> usize {
    if nbytes < FEW_NBYTES { 1 } else { default_thread_count() }
}

/// Bytes of a whole chunk.
pub(crate) fn chunk_nbytes(grid: &ChunkGrid, width: usize) -> Option<usize> {
    usize::try_from(grid.chunk_element_count()).ok()?.checked_mul(width)
}

pub(crate) fn chunk_box(grid: &ChunkGrid, number: u64) -> Option<ChunkBox> {
    grid.chunk_index(number).and_then(|index| grid.chunk_box(&index)).ok()
}

/// How many axes of a box need a loop. The remaining axes are contiguous in an array of this shape, because the box
/// spans all of them except possibly the first.
pub(crate) fn outer_count(valid_shape: &[u64], shape: &[u64]) -> usize {
    let pairs = valid_shape.iter().zip(shape).rev();
    let whole_count = pairs.take_while(|(valid, length)| valid == length).count();
    valid_shape.len().saturating_sub(whole_count + 1)
}

/// The bytes of a box of an array, in C order: one range for each row, or a single range if the rows are contiguous.
pub(crate) struct Runs<'a> {
    shape: &'a [u64],
    start: &'a [u64],
    outer: &'a [u64],
    position: Vec<u64>,
    left: u64,
    run_elements: u64,
    width: usize,
}

impl<'a> Runs<'a> {
    /// Loops over `outer_count` axes; a run is a box of the other axes.
    pub(crate) fn new(
        shape: &'a [u64],
        start: &'a [u64],
        valid_shape: &'a [u64],
        outer_count: usize,
        width: usize,
    ) -> Self {
        let (outer, inner) = valid_shape.split_at(outer_count.min(valid_shape.len()));
        let left = if valid_shape.contains(&0) { 0 } else { outer.iter().product() };
        Self {
            shape,
            start,
            outer,
            position: vec![0; outer.len()],
            left,
            run_elements: inner.iter().product(),
            width,
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = std::ops::Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let within = self.position.iter().copied().chain(std::iter::repeat(0));
        let axes = self.start.iter().zip(self.shape).zip(within);
        let first = axes.fold(0, |at, ((start, length), within)| at * length + start + within);
        for (position, length) in self.position.iter_mut().zip(self.outer).rev() {
            *position += 1;
            if *position < *length {
                break;
            }
            *position = 0;
        }
        let start = usize::try_from(first).ok()?.checked_mul(self.width)?;
        Some(start..start.checked_add(usize::try_from(self.run_elements).ok()?.checked_mul(self.width)?)?)
    }
}
