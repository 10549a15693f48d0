//! A file that continues with zeros. HDF5 reads external raw files in this way if they are shorter than the part of the
//! array that they hold (`H5D__efl_read` of the library: it ignores the fill value).

use std::io::IoSliceMut;
use std::sync::Arc;

use hyperslab_core::CoalescePolicy;

use super::contract::Store;
use crate::read_error::ReadError;

/// A file followed by endless zeros.
pub(super) struct PaddedStore(pub Arc<dyn Store>);

impl Store for PaddedStore {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn nbytes(&self) -> u64 {
        u64::MAX
    }

    fn policy(&self) -> CoalescePolicy {
        self.0.policy()
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let held = self.0.nbytes().saturating_sub(offset).min(out.len() as u64);
        let (stored, rest) = out.split_at_mut(usize::try_from(held).unwrap_or(usize::MAX));
        rest.fill(0);
        if stored.is_empty() { Ok(()) } else { self.0.read_into(offset, stored) }
    }

    fn read_vectored(&self, mut offset: u64, parts: &mut [IoSliceMut<'_>]) -> Result<(), ReadError> {
        let nbytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if offset.checked_add(nbytes).is_some_and(|end| end <= self.0.nbytes()) {
            return self.0.read_vectored(offset, parts);
        }
        for part in parts {
            self.read_into(offset, part)?;
            offset = offset.saturating_add(part.len() as u64);
        }
        Ok(())
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        self.0.check_unchanged()
    }
}
