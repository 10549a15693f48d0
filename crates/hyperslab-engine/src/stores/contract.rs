//! The contract of stores.

use std::io::IoSliceMut;

use hyperslab_core::{ByteRange, CoalescePolicy};

use super::file_version::FileVersion;
use super::remote::identity::Identity;
use crate::read_error::ReadError;

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

    /// Which version of the file was opened, where files of this machine can tell.
    fn version(&self) -> Option<FileVersion> {
        None
    }

    /// This store, if every request to it takes long whatever it brings.
    fn far(&self) -> Option<&dyn FarStore> {
        None
    }
}

/// Asked now and then by whoever waits: true ends the wait with `Cancelled`.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// A store where requests are made side by side, because each takes long whatever it brings.
pub trait FarStore: Store {
    /// Requests that may be worth making at a time.
    fn most_in_flight(&self) -> usize;

    /// What tells the object from what takes its place later, if that is known.
    fn identity(&self) -> Option<Identity>;

    /// Fill buffers, each with the bytes from its offset on, side by side.
    fn fill(&self, wanted: Vec<(u64, &mut [u8])>, stop: Stop<'_>) -> Result<(), ReadError>;

    /// The bytes of several ranges, fetched side by side.
    fn read_ranges(&self, ranges: &[ByteRange], stop: Stop<'_>) -> Result<Vec<Vec<u8>>, ReadError> {
        for range in ranges {
            if range.offset.checked_add(range.length).is_none_or(|end| end > self.nbytes()) {
                let (file, file_nbytes) = (self.name().to_owned(), self.nbytes());
                return Err(ReadError::Truncated {
                    file,
                    offset: range.offset,
                    nbytes: range.length,
                    file_nbytes,
                });
            }
        }
        let room = |range: &ByteRange| vec![0; usize::try_from(range.length).unwrap_or(usize::MAX)];
        let mut fetched: Vec<Vec<u8>> = ranges.iter().map(room).collect();
        let wanted = ranges.iter().zip(&mut fetched).map(|(range, out)| (range.offset, out.as_mut_slice()));
        self.fill(wanted.collect(), stop)?;
        Ok(fetched)
    }
}
