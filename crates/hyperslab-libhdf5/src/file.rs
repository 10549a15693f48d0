//! Open files.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr;

use crate::Id;
use crate::library::Library;
use crate::owned::Owned;
use crate::owned::{Identified, identified};

/// `H5F_ACC_RDWR`.
const WRITABLE: u32 = 0x01;
/// `H5F_ACC_SWMR_WRITE | H5F_ACC_SWMR_READ`.
const SWMR: u32 = 0x60;

/// A file, by its identifier.
#[derive(Clone, Copy)]
pub struct File<'l> {
    pub(crate) library: &'l Library,
    pub(crate) id: Id,
}

/// How a file was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent(u32);

impl Intent {
    /// Whether this process may write to it.
    pub fn is_writable(self) -> bool {
        self.0 & WRITABLE != 0
    }

    /// Whether someone may write to it while others read it.
    pub fn is_swmr(self) -> bool {
        self.0 & SWMR != 0
    }
}

identified!(File, file);

impl File<'_> {
    /// How it was opened.
    pub fn intent(self) -> Option<Intent> {
        let mut intent = 0;
        // SAFETY: the pointer is valid for writes.
        let done = unsafe { (self.library.call.file_intent)(self.id, &raw mut intent) };
        (done >= 0).then_some(Intent(intent))
    }

    /// The descriptor by which the plain driver reads it; `None` if another driver does.
    pub fn descriptor(self) -> Option<c_int> {
        let call = &self.library.call;
        // SAFETY: the function looks up any identifier.
        let properties = unsafe { (call.file_properties)(self.id) };
        let properties = Owned::returned(self.library.properties(properties))?;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer is valid for writes. What the plain driver has for a handle is a descriptor, which stays where
        // it is while the file is open.
        unsafe {
            let is_plain = (call.properties_driver)(properties.id) == self.library.plain_driver();
            let is_done = is_plain && (call.file_handle)(self.id, 0, &raw mut handle) >= 0;
            handle.cast::<c_int>().as_ref().filter(|_| is_done).copied()
        }
    }
}
