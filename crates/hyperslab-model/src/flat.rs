//! An array in one piece: netCDF-3, FITS and npy, in a file of its own; or HDF5 without chunks.

use hyperslab_core::{ByteRange, ChunkGrid, Selection};

use crate::device::{Device, PageCacheSize, Unit};
use crate::error::ModelError;
use crate::hdf5::Hdf5;
use crate::index::kind::IndexKind;
use crate::operation::Operation;
use crate::request::{Purpose, Request, Watch};
use crate::sieve::Sieve;
use crate::stored::{Chunks, Stored};
use crate::variables::Variables;

/// Where HDF5 puts an array without chunks, if it is the first of a file.
const FIRST_ARRAY_OFFSET: u64 = 2048;

#[derive(Clone, Debug)]
pub(crate) struct OpenFlat {
    /// The array as one chunk.
    grid: ChunkGrid,
    element_nbytes: u64,
    device: Device,
    is_open: bool,
    /// Where the bytes of the array in the file end so far.
    end: u64,
    hdf5: Option<InHdf5>,
}

/// How HDF5 accesses an array without chunks.
#[derive(Clone, Debug)]
struct InHdf5 {
    sieve: Option<Sieve>,
    /// Whether the array has its space in the file. It gets it with the first write.
    is_made: bool,
    /// Whether the array is in its object header: it is in memory while it is open.
    is_compact: bool,
    /// Whether the header was changed.
    is_changed: bool,
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
            end: u64::MAX,
            hdf5: None,
        })
    }

    /// The same in an HDF5 file.
    pub fn in_hdf5(stored: &Stored, hdf5: &Hdf5, pages: PageCacheSize) -> Result<Self, ModelError> {
        if let Some(ratio) = stored.ratio {
            return Err(ModelError::parameter("ratio", ratio, "HDF5 has codecs only for arrays with chunks"));
        }
        let open = Self::new(stored, pages)?;
        let nbytes = open.grid.chunk_element_count() * stored.element_nbytes;
        let is_made = stored.chunks != Chunks::Missing;
        let end = if is_made { u64::MAX } else { 0 };
        Ok(Self {
            device: open.device.with_read_ahead(FIRST_ARRAY_OFFSET, nbytes.min(end)),
            is_open: true,
            end,
            hdf5: Some(InHdf5 {
                sieve: (!hdf5.mpi_writing).then(|| Sieve::new(nbytes)),
                is_made,
                is_compact: hdf5.index == IndexKind::Compact,
                is_changed: false,
            }),
            ..open
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
        if let Some(hdf5) = &mut self.hdf5 {
            hdf5.is_made |= operation == Operation::Write;
            if !hdf5.is_made {
                variables.n_chunk = self.grid.totals(selection)?.chunk_count;
                return Ok(variables);
            }
        }
        let width = self.element_nbytes;
        for overlap in self.grid.overlaps(selection)? {
            variables.n_chunk += 1;
            let runs = if self.hdf5.is_some() { overlap.block_runs() } else { overlap.runs() };
            for run in runs {
                let range = ByteRange { offset: run.chunk_offset * width, length: run.length * width };
                self.copy(operation, range, &mut variables, watch);
            }
        }
        Ok(variables)
    }

    /// Writes what was changed, as closing the file does.
    pub fn flush(&mut self, watch: &mut impl Watch) -> Variables {
        let mut variables = Variables::default();
        if let Some(InHdf5 { is_compact: true, is_changed, .. }) = &mut self.hdf5 {
            variables.n_windex += u64::from(std::mem::take(is_changed));
        } else if let Some(InHdf5 { sieve: Some(sieve), .. }) = &mut self.hdf5 {
            sieve.flush(|operation, range| {
                request(&mut self.device, &mut self.end, operation, range, &mut variables, watch);
            });
        }
        variables
    }

    /// Closes the file and opens it again: the library forgets what it has cached, the system does not.
    pub fn reopen(&mut self, watch: &mut impl Watch) -> Variables {
        let variables = self.flush(watch);
        self.device.reopen();
        match &mut self.hdf5 {
            Some(InHdf5 { sieve, .. }) => *sieve = sieve.take().map(Sieve::emptied),
            None => self.is_open = false,
        }
        variables
    }

    /// Closes the array and opens it again: HDF5 has a sieve buffer for each open array.
    pub fn reopen_array(&mut self, watch: &mut impl Watch) -> Variables {
        match &self.hdf5 {
            Some(InHdf5 { is_compact: false, .. }) => {}
            _ => return Variables::default(),
        }
        let variables = self.flush(watch);
        if let Some(InHdf5 { sieve, .. }) = &mut self.hdf5 {
            *sieve = sieve.take().map(Sieve::emptied);
        }
        variables
    }

    fn copy(
        &mut self,
        operation: Operation,
        run: ByteRange,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) {
        variables.n_memcpy += 1;
        variables.s_memcpy += run.length;
        match operation {
            Operation::Read => {
                variables.n_rrequest += 1;
                variables.s_rrequest += run.length;
            }
            Operation::Write => {
                variables.n_wrequest += 1;
                variables.s_wrequest += run.length;
            }
        }
        if let Some(InHdf5 { is_compact: true, is_changed, .. }) = &mut self.hdf5 {
            *is_changed |= operation == Operation::Write;
            return;
        }
        let mut ask =
            |operation, range| request(&mut self.device, &mut self.end, operation, range, variables, watch);
        match &mut self.hdf5 {
            Some(InHdf5 { sieve: Some(sieve), .. }) => sieve.access(operation, run, ask),
            _ => ask(operation, run),
        }
    }
}

/// Makes one request. Bytes that the file does not have are not read.
fn request(
    device: &mut Device,
    end: &mut u64,
    operation: Operation,
    range: ByteRange,
    variables: &mut Variables,
    watch: &mut impl Watch,
) {
    let purpose = match operation {
        Operation::Read => {
            let there = ByteRange { length: range.length.min(end.saturating_sub(range.offset)), ..range };
            if there.length == 0 {
                return;
            }
            device.read(0, there, variables);
            Purpose::ReadPart
        }
        Operation::Write => {
            device.write(0, range, variables);
            *end = range.end().max(*end);
            Purpose::WritePart
        }
    };
    watch.saw(Request { purpose, chunk: 0, range });
}
