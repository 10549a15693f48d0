//! Stores: where the bytes of files are. One file each, behind one contract.

mod file;
mod padded;
mod table;

use std::io::IoSliceMut;

use hyperslab_core::CoalescePolicy;

use crate::read_error::ReadError;
pub use file::{FileStore, FileVersion};
pub use table::{OtherFile, Stores};

/// The bytes of one file, as they were when it was opened.
pub trait Store: Send + Sync {
    /// What people call the file.
    fn name(&self) -> &str;

    /// How long it was when it was opened.
    fn nbytes(&self) -> u64;

    /// Which requests it likes.
    fn policy(&self) -> CoalescePolicy;

    /// Fill `out` with the bytes from `offset` on.
    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError>;

    /// Fill several buffers, one after the other, with the bytes from `offset` on.
    fn read_vectored(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> Result<(), ReadError>;

    /// Fails if the file is another one now.
    fn check_unchanged(&self) -> Result<(), ReadError>;
}
