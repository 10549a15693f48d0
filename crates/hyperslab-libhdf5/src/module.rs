//! Modules that the process has loaded, found without loading anything.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::ptr;

/// A module that the process has loaded. It stays loaded until this is dropped.
pub struct Module(*mut c_void);

// SAFETY: handles may be used by any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// `None` if the process has loaded no file of this name. Nothing stands for the program itself.
    pub fn loaded(path: &CStr) -> Option<Self> {
        let path = if path.is_empty() { ptr::null() } else { path.as_ptr() };
        // SAFETY: the name ends with a zero. Nothing is loaded, so no code of a library runs.
        unsafe {
            let handle = libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            libc::dlerror(); // so that the program does not find our errors
            (!handle.is_null()).then(|| Self(handle)) // not `then_some`, which would drop one
        }
    }

    /// The address of what has this name in the module, or else in the first library it links to that has it. Asks as any
    /// program does: what stands between programs and libhdf5 is found instead of libhdf5's own.
    pub fn find(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the handle is open, and the name ends with a zero.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }

    /// What the linker knows it by.
    #[cfg(target_os = "linux")]
    pub(crate) fn handle(&self) -> *mut c_void {
        self.0
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the handle is open.
        unsafe { libc::dlclose(self.0) };
    }
}
