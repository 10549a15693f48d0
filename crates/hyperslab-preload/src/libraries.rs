//! The libhdf5 that the process has loaded.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::libhdf5::{Library, Real};
use crate::objects::{self, is_own};

/// A libhdf5 that the process has loaded, or a library that stands between the program and one.
pub(crate) struct Libhdf5 {
    /// Where its memory begins and ends.
    extent: (usize, usize),
    /// Its number in the order in which we found them, from 1 on.
    pub order: usize,
    /// Whether it is a libhdf5 itself.
    pub is_real: bool,
    /// What we call of it; found when it is first needed. `None` if we cannot use it.
    library: AtomicPtr<Option<Library>>,
    handle: Handle,
    next: *const Libhdf5,
}

#[derive(Clone, Copy)]
struct Handle(*mut c_void);

// SAFETY: handles of libraries that are never unloaded; the list only grows.
unsafe impl Send for Libhdf5 {}
// SAFETY: as above.
unsafe impl Sync for Libhdf5 {}

static LIBRARIES: AtomicPtr<Libhdf5> = AtomicPtr::new(ptr::null_mut());

impl Libhdf5 {
    /// Its functions. A library in between has none: its own work must be done.
    pub fn library(&self) -> Option<&Library> {
        // SAFETY: what was found is never freed. All is looked up in the library that has the function which the program
        // called.
        unsafe {
            if let Some(known) = self.library.load(Ordering::Acquire).as_ref() {
                return known.as_ref();
            }
            // Two threads may both look it up: a lock could be held forever in a child that forks.
            let find = |name: &CStr| self.symbol(name).unwrap_or(ptr::null_mut());
            let found = if self.is_real && self.function(c"H5Dread").is_some() {
                Library::find(find, |name| self.variable(name))
            } else {
                None
            };
            let found = Box::into_raw(Box::new(found));
            match self.library.compare_exchange(ptr::null_mut(), found, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => (*found).as_ref(),
                Err(others) => {
                    drop(Box::from_raw(found));
                    (*others).as_ref()
                }
            }
        }
    }

    fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        symbol(self.handle.0, name)
    }

    /// A function of this very library.
    pub fn function(&self, name: &CStr) -> Option<Real> {
        let address = self.symbol(name).filter(|address| self.contains(*address as usize))?;
        // SAFETY: the address is that of a function, of whose arguments the caller knows.
        Some(unsafe { transmute::<*mut c_void, Real>(address) })
    }

    /// A variable, where the library itself looks for it: that may be in the program, which then has a copy of it.
    fn variable(&self, name: &CStr) -> *mut c_void {
        let mut found = None;
        objects::each(|object| {
            if object.start == self.extent.0 {
                found = object.slots().find(|slot| slot.name == name).map(|slot| slot.value() as *mut c_void);
            }
        });
        found.or_else(|| self.symbol(name)).unwrap_or(ptr::null_mut())
    }

    /// Whether an address is in it.
    pub fn contains(&self, address: usize) -> bool {
        (self.extent.0..self.extent.1).contains(&address)
    }

    /// Tells it from others.
    pub fn number(&self) -> usize {
        self.extent.0
    }
}

/// All that were found so far.
pub(crate) fn known_libraries() -> impl Iterator<Item = &'static Libhdf5> {
    // SAFETY: entries are never freed.
    let next = |entry: &&'static Libhdf5| unsafe { entry.next.as_ref() };
    // SAFETY: as above.
    std::iter::successors(unsafe { LIBRARIES.load(Ordering::Acquire).cast_const().as_ref() }, next)
}

/// The libhdf5 that an address is in, which stays loaded from now on; `None` if it is in something else.
pub(crate) fn libhdf5_at(address: usize) -> Option<&'static Libhdf5> {
    if let Some(known) = known_libraries().find(|known| known.contains(address)) {
        return Some(known).filter(|known| known.is_real);
    }
    let (extent, handle) = held(address)?;
    if is_real(extent, handle) {
        return Some(registered(extent, handle, true));
    }
    close(handle.0);
    None
}

