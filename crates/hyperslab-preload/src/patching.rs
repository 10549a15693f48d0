//! Changes addresses that modules call.
//!
//! For functions of libhdf5: each module's slot is given the function that stands for those of its own libhdf5. And for
//! programs whose reads of files are recorded: functions of libc, which nobody pays for who has not asked for that.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use hyperslab_libhdf5::objects::each;

/// What is to be replaced by what.
pub(crate) struct Replacing {
    /// Names, and what is called in their place.
    pub functions: &'static [(&'static CStr, unsafe extern "C" fn())],
    /// Modules with this in their paths stay as they are.
    pub spared: &'static [&'static str],
}

/// Replaces addresses in all loaded modules.
pub(crate) fn patch(replacing: &Replacing) {
    each(|object| {
        let path = object.path().to_string_lossy();
        if replacing.spared.iter().any(|part| path.contains(part)) {
            return;
        }
        for slot in object.slots().filter(|slot| !slot.is_data) {
            if let Some((_, hook)) = replacing.functions.iter().find(|(replaced, _)| *replaced == slot.name) {
                replace(slot.place, *hook as usize, object.is_sealed(slot.place));
            }
        }
    });
}

/// Puts another address into a slot. Returns whether that changed anything.
pub(crate) fn replace(place: usize, address: usize, is_sealed: bool) -> bool {
    let page = rustix::param::page_size();
    let start = place / page * page;
    let protect = |protection| {
        // SAFETY: only the page of the slot changes, and is as before at the end.
        !is_sealed || unsafe { libc::mprotect(start as *mut c_void, page, protection) } == 0
    };
    // SAFETY: the slot is one that the dynamic linker fills with the address of a function; threads that read it get
    // the old address or the new one.
    let entry = unsafe { &*(place as *const AtomicUsize) };
    if entry.load(Ordering::Relaxed) == address || !protect(libc::PROT_READ | libc::PROT_WRITE) {
        return false;
    }
    entry.store(address, Ordering::Release);
    protect(libc::PROT_READ);
    true
}
