//! Lets libhdf5 do a read that is not ours. If the file has changed since it was opened, libhdf5 may fail for want of what
//! it would have in its cache if it had done the reads that we did. Then what we keep of them is the answer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::callers::Site;
use crate::libhdf5::{Library, Quiet, SetAside, has_failed};
use crate::reason::Reason;
use crate::request::{Call, makes_sense};
use crate::serving::serve_kept;

/// Passes a read on. `pass` makes libhdf5 do it, and may be called twice.
pub(crate) fn pass_on(site: &Site, call: &Call, reason: Reason, pass: impl Fn() -> usize) -> usize {
    if reason == Reason::Changed
        && let Some(library) = site.libhdf5.library()
        && let Some(quiet) = Quiet::new(library)
    {
        // No error is printed of a read that succeeds in the end.
        let result = pass();
        if !has_failed(result) || is_kept(site, library, call) {
            return 0;
        }
        drop(quiet);
        return pass();
    }
    let result = pass();
    if has_failed(result) { after_failure(site, call, result) } else { result }
}

/// The result of a read that libhdf5 has failed to do.
#[cold]
fn after_failure(site: &Site, call: &Call, result: usize) -> usize {
    let Some(library) = site.libhdf5.library() else { return result };
    let errors = SetAside::new(library);
    let is_done = Quiet::new(library).is_some_and(|_quiet| is_kept(site, library, call));
    if is_done {
        errors.forget();
        return 0;
    }
    result
}

fn is_kept(site: &Site, library: &Library, call: &Call) -> bool {
    let serve = || makes_sense(library, call).then(|| serve_kept(site.libhdf5, library, call)).flatten();
    matches!(catch_unwind(AssertUnwindSafe(serve)), Ok(Some(())))
}
