//! The errors that libhdf5 keeps and prints: silenced, or set aside.

#![allow(unsafe_code)]

use std::ffi::{c_uint, c_void};
use std::ptr;

use crate::Id;
use crate::library::Library;

/// The current stack of errors.
const CURRENT: Id = 0;

/// While it lives, libhdf5 prints no errors. Afterwards it has none on its stack.
pub struct Quiet<'l> {
    library: &'l Library,
    function: *mut c_void,
    data: *mut c_void,
}

impl<'l> Quiet<'l> {
    /// `None` if libhdf5 refuses.
    pub fn new(library: &'l Library) -> Option<Self> {
        let (mut function, mut data) = (ptr::null_mut(), ptr::null_mut());
        let mut are_new: c_uint = 0;
        // SAFETY: all pointers are valid for writes.
        let done = unsafe {
            (library.call.errors_are_new)(CURRENT, &raw mut are_new) >= 0
                && are_new != 0
                && (library.call.errors_get)(CURRENT, &raw mut function, &raw mut data) >= 0
                && (library.call.errors_set)(CURRENT, ptr::null_mut(), ptr::null_mut()) >= 0
        };
        done.then(|| Self { library, function, data }) // not `then_some`, which would drop one
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // SAFETY: these are what the library returned.
        unsafe {
            (self.library.call.errors_set)(CURRENT, self.function, self.data);
            (self.library.call.errors_clear)(CURRENT);
        }
    }
}

/// The errors of a call that failed. They are on libhdf5's stack again when this is dropped, although we called it meanwhile.
pub struct SetAside<'l> {
    library: &'l Library,
    errors: Id,
}

impl<'l> SetAside<'l> {
    /// Takes the errors.
    pub fn new(library: &'l Library) -> Self {
        // SAFETY: the function takes nothing.
        Self { library, errors: unsafe { (library.call.errors_take)() } }
    }

    /// Drops the errors: the call has succeeded after all.
    pub fn forget(mut self) {
        let errors = std::mem::take(&mut self.errors);
        if errors > 0 {
            self.library.release(errors);
        }
    }
}

impl Drop for SetAside<'_> {
    fn drop(&mut self) {
        if self.errors > 0 {
            // SAFETY: the stack is the one that we took.
            unsafe { (self.library.call.errors_put_back)(self.errors) };
        }
    }
}
