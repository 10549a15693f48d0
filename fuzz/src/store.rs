//! A file in memory, as a store of the engine.

use std::io::IoSliceMut;

use hyperslab_core::CoalescePolicy;
use hyperslab_engine::{ReadError, Store};

/// The bytes of a file.
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    fn part(&self, offset: u64, nbytes: usize) -> Result<&[u8], ReadError> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let part = start.checked_add(nbytes).and_then(|stop| self.0.get(start..stop));
        part.ok_or_else(|| ReadError::Truncated {
            file: "fuzzed".into(),
            offset,
            nbytes: nbytes as u64,
            file_nbytes: self.nbytes(),
        })
    }
}

impl Store for Bytes {
    fn name(&self) -> &str {
        "fuzzed"
    }

    fn nbytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn policy(&self) -> CoalescePolicy {
        CoalescePolicy::LOCAL
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
        out.copy_from_slice(self.part(offset, out.len())?);
        Ok(())
    }

    fn read_vectored(&self, mut offset: u64, parts: &mut [IoSliceMut<'_>]) -> Result<(), ReadError> {
        for part in parts {
            self.read_into(offset, part)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        Ok(())
    }
}
