//! How much the metadata documents of one hierarchy may hold together: all of them are in memory at once, and a value
//! takes many times the bytes of its text.

use crate::error::Error;

/// All documents together.
pub(super) const MOST_NBYTES: u64 = 512 << 20;
/// All values in them together.
const MOST_VALUES: u64 = 1 << 24;

/// What is left.
pub(super) struct Budget {
    nbytes: u64,
    values: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { nbytes: MOST_NBYTES, values: MOST_VALUES }
    }
}

impl Budget {
    /// Takes a document out of it, before it is parsed.
    pub fn spend(&mut self, document: &[u8]) -> Result<(), Error> {
        let left = self.nbytes.checked_sub(document.len() as u64);
        self.nbytes = left.ok_or(Error::TooMany { what: "bytes of Zarr metadata", limit: MOST_NBYTES })?;
        let values = 1 + document.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
        let left = self.values.checked_sub(values as u64); // commas in texts count too: it is a bound
        self.values = left.ok_or(Error::TooMany { what: "values in Zarr metadata", limit: MOST_VALUES })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, MOST_VALUES};

    #[test]
    fn the_sum_is_bounded() {
        let mut budget = Budget { nbytes: 10, values: MOST_VALUES };
        assert!(budget.spend(b"{\"a\":1}").is_ok());
        assert!(budget.spend(b"1234").is_err());
        let mut budget = Budget { values: 5, ..Budget::default() };
        assert!(budget.spend(b"[1,2]").is_ok());
        assert!(budget.spend(b"[[],[]]").is_err());
    }
}
