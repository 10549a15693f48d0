//! From a file's bytes to its tree of groups, arrays and manifests: one module per on-disk format.
//!
//! Input is hostile until proved otherwise: every length is bounded by the file, every walk by what it has seen,
//! and whatever is wrong is an [`Error`] that says what, and at which offset. A parser never seeks. It asks
//! [`Pages`] for bytes; what is not held is noted, the parser goes on with whatever else it can do, and all that a
//! round missed is fetched together, so that a remote file takes few dependent rounds.

mod allowed;
mod attribute;
mod cursor;
mod error;
#[cfg(test)]
mod hostile;
mod pages;
mod pieces;
mod rounds;
mod segment;

pub mod dmrpp;
pub mod fits;
pub mod hdf4;
pub mod hdf5;
pub mod netcdf3;
pub mod references;
pub mod zarr;

pub use allowed::{Allowed, refusal};
pub use error::{Error, FetchError};
pub use pages::{Memory, Pages, Policy, Source, Statistics};
