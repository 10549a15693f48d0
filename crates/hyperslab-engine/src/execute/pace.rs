//! How many threads wait for a far store, and how many decode.

use std::sync::{Condvar, Mutex, PoisonError};

use hyperslab_core::Batches;

use crate::scatter::index;

/// Stored bytes in memory, summed over all threads.
const WINDOW_NBYTES: u64 = 128 << 20;
/// How to read from a far store.
pub(super) struct Pace {
    /// The number of threads. Nearly all of them wait.
    pub(super) thread_count: usize,
    pub(super) decoders: Decoders,
}

impl Pace {
    /// From the number of requests in flight and the number of chunks decoded at a time.
    pub fn new(in_flight: usize, decoders: usize, batches: &Batches) -> Self {
        let in_flight = in_flight as u64;
        let batch_nbytes = batches.stored_nbytes_per_read().saturating_mul(batches.most_reads());
        let affordable = (WINDOW_NBYTES / batch_nbytes.max(1)).max(1);
        let thread_count = index(in_flight.min(affordable).min(batches.count()).max(1));
        Self { thread_count, decoders: Decoders::new(decoders) }
    }
}

/// Limits how many threads decode at once, however many wait for bytes.
pub(super) struct Decoders {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Decoders {
    fn new(count: usize) -> Self {
        Self { free: Mutex::new(count.max(1)), freed: Condvar::new() }
    }

    pub fn decode<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        drop(free);
        let _again = Freeing(self);
        work()
    }
}

/// Frees a decoder, however its work ends.
struct Freeing<'d>(&'d Decoders);

impl Drop for Freeing<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
