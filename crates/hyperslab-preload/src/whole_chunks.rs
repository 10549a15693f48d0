//! Chunks that a write covers whole: where they begin in their array, and their encoding.

use hyperslab_archive::{EncodeError, Encoding, Slab, encode_slab};
use hyperslab_core::ChunkGrid;
use hyperslab_engine::codecs::Filter;

use crate::write_reason::Left;

/// The chunks of a box of an array.
#[derive(Clone)]
pub(crate) struct WholeChunks {
    /// The shape of the box and of a chunk.
    pub grid: ChunkGrid,
    /// Where the box begins in the array.
    pub first: Vec<u64>,
    pub filters: Vec<Filter>,
    /// A bit for each filter that may be skipped for a chunk.
    pub optional: u32,
    /// One element, for what a chunk has outside the array.
    pub fill: Vec<u8>,
}

impl WholeChunks {
    /// Where the chunk of this number begins in the array.
    pub fn start(&self, number: u64) -> Option<Vec<u64>> {
        let index = self.grid.chunk_index(number).ok()?;
        let axes = index.iter().zip(self.grid.chunk_shape()).zip(&self.first);
        Some(axes.map(|((at, length), first)| first + at * length).collect())
    }

    /// Whether they have elements of the array in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        let axes = self.first.iter().zip(self.grid.shape()).zip(other.first.iter().zip(other.grid.shape()));
        axes.into_iter()
            .all(|((own, length), (start, others))| *own < start + others && *start < own + length)
    }

    /// Encodes the elements of the box. `take` gets each chunk with its number and the mask of skipped filters, in order, in
    /// the calling thread.
    pub fn encode(
        &self,
        bytes: &[u8],
        threads: usize,
        mut take: impl FnMut(u64, Vec<u8>, u32) -> Result<(), Left>,
    ) -> Result<(), Left> {
        let slab = Slab { bytes, grid: &self.grid, fill: &self.fill };
        let encoding =
            Encoding { filters: &self.filters, threads, leaves_out_fill: false, keeps_bytes: true };
        let done = encode_slab(slab, encoding, |number, chunk| {
            let may_be = chunk.mask & !self.optional == 0;
            take(number as u64, chunk.bytes.filter(|_| may_be).ok_or(Left::Filter)?, chunk.mask)
        });
        done.map_err(|error| match error {
            EncodeError::Taking(why) => why,
            EncodeError::Misfit | EncodeError::Refused(_) => Left::Failed,
        })
    }
}
