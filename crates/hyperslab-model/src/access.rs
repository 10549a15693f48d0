//! One access after another, with what the caches keep in between.

use hyperslab_core::Selection;

use crate::device::PageCacheSize;
use crate::error::ModelError;
use crate::flat::OpenFlat;
use crate::hdf5::{Hdf5, OpenHdf5};
use crate::hyperslab_engine::{HyperslabEngine, OpenHyperslabEngine};
use crate::index::kind::IndexKind;
use crate::operation::Operation;
use crate::paper::{OpenPaper, PaperLibrary};
use crate::request::Watch;
use crate::stored::Stored;
use crate::variables::Variables;
use crate::zarr::{OpenZarr, Zarr};

/// Which library accesses the array, and how. The set is closed.
#[derive(Clone, Debug, PartialEq)]
pub enum Library {
    /// HDF5, with all chunks in one file.
    Hdf5(Hdf5),
    /// zarr-python 3, with a file for each chunk or shard.
    Zarr(Zarr),
    /// One array in one piece, in a file of its own: netCDF-3, FITS, npy. Each run is a request.
    Flat,
    /// Our own engine: the requests of its plan.
    Hyperslab(HyperslabEngine),
    /// The paper's algorithm as printed, for either of its libraries.
    Paper(PaperLibrary),
}

/// An array that a library has open, and the contents of its caches.
#[derive(Clone, Debug)]
pub struct CacheState(Open);

#[derive(Clone, Debug)]
enum Open {
    Hdf5(Box<OpenHdf5>),
    Zarr(Box<OpenZarr>),
    Flat(Box<OpenFlat>),
    HyperslabEngine(Box<OpenHyperslabEngine>),
    Paper(Box<OpenPaper>),
}

impl CacheState {
    /// Nothing is cached yet.
    pub fn new(stored: Stored, library: &Library, pages: PageCacheSize) -> Result<Self, ModelError> {
        Ok(Self(match library {
            Library::Hdf5(hdf5) if matches!(hdf5.index, IndexKind::Contiguous | IndexKind::Compact) => {
                Open::Flat(Box::new(OpenFlat::in_hdf5(&stored, hdf5, pages)?))
            }
            Library::Hdf5(hdf5) => Open::Hdf5(Box::new(OpenHdf5::new(stored, hdf5, pages)?)),
            Library::Zarr(zarr) => Open::Zarr(Box::new(OpenZarr::new(stored, zarr, pages)?)),
            Library::Flat => Open::Flat(Box::new(OpenFlat::new(&stored, pages)?)),
            Library::Hyperslab(engine) => {
                Open::HyperslabEngine(Box::new(OpenHyperslabEngine::new(stored, *engine, pages)?))
            }
            Library::Paper(paper) => Open::Paper(Box::new(OpenPaper::new(stored, *paper, pages)?)),
        }))
    }

    /// The variables of one access. `watch` sees its requests in order, but not what a library writes later.
    pub fn access(
        &mut self,
        operation: Operation,
        selection: &Selection,
        watch: &mut impl Watch,
    ) -> Result<Variables, ModelError> {
        match &mut self.0 {
            Open::Hdf5(open) => open.access(operation, selection, watch),
            Open::Zarr(open) => open.access(operation, selection, watch),
            Open::Flat(open) => open.access(operation, selection, watch),
            Open::HyperslabEngine(open) => open.access(operation, selection, watch),
            Open::Paper(open) => open.access(operation, selection),
        }
    }

    /// Lets the array grow along its first axis to this length. Returns the variables of what this writes.
    pub fn resize(&mut self, length: u64, watch: &mut impl Watch) -> Result<Variables, ModelError> {
        match &mut self.0 {
            Open::Hdf5(open) => open.resize(length, watch),
            Open::Zarr(open) => open.resize(length),
            _ => Err(ModelError::parameter("length", length, "only arrays in chunks grow, in HDF5 or Zarr")),
        }
    }

    /// The variables of closing the array: whatever was not written yet.
    pub fn close(&mut self, watch: &mut impl Watch) -> Result<Variables, ModelError> {
        match &mut self.0 {
            Open::Hdf5(open) => open.flush(watch),
            Open::Flat(open) => Ok(open.flush(watch)),
            _ => Ok(Variables::default()),
        }
    }

    /// Closes the array and opens it again, in a file that stays open: HDF5 forgets the chunks, but not the chunk index. Our
    /// own engine keeps both as long as the file is open, and zarr-python keeps neither. The variables are those of closing.
    pub fn reopen_array(&mut self, watch: &mut impl Watch) -> Result<Variables, ModelError> {
        match &mut self.0 {
            Open::Hdf5(open) => open.reopen_array(watch),
            Open::Flat(open) => Ok(open.reopen_array(watch)),
            Open::Zarr(_) | Open::HyperslabEngine(_) | Open::Paper(_) => Ok(Variables::default()),
        }
    }

    /// Closes the file and opens it again. The library's caches are empty then; the page cache stays as it is. The
    /// variables are those of closing.
    pub fn reopen(&mut self, watch: &mut impl Watch) -> Result<Variables, ModelError> {
        match &mut self.0 {
            Open::Hdf5(open) => return open.reopen(watch),
            Open::Flat(open) => return Ok(open.reopen(watch)),
            Open::Zarr(_) => {} // zarr-python opens a file for each chunk, and keeps nothing
            Open::HyperslabEngine(open) => open.reopen(),
            Open::Paper(open) => open.reopen(),
        }
        Ok(Variables::default())
    }
}
