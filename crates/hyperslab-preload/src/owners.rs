//! Which library a function belongs to, and the lock that its calls need.
//!
//! A libhdf5 that says that it was not made for threads has a lock. netCDF-C was never made for them: it has the lock of its
//! libhdf5, or one of its own if that needs none. So no thread ever waits for one lock while it holds the other. Libraries on
//! top of libhdf5, its high-level one above all, have libhdf5's.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_uchar};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use hyperslab_libhdf5::Module;
use hyperslab_libhdf5::libraries::{Libhdf5, libhdf5_at, module_at};

use crate::calling::{libhdf5_below, of_any};
use crate::lock::Lock;
use crate::settings::settings;

/// A library whose functions have gates. It stays loaded.
pub(crate) struct Owner {
    extent: (usize, usize),
    /// What its calls have to wait for.
    pub lock: Option<&'static Lock>,
    _module: Module,
    next: *const Owner,
}

// SAFETY: the list only grows.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

static OWNERS: AtomicPtr<Owner> = AtomicPtr::new(ptr::null_mut());

/// All that are known.
fn known() -> impl Iterator<Item = &'static Owner> {
    // SAFETY: entries are never freed.
    let next = |owner: &&'static Owner| unsafe { owner.next.as_ref() };
    // SAFETY: as above.
    std::iter::successors(unsafe { OWNERS.load(Ordering::Acquire).cast_const().as_ref() }, next)
}

/// The lock that calls of the function with this name at this address need.
pub(crate) fn lock_at(name: &CStr, address: usize) -> Option<&'static Lock> {
    if settings().locks { owner_at(name, address)?.lock } else { None }
}

fn owner_at(name: &CStr, address: usize) -> Option<&'static Owner> {
    let contains = |extent: (usize, usize), address| (extent.0..extent.1).contains(&address);
    if let Some(owner) = known().find(|owner| contains(owner.extent, address)) {
        return Some(owner);
    }
    let (extent, module) = module_at(address)?;
    let has = |name: &CStr| module.symbol(name).is_some_and(|found| contains(extent, found as usize));
    let lock = match libhdf5_at(address) {
        Some(library) => lock_of(library),
        None if has(c"nc_open") => below(extent).or_else(|| Some(Lock::new())),
        None if name.to_bytes().starts_with(b"H5") => below(extent),
        None => return None, // other libraries have such names too
    };
    Some(registered(extent, module, lock))
}

/// The lock of the libhdf5 that a library calls. One that does not tell, because it looks functions up, is on top of the
/// first libhdf5 that the process has.
fn below(extent: (usize, usize)) -> Option<&'static Lock> {
    let library = libhdf5_below(extent).or_else(|| of_any(c"H5Iget_type"))?;
    owner_at(c"H5Iget_type", library.number())?.lock
}

/// Asks a libhdf5 whether threads may share it. One that is too old to know was not made for that.
fn lock_of(library: &Libhdf5) -> Option<&'static Lock> {
    let mut is_safe: c_uchar = 0;
    let asked = library.function(c"H5is_library_threadsafe");
    if let Some(asked) = asked {
        // SAFETY: the function of this name has this signature, and writes one byte.
        unsafe {
            let asked =
                transmute::<hyperslab_libhdf5::Real, unsafe extern "C" fn(*mut c_uchar) -> c_int>(asked);
            if asked(&raw mut is_safe) >= 0 && is_safe != 0 {
                return None;
            }
        }
    }
    Some(Lock::new())
}

/// The entry of a library in the list of all. If two threads make one, the first counts, and the other lock is never used.
fn registered(extent: (usize, usize), module: Module, lock: Option<&'static Lock>) -> &'static Owner {
    let new = Box::into_raw(Box::new(Owner { extent, lock, _module: module, next: ptr::null() }));
    loop {
        let first = OWNERS.load(Ordering::Acquire);
        if let Some(other) = known().find(|owner| owner.extent == extent) {
            // SAFETY: nobody else has it. Its module stays loaded, as the known one has a handle too.
            drop(unsafe { Box::from_raw(new) });
            return other;
        }
        // SAFETY: nobody else has it yet.
        unsafe { (*new).next = first };
        if OWNERS.compare_exchange(first, new, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            // SAFETY: it was just made, and is never freed.
            return unsafe { &*new };
        }
    }
}
