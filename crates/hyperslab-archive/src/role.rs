//! What netCDF readers must know of an array besides its attributes.

use hyperslab_core::{Array, Role};
use hyperslab_parsers::hdf5;

/// The role of an array. In HDF5, an attribute says that an array only stands for a dimension.
pub(crate) fn role(array: &Array) -> Role {
    let mark = hdf5::DIMENSION_ONLY.as_bytes();
    let named = array.attributes.iter().find(|attribute| attribute.name == "NAME");
    let is_marked =
        named.is_some_and(|name| name.value.as_ref().is_ok_and(|value| value.bytes.starts_with(mark)));
    if is_marked { Role::DimensionOnly } else { array.role }
}
