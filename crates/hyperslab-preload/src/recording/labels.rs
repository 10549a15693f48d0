//! Which library reads for the program: the one that calls libhdf5.

use std::ffi::CStr;

/// Names by parts of paths.
const LABELS: [(&str, &str); 3] = [("/h5py/", "h5py"), ("/libnetcdf", "netCDF"), ("/tables/", "PyTables")];

/// The name for the module at a path.
pub(crate) fn label(path: &CStr) -> &'static str {
    let path = path.to_string_lossy();
    LABELS.iter().find(|(part, _)| path.contains(part)).map_or("HDF5", |(_, label)| label)
}
