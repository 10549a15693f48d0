//! How fast libhdf5 is with one array, beside us.

use crate::counts::{self, Count};

/// What is known of one array's speed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Comparison {
    /// Reads that are not in the estimate yet.
    pub nbytes: u64,
    pub nanoseconds: u64,
    /// The sample, once it was taken: bytes and nanoseconds.
    pub sample: Option<(u64, u64)>,
    /// Whether a sample could not be taken.
    pub is_hopeless: bool,
}

impl Comparison {
    /// Counts what is not in the estimate yet.
    pub fn count(&mut self) {
        let Some((nbytes, nanoseconds)) = self.sample else { return };
        let estimate = u128::from(self.nbytes) * u128::from(nanoseconds) / u128::from(nbytes.max(1));
        counts::add(Count::EstimatedNanoseconds, u64::try_from(estimate).unwrap_or(u64::MAX));
        counts::add(Count::ComparedNanoseconds, self.nanoseconds);
        (self.nbytes, self.nanoseconds) = (0, 0);
    }
}
