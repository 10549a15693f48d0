//! Limits how much metadata is read from one file, so that structures that share bytes cannot multiply them.

use crate::error::Error;

/// How many bytes are always allowed, however small the file is.
const MIN_NBYTES: u64 = 64 << 20;
/// How often, on average, each byte of a file may be read.
const REUSES: u64 = 8;

/// How many bytes may still be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit: u64,
    spent: u64,
}

impl Budget {
    /// The budget for a file of this length.
    pub fn new(file_length: u64) -> Self {
        let limit = file_length.saturating_mul(REUSES).max(MIN_NBYTES);
        Self { limit, spent: 0 }
    }

    /// Takes bytes from the budget. Fails if fewer are left.
    pub fn spend(&mut self, nbytes: usize) -> Result<(), Error> {
        self.spent = self.spent.saturating_add(nbytes as u64);
        if self.is_exceeded() {
            let what = "bytes of metadata, counting each use";
            return Err(Error::TooMany { what, limit: self.limit });
        }
        Ok(())
    }

    /// Whether the budget was exceeded. The walk then ends.
    pub fn is_exceeded(&self) -> bool {
        self.spent > self.limit
    }
}
