//! An array in one piece in a file of its own: netCDF-3, FITS, npy.

use hyperslab_core::{ByteRange, ChunkGrid, Selection};

use crate::access::Operation;
use crate::device::{Device, PageCacheSize, Unit};
use crate::error::ModelError;
use crate::request::{Purpose, Request, Watch};
use crate::stored::Stored;
use crate::variables::Variables;

#[derive(Clone, Debug)]
pub(crate) struct OpenFlat {
    /// The array as one chunk.
    grid: ChunkGrid,
    element_nbytes: u64,
    device: Device,
    is_open: bool,
}

impl OpenFlat {
    pub fn new(stored: &Stored, pages: PageCacheSize) -> Result<Self, ModelError> {
        let shape = stored.grid.shape().to_vec();
        let whole = shape.iter().map(|&length| length.max(1)).collect();
        Ok(Self {
            grid: ChunkGrid::new(shape, whole)?,
            element_nbytes: stored.element_nbytes,
            device: Device::new(pages, Unit::Page, 1, u64::MAX),
            is_open: false,
        })
    }

    pub fn access(
        &mut self,
        operation: Operation,
        selection: &Selection,
        watch: &mut impl Watch,
    ) -> Result<Variables, ModelError> {
        let mut variables = Variables::default();
        if !std::mem::replace(&mut self.is_open, true) {
            variables.n_open += 1;
        }
        let width = self.element_nbytes;
        for overlap in self.grid.overlaps(selection)? {
            variables.n_chunk += 1;
            for run in overlap.runs() {
                let range = ByteRange { offset: run.chunk_offset * width, length: run.length * width };
                variables.n_memcpy += 1;
                variables.s_memcpy += range.length;
                let purpose = match operation {
                    Operation::Read => {
                        self.device.read(0, range, &mut variables);
                        variables.n_rrequest += 1;
                        variables.s_rrequest += range.length;
                        Purpose::ReadPart
                    }
                    Operation::Write => {
                        self.device.write(0, range, &mut variables);
                        variables.n_wrequest += 1;
                        variables.s_wrequest += range.length;
                        Purpose::WritePart
                    }
                };
                watch.saw(Request { purpose, chunk: 0, range });
            }
        }
        Ok(variables)
    }
}