/// The library that has a function of libhdf5's at an address: one itself, or one that stands between. It stays loaded.
pub(crate) fn library_at(address: usize) -> Option<&'static Libhdf5> {
    if let Some(known) = known_libraries().find(|known| known.contains(address)) {
        return Some(known);
    }
    let (extent, handle) = held(address)?;
    Some(registered(extent, handle, is_real(extent, handle)))
}

fn is_real(extent: (usize, usize), handle: Handle) -> bool {
    let found = symbol(handle.0, c"H5Iget_type");
    found.is_some_and(|address| (extent.0..extent.1).contains(&(address as usize)))
}

/// The entry of a library in the list of all.
fn registered(extent: (usize, usize), handle: Handle, is_real: bool) -> &'static Libhdf5 {
    let mut new: *mut Libhdf5 = ptr::null_mut();
    loop {
        let first = LIBRARIES.load(Ordering::Acquire);
        if let Some(known) = known_libraries().find(|known| known.extent == extent) {
            return known;
        }
        // SAFETY: entries are never freed.
        let order = unsafe { first.as_ref() }.map_or(1, |first| first.order + 1);
        if new.is_null() {
            let library = AtomicPtr::default();
            new = Box::into_raw(Box::new(Libhdf5 { extent, order, is_real, library, handle, next: first }));
        }
        // SAFETY: nobody else has it yet.
        unsafe { ((*new).next, (*new).order) = (first, order) };
        if LIBRARIES.compare_exchange(first, new, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            // SAFETY: it was just made, and is never freed.
            return unsafe { &*new };
        }
    }
}

/// The module that an address is in: where its memory is, and a handle that keeps it loaded.
fn held(address: usize) -> Option<((usize, usize), Handle)> {
    let mut found: Option<((usize, usize), CString)> = None;
    objects::each(|object| {
        if object.contains(address) {
            found = Some(((object.start, object.end), object.path().to_owned()));
        }
    });
    let (extent, path) = found?;
    Some((extent, Handle(open(&path)?)))
}

/// A handle of a loaded module, which keeps it loaded until it is closed; `None` if it is not loaded any more.
pub(crate) fn open(path: &CStr) -> Option<*mut c_void> {
    let path = if path.is_empty() { ptr::null() } else { path.as_ptr() }; // nothing stands for the program itself
    // SAFETY: the name is the one that the linker knows the module by.
    unsafe {
        let handle = libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        libc::dlerror(); // so that the program does not find our errors
        Some(handle).filter(|handle| !handle.is_null())
    }
}

/// Gives up a handle.
pub(crate) fn close(handle: *mut c_void) {
    // SAFETY: the handle is one that we opened.
    unsafe { libc::dlclose(handle) };
}

/// `dlsym` of libc.
pub(crate) type LookUp = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The versions that it has, the newest first.
const LOOK_UPS: [&CStr; 3] = [c"GLIBC_2.34", c"GLIBC_2.17", c"GLIBC_2.2.5"];

static LOOK_UP: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// libc's own `dlsym`: this library has another one.
pub(crate) fn look_up() -> Option<LookUp> {
    let mut found = LOOK_UP.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: the names end with a zero.
        let all = LOOK_UPS
            .map(|version| unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) });
        found = all.into_iter().find(|address| !address.is_null())?;
        LOOK_UP.store(found, Ordering::Relaxed);
    }
    // SAFETY: it is the address of this function.
    Some(unsafe { transmute::<*mut c_void, LookUp>(found) })
}

/// The address of a symbol, unless it is ours.
pub(crate) fn symbol(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the handle is valid, and the name ends with a zero.
    let address = unsafe {
        let address = look_up()?(handle, name.as_ptr());
        libc::dlerror();
        address
    };
    Some(address).filter(|address| !address.is_null() && !is_own(*address as usize))
}

/// The address that the linker finds first for a symbol, behind ours.
pub(crate) fn next_symbol(name: &CStr, version: Option<&CStr>) -> Option<*mut c_void> {
    let versioned = version.and_then(|version| {
        // SAFETY: both end with a zero.
        let address = unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()) };
        // SAFETY: the call has no effect but this.
        unsafe { libc::dlerror() };
        Some(address).filter(|address| !address.is_null())
    });
    versioned.or_else(|| symbol(libc::RTLD_NEXT, name))
}
