//! How much metadata may be read of one file: what keeps structures that share bytes from multiplying them.

use crate::error::Error;

/// Bytes that are always allowed, however small the file.
const MIN_NBYTES: u64 = 64 << 20;
/// How often, on average, each byte of a file may count.
const REUSES: u64 = 8;

/// What is left to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit: u64,
    spent: u64,
}

impl Budget {
    /// For a file of this length.
    pub fn new(file_length: u64) -> Self {
        let limit = file_length.saturating_mul(REUSES).max(MIN_NBYTES);
        Self { limit, spent: 0 }
    }

    /// Take bytes; fails when there are not so many left.
    pub fn spend(&mut self, nbytes: usize) -> Result<(), Error> {
        self.spent = self.spent.saturating_add(nbytes as u64);
        if self.is_exceeded() {
            let what = "bytes of metadata, each as often as it is used";
            return Err(Error::TooMany { what, limit: self.limit });
        }
        Ok(())
    }

    /// Whether more was taken than there was: the walk ends then.
    pub fn is_exceeded(&self) -> bool {
        self.spent > self.limit
    }
}
