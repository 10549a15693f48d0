//! How often a file may have been opened for writing, or closed: what is known of files holds as long as this stays.

use std::sync::atomic::{AtomicU64, Ordering};

static WRITERS: AtomicU64 = AtomicU64::new(0);

/// Tells whether files may have been opened for writing since.
pub(crate) fn writers() -> u64 {
    WRITERS.load(Ordering::Acquire)
}

/// A file may have been opened for writing.
pub(crate) fn writers_changed() {
    WRITERS.fetch_add(1, Ordering::Release);
}
