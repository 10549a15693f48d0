//! One safe table of the functions of a libhdf5 that the process has loaded.
//!
//! Nothing here is linked to libhdf5: a [`Library`] finds the functions by the handle of a loaded library. Whoever makes one
//! promises once that they are libhdf5's. After that, any number may be given as an identifier: libhdf5 looks each up,
//! and refuses those that it does not know. What it writes has room for as many axes as it allows.
//!
//! | what | home |
//! |---|---|
//! | names and signatures, and where versions differ | `table` |
//! | a library; what kinds of identifiers there are; those of others, held | `library`; `kinds`; `held` |
//! | identifiers that are closed when they are dropped | `owned` |
//! | files, arrays, types, property lists, dataspaces, by identifier | `file`, `array`, `datatype`, `properties`, `space` |
//! | what a dataspace selects, as our engine says it | `dataspace` |
//! | chunks as they are stored, and mappings of virtual arrays | `stored_chunks`, `mappings` |
//! | files that we read for libhdf5; how it is told | `driver`; `driver_class` |
//! | errors: silenced, set aside; why a call was not made | `error_stack`; `problem` |
//! | handles of loaded modules; their tables; which of them are a libhdf5 | `module`; `objects`; `libraries` |
//!
//! Nothing here knows Python, or what the program wants.

mod array;
mod dataspace;
mod datatype;
mod driven;
mod driver;
mod driver_class;
mod error_stack;
mod file;
mod held;
mod kinds;
#[cfg(target_os = "linux")]
pub mod libraries;
mod library;
mod mappings;
mod module;
#[cfg(target_os = "linux")]
pub mod objects;
mod owned;
mod problem;
mod properties;
mod space;
mod stored_chunks;
mod table;

pub use array::{Array, ArrayKey, Place};
pub use dataspace::{Dataspace, Selected, intervals};
pub use datatype::{Class, Order, Type};
pub use driven::{DrivenFile, Opening};
pub use driver::{Driver, forget_drivers};
pub use error_stack::{Quiet, SetAside};
pub use file::{File, Intent};
pub use kinds::Kind;
pub use library::{Library, NUMBER_COUNT, Real, has_failed};
pub use module::Module;
pub use owned::Owned;
pub use problem::Problem;
pub use properties::{CacheSettings, FilterSettings, Layout, Properties};
pub use space::{Boxes, Corner, SelectionKind, Space};
pub use stored_chunks::StoredChunks;

/// An identifier, as of HDF5 1.10. In 1.8 it had 32 bits.
pub type Id = i64;

/// `H5S_MAX_RANK`.
pub const MOST_NDIM: usize = 32;
