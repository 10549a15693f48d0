//! An array cut into chunks of one shape.

use crate::error::{Error, checked_product, same_ndim};
use crate::row_major;

/// The regular grid of chunks over an array. Chunks at the array's end are stored whole, so a part of them is unused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChunkGrid {
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
}

/// Where a chunk lies in its array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkBox {
    /// The index in the array of the chunk's first element.
    pub start: Vec<u64>,
    /// The shape that is encoded: the grid's chunk shape.
    pub stored_shape: Vec<u64>,
    /// The shape of the part inside the array; smaller than the stored shape for an edge chunk.
    pub valid_shape: Vec<u64>,
}

impl ChunkGrid {
    /// The grid of an array of `shape` in chunks of `chunk_shape`.
    pub fn new(shape: Vec<u64>, chunk_shape: Vec<u64>) -> Result<Self, Error> {
        same_ndim("the chunk shape", chunk_shape.len(), "the array's shape", shape.len())?;
        if let Some(axis) = chunk_shape.iter().position(|&length| length == 0) {
            return Err(Error::Zero { what: "chunk shape", axis });
        }
        let stored = shape.iter().zip(&chunk_shape).map(|(&length, &chunk)| {
            // An overflow here saturates to a length that checked_product refuses.
            length.div_ceil(chunk).max(1).saturating_mul(chunk)
        });
        checked_product("the array in whole chunks", stored)?;
        Ok(Self { shape, chunk_shape })
    }

    /// The array's shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The shape of every stored chunk.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.chunk_shape
    }

    /// How many chunks there are along each axis.
    pub fn grid_shape(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk_shape).map(|(length, &chunk)| length.div_ceil(chunk)).collect()
    }

    /// How many chunks there are.
    pub fn chunk_count(&self) -> u64 {
        self.grid_shape().into_iter().product()
    }

    /// How many elements a stored chunk has.
    pub fn chunk_element_count(&self) -> u64 {
        self.chunk_shape.iter().product()
    }

    /// The position of a chunk in the row-major order of chunks.
    pub fn linear_index(&self, chunk_index: &[u64]) -> Result<u64, Error> {
        self.check_chunk(chunk_index)?;
        Ok(row_major::ravel(chunk_index, &self.grid_shape()))
    }

    /// The chunk at a position in the row-major order of chunks.
    pub fn chunk_index(&self, linear: u64) -> Result<Vec<u64>, Error> {
        let count = self.chunk_count();
        if linear >= count {
            return Err(Error::NoSuchLinearChunk { linear, count });
        }
        Ok(row_major::unravel(linear, &self.grid_shape()))
    }

    /// Where a chunk lies in the array.
    pub fn chunk_box(&self, chunk_index: &[u64]) -> Result<ChunkBox, Error> {
        self.check_chunk(chunk_index)?;
        let start: Vec<u64> =
            chunk_index.iter().zip(&self.chunk_shape).map(|(index, chunk)| index * chunk).collect();
        let valid_shape =
            (0..start.len()).map(|axis| self.chunk_shape[axis].min(self.shape[axis] - start[axis])).collect();
        Ok(ChunkBox { start, stored_shape: self.chunk_shape.clone(), valid_shape })
    }

    /// The linear index of the chunk that holds a point, and the point's position in that chunk's buffer.
    pub(crate) fn locate(&self, point: &[u64]) -> (u64, u64) {
        let axes = point.iter().zip(self.shape.iter().zip(&self.chunk_shape));
        axes.fold((0, 0), |(linear, offset), (index, (length, &chunk))| {
            (linear * length.div_ceil(chunk) + index / chunk, offset * chunk + index % chunk)
        })
    }

    pub(crate) fn check_chunk(&self, chunk_index: &[u64]) -> Result<(), Error> {
        same_ndim("the chunk index", chunk_index.len(), "the grid", self.shape.len())?;
        let grid_shape = self.grid_shape();
        match (0..grid_shape.len()).find(|&axis| chunk_index[axis] >= grid_shape[axis]) {
            None => Ok(()),
            Some(axis) => {
                Err(Error::NoSuchChunk { axis, index: chunk_index[axis], length: grid_shape[axis] })
            }
        }
    }
}
