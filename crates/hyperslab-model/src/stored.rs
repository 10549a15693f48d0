//! The accessed array, as far as costs depend on it: its layout, which chunks exist, and where they are.

use std::sync::Arc;

use hyperslab_core::{ChunkGrid, Manifest};

use crate::device::Unit;
use crate::error::ModelError;

/// Which chunks exist before the first access.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunks {
    /// None: the accesses create them.
    Missing,
    /// All of them, written one after another in row-major order by a simulated writer.
    RowMajor,
    /// Those of a real file.
    Listed(Arc<Manifest>),
}

/// An array in a layout.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its shape, and the shape of its chunks.
    pub grid: ChunkGrid,
    /// Width of an element.
    pub element_nbytes: u64,
    /// Decoded bytes per stored byte; `None` without codecs: any part of a chunk can then be read.
    pub ratio: Option<f64>,
    /// Which chunks exist.
    pub chunks: Chunks,
}

impl Stored {
    /// Checks the numbers.
    pub fn new(
        grid: ChunkGrid,
        element_nbytes: u64,
        ratio: Option<f64>,
        chunks: Chunks,
    ) -> Result<Self, ModelError> {
        if element_nbytes == 0 {
            return Err(ModelError::parameter("element_nbytes", 0, "give the width of an element in bytes"));
        }
        if let Some(ratio) = ratio.filter(|ratio| !(ratio.is_finite() && *ratio > 0.0)) {
            return Err(ModelError::parameter("ratio", ratio, "give decoded bytes per stored byte, above 0"));
        }
        let whole = u128::from(grid.chunk_count())
            * u128::from(grid.chunk_element_count())
            * u128::from(element_nbytes);
        if whole > u128::from(u64::MAX >> 2) {
            return Err(hyperslab_core::Error::TooLarge { what: "the array in bytes" }.into());
        }
        Ok(Self { grid, element_nbytes, ratio, chunks })
    }

    /// The same array, grown along its first axis to this length.
    pub fn grow(&mut self, length: u64) -> Result<(), ModelError> {
        let mut shape = self.grid.shape().to_vec();
        let Some(first) = shape.first_mut().filter(|first| **first <= length) else {
            return Err(ModelError::parameter("length", length, "arrays grow along their first axis"));
        };
        *first = length;
        self.grid = ChunkGrid::new(shape, self.grid.chunk_shape().to_vec())?;
        Ok(())
    }

    /// Decoded bytes of a chunk. Edge chunks are stored whole.
    pub fn chunk_nbytes(&self) -> u64 {
        self.grid.chunk_element_count() * self.element_nbytes
    }

    /// Stored bytes of a chunk that is not in a real file.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn stored_nbytes(&self) -> u64 {
        let nbytes = self.chunk_nbytes();
        self.ratio.map_or(nbytes, |ratio| ((nbytes as f64 / ratio).ceil() as u64).max(1))
    }

    /// Bytes of all chunks, if their sizes are known beforehand; otherwise the maximum.
    pub(crate) fn most_nbytes(&self, unit: Unit) -> u64 {
        let is_known = unit == Unit::Chunk && !matches!(self.chunks, Chunks::Listed(_));
        if is_known { self.grid.chunk_count().saturating_mul(self.stored_nbytes()) } else { u64::MAX }
    }

    /// Whether chunks have codecs.
    pub fn is_encoded(&self) -> bool {
        self.ratio.is_some()
    }
}
