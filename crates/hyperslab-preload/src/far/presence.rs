//! Whether the process has ever opened a file at a URL.

use std::sync::atomic::{AtomicBool, Ordering};

static HAS_ANY: AtomicBool = AtomicBool::new(false);

/// Whether the process has ever opened a file at a URL.
pub(crate) fn has_any() -> bool {
    HAS_ANY.load(Ordering::Relaxed)
}

/// One has been opened. Returns whether it is the first.
pub(super) fn note() -> bool {
    !HAS_ANY.swap(true, Ordering::Relaxed)
}
