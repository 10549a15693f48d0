//! Whether accesses are recorded now.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_ON: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How many accesses of other recorders this thread is in: these count, and not the ones that they make.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// Records from now on.
pub(crate) fn turn_on() {
    IS_ON.store(true, Ordering::Release);
}

/// Whether this process is recorded.
#[inline]
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Whether an access that this thread makes counts.
#[inline]
pub(crate) fn counts() -> bool {
    is_on() && INSIDE.with(Cell::get) == 0
}

/// This thread begins (1) or ends (-1) an access of another recorder.
pub(crate) fn change_inside(change: i32) {
    INSIDE.with(|inside| inside.set(inside.get().saturating_add_signed(change)));
}
