//! netCDF-C says by a number what is wrong, and `nc_strerror` gives words for it. If we know more, we add it there.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::time::{Duration, Instant};

/// For how long a failure explains the next message.
const STANDS: Duration = Duration::from_secs(2);

thread_local! {
    /// What has gone wrong on this thread, and is not told yet.
    static FAILURE: RefCell<Option<(Instant, String)>> = const { RefCell::new(None) };
    /// What was told last: the program reads it until it asks again.
    static TOLD: RefCell<CString> = RefCell::default();
}

/// Remembers what has gone wrong.
pub(super) fn note(text: &str) {
    FAILURE.set(Some((Instant::now(), text.to_owned())));
}

/// Nothing has gone wrong so far.
pub(super) fn forget() {
    FAILURE.set(None);
}

/// Whether nothing has gone wrong that is not told yet.
pub(super) fn is_nothing() -> bool {
    FAILURE.with_borrow(Option::is_none)
}

/// netCDF-C's words with what we know; `None` if that is nothing.
pub(super) fn told(words: &CStr) -> Option<*const c_char> {
    let (when, text) = FAILURE.take()?;
    if when.elapsed() > STANDS {
        return None;
    }
    let said = format!("{}: {text}", words.to_string_lossy()).replace('\0', " ");
    let said = CString::new(said).ok()?;
    Some(TOLD.with_borrow_mut(|told| {
        *told = said;
        told.as_ptr()
    }))
}
