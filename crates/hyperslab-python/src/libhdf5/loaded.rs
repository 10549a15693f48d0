//! Finds functions and variables in a library that the process has loaded, without loading anything.

use std::ffi::{CStr, c_void};

/// A library that the process has loaded, with all libraries that it links to. It is never unloaded from then on.
pub(crate) struct Loaded(*mut c_void);

impl Loaded {
    /// `None` if the process has loaded no file of this name.
    pub fn of(path: &CStr) -> Option<Self> {
        // SAFETY: the name ends with a zero. Nothing is loaded, so no code of a library runs. The handle is never closed.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// The address of what has this name in the library, or else in the first library it links to that has it.
    pub fn find(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the handle is open, and the name ends with a zero.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }
}
