//! The contract of stores.

use std::io::IoSliceMut;

use hyperslab_core::{ByteRange, CoalescePolicy};

use super::file_version::FileVersion;
use super::remote::identity::Identity;
use crate::read_error::ReadError;

/// The bytes of one file, as they were when it was opened.
pub trait Store: Send + Sync {
    /// The file's name for people.
    fn name(&self) -> &str;

    /// Its length when it was opened.
    fn nbytes(&self) -> u64;

    /// How requests to it should be merged.
    fn policy(&self) -> CoalescePolicy;

    /// Fills `out` with the bytes that start at `offset`.
    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError>;

    /// Fills several buffers, one after the other, with the bytes that start at `offset`.
    fn read_vectored(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> Result<(), ReadError>;

    /// Fails if the file has changed.
    fn check_unchanged(&self) -> Result<(), ReadError>;

    /// The version of the file that was opened, for local files.
    fn version(&self) -> Option<FileVersion> {
        None
    }

    /// This store, if every request to it takes long whatever it brings.
    fn far(&self) -> Option<&dyn FarStore> {
        None
    }
}

/// Called now and then by threads that wait; `true` ends the wait with `Cancelled`.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// The most bytes that one request for metadata asks for.
pub const ROUND_PART_NBYTES: u64 = 64 << 20;

/// A store where each request takes long whatever it brings, so requests are made side by side.
pub trait FarStore: Store {
    /// How many requests may be worth making at a time.
    fn most_in_flight(&self) -> usize;

    /// What tells the object from a later one in its place, if that is known.
    fn identity(&self) -> Option<Identity>;

    /// Fills buffers side by side, each with the bytes that start at its offset.
    fn fill(&self, wanted: Vec<(u64, &mut [u8])>, stop: Stop<'_>) -> Result<(), ReadError>;

    /// Fills several buffers, one after the other, with the bytes that start at `offset`.
    fn fill_following(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> Result<(), ReadError> {
        let mut next = offset;
        let wanted = parts.iter_mut().map(|part| {
            let start = next;
            next = next.saturating_add(part.len() as u64);
            (start, &mut **part)
        });
        self.fill(wanted.collect(), &|| false)
    }

    /// The bytes of several ranges, fetched side by side, as one round of reading metadata.
    fn read_round(&self, ranges: &[ByteRange], stop: Stop<'_>) -> Result<Vec<Vec<u8>>, ReadError> {
        self.read_ranges(ranges, stop)
    }

    /// The bytes of several ranges, fetched side by side.
    fn read_ranges(&self, ranges: &[ByteRange], stop: Stop<'_>) -> Result<Vec<Vec<u8>>, ReadError> {
        let mut fetched = self.room(ranges)?;
        self.fill(at_offsets(ranges, &mut fetched), stop)?;
        Ok(fetched)
    }

    /// Room for the bytes of several ranges, which must lie within the file.
    fn room(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, ReadError> {
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
        Ok(ranges.iter().map(room).collect())
    }
}

/// Buffers with the offsets of the ranges that they have room for.
pub(super) fn at_offsets<'b>(ranges: &[ByteRange], room: &'b mut [Vec<u8>]) -> Vec<(u64, &'b mut [u8])> {
    ranges.iter().zip(room).map(|(range, out)| (range.offset, out.as_mut_slice())).collect()
}
