//! Lets libhdf5 do a read that is not ours. If the file has changed since it was opened, libhdf5 may fail for want of what
//! it would have in its cache if it had done the reads that we did. Then what we keep of them is the answer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hyperslab_libhdf5::{Library, Quiet, SetAside, has_failed};

use crate::callers::Site;
use crate::request::{Call, makes_sense};
use crate::serving::{is_unchecked, passed_changed, serve_kept};

/// Passes reads on, of one array or of several. `pass` makes libhdf5 do them, and may be called more than once.
pub(crate) fn pass_on(
    site: &Site,
    calls: &[Call],
    is_changed: bool,
    pass: impl Fn(&[Call]) -> usize,
) -> usize {
    if is_changed
        && let Some(library) = site.libhdf5.library()
        && let Some(quiet) = Quiet::new(library)
    {
        // No error is printed of a read that succeeds in the end.
        let is_first_kept =
            |call: &&Call| is_unchecked(site.libhdf5, library, call) && is_kept(site, library, call);
        let left: Vec<Call> = calls.iter().filter(|call| !is_first_kept(call)).copied().collect();
        if left.is_empty() {
            return 0;
        }
        if !has_failed(pass(&left)) {
            for call in &left {
                passed_changed(site.libhdf5, library, call);
            }
            return 0;
        }
        if is_done(site, library, &left, &pass) {
            return 0;
        }
        drop(quiet);
        return pass(calls);
    }
    let result = pass(calls);
    if has_failed(result) { after_failure(site, calls, result, pass) } else { result }
}

/// The result of reads that libhdf5 has failed to do.
#[cold]
fn after_failure(site: &Site, calls: &[Call], result: usize, pass: impl Fn(&[Call]) -> usize) -> usize {
    let Some(library) = site.libhdf5.library() else { return result };
    let errors = SetAside::new(library);
    if Quiet::new(library).is_some_and(|_quiet| is_done(site, library, calls, pass)) {
        errors.forget();
        return 0;
    }
    result
}

/// Whether all reads are done after all: from what is kept, and by libhdf5 if that lacks only some.
fn is_done(site: &Site, library: &Library, calls: &[Call], pass: impl Fn(&[Call]) -> usize) -> bool {
    let left: Vec<Call> = calls.iter().filter(|call| !is_kept(site, library, call)).copied().collect();
    left.is_empty() || (left.len() < calls.len() && !has_failed(pass(&left)))
}

fn is_kept(site: &Site, library: &Library, call: &Call) -> bool {
    let serve = || makes_sense(library, call).then(|| serve_kept(site.libhdf5, library, call)).flatten();
    matches!(catch_unwind(AssertUnwindSafe(serve)), Ok(Some(())))
}
