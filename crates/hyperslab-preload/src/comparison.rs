//! How fast libhdf5 is with one array, beside us.

use std::collections::VecDeque;

use crate::chunk_box::ChunkBox;
use crate::counts::{self, Count};

/// What is known of one array's speed.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// What libhdf5 would have had to decode, or to copy if there are no filters, for the reads that we served.
    work_nbytes: u64,
    /// Our time for these reads.
    nanoseconds: u64,
    /// What libhdf5 did in samples, and its time for that.
    sampled: (u64, u64),
    /// What of this is in the counts of the process already.
    counted: (u64, u64),
    /// The first chunks of all samples. libhdf5 may have these in its cache.
    pub starts: Vec<Vec<u64>>,
    /// The chunks of the last reads.
    pub recent: VecDeque<ChunkBox>,
    /// The chunks that libhdf5 would have in its cache.
    pub cached: Option<ChunkBox>,
    /// Whether no more samples are taken.
    pub is_over: bool,
}

impl Comparison {
    /// Takes account of a read.
    pub fn add(&mut self, work_nbytes: u64, nanoseconds: u64) {
        self.work_nbytes = self.work_nbytes.saturating_add(work_nbytes);
        self.nanoseconds = self.nanoseconds.saturating_add(nanoseconds);
    }

    /// Takes account of samples that were taken one after the other, each of so many bytes and nanoseconds. The fastest
    /// counts: in the first ones libhdf5 finds neither its memory nor the processor's caches as it leaves them.
    pub fn add_samples(&mut self, samples: &[(u64, u64)]) {
        let fastest = samples.iter().min_by(|(nbytes, took), (other_nbytes, other_took)| {
            let (own, other) = (u128::from(*took), u128::from(*other_took));
            (own * u128::from(*other_nbytes)).cmp(&(other * u128::from(*nbytes)))
        });
        if let Some((nbytes, took)) = fastest {
            self.sampled.0 = self.sampled.0.saturating_add(*nbytes);
            self.sampled.1 = self.sampled.1.saturating_add(*took);
        }
    }

    /// Brings the counts of the process up to date, if there are samples.
    pub fn count(&mut self) {
        let (nbytes, nanoseconds) = self.sampled;
        if nbytes == 0 {
            return;
        }
        let estimate = u128::from(self.work_nbytes) * u128::from(nanoseconds) / u128::from(nbytes);
        let now = (u64::try_from(estimate).unwrap_or(u64::MAX), self.nanoseconds);
        // A later sample may make the estimate smaller.
        counts::add(Count::EstimatedNanoseconds, now.0.wrapping_sub(self.counted.0));
        counts::add(Count::ComparedNanoseconds, now.1.wrapping_sub(self.counted.1));
        self.counted = now;
    }
}
