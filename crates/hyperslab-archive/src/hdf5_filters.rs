//! The filters of an array of an HDF5 file, as its object header lists them.

use std::path::Path;

use hyperslab_engine::FileStore;
use hyperslab_parsers::{Pages, Policy, hdf5};

use crate::error::Error;
use crate::sources::LocalSource;

/// The number and the parameters of each filter of the array at `path`, in encoding order. Parses nothing else of the
/// file, which is local.
pub fn hdf5_filters(file: &Path, path: &str) -> Result<Vec<(u16, Vec<u32>)>, Error> {
    let store = FileStore::open(file)?;
    let source = LocalSource(&store);
    let found = hdf5::filters(&mut Pages::new(&source, Policy::LOCAL), path);
    let found = found.map_err(|problem| Error::parse_of(file, problem))?;
    Ok(found.into_iter().map(|filter| (filter.number, filter.parameters)).collect())
}
