//! What `hyperslab.accelerate` calls, in processes that run already.

#![allow(unsafe_code)]

use std::ffi::c_int;

use crate::binding::bind_loaded;
use crate::counts;
use crate::mapped;
use crate::settings::{is_serving, set_encoding, set_serving};

/// Begins to serve reads, or ends it. Returns whether they were served before. Called by `hyperslab.accelerate`.
#[unsafe(no_mangle)]
pub extern "C" fn hyperslab_serve(is_wanted: c_int) -> c_int {
    let before = is_serving();
    set_serving(is_wanted != 0);
    c_int::from(before)
}

/// Begins to encode writes within their calls, or ends it. Called by `hyperslab.accelerate`.
#[unsafe(no_mangle)]
pub extern "C" fn hyperslab_encode(is_wanted: c_int) {
    set_encoding(is_wanted != 0);
}

/// Copies the counts of this process: at most `count` of them. Returns how many there are.
///
/// # Safety
/// There must be room for so many counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_counts(out: *mut u64, count: usize) -> usize {
    let all = counts::all();
    for (place, value) in all.iter().enumerate().take(count) {
        // SAFETY: as the caller promises.
        unsafe { out.add(place).write(*value) };
    }
    all.len()
}

/// Makes all loaded modules call us.
#[unsafe(no_mangle)]
pub extern "C" fn hyperslab_patch() {
    mapped::begin_late();
    bind_loaded();
}
