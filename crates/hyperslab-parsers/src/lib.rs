//! From a file's bytes to its tree of groups, arrays and manifests. Each on-disk format has one module.
//!
//! Input is hostile until proved otherwise: every length is bounded by the file, every walk by what it has seen, and
//! every fault is an [`Error`] that tells what is wrong and at which offset. A parser never seeks. It asks [`Pages`]
//! for bytes. Missing bytes are noted, and the parser goes on with whatever else it can do. All bytes that a round
//! missed are fetched together, so a remote file takes few dependent rounds.

mod allowed;
mod attribute;
mod cursor;
mod error;
#[cfg(test)]
mod hostile;
mod noted;
mod pages;
mod pieces;
mod regular_file;
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
pub use noted::{Noted, NotedKind};
pub use pages::{Memory, Pages, Policy, Source, Statistics};
pub use regular_file::{check_regular, open_regular};
