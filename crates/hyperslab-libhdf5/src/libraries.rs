//! Which of the modules that the process has loaded are a libhdf5. There may be several.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::library::{Library, Real};
use crate::module::Module;
use crate::objects::{self, is_own};

/// A libhdf5 that the process has loaded, or a library that stands between the program and one.
pub struct Libhdf5 {
    /// Where its memory begins and ends.
    extent: (usize, usize),
    /// Its number in the order in which we found them, from 1 on.
    pub order: usize,
    /// Whether it is a libhdf5 itself.
    pub is_real: bool,
    /// What we call of it; found when it is first needed. `None` if we cannot use it.
    library: AtomicPtr<Option<Library>>,
    module: Module,
    next: *const Libhdf5,
}

// SAFETY: the list only grows.
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
        self.module.symbol(name)
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
pub fn known_libraries() -> impl Iterator<Item = &'static Libhdf5> {
    // SAFETY: entries are never freed.
    let next = |entry: &&'static Libhdf5| unsafe { entry.next.as_ref() };
    // SAFETY: as above.
    std::iter::successors(unsafe { LIBRARIES.load(Ordering::Acquire).cast_const().as_ref() }, next)
}

/// The libhdf5 that an address is in, which stays loaded from now on; `None` if it is in something else.
pub fn libhdf5_at(address: usize) -> Option<&'static Libhdf5> {
    if let Some(known) = known_libraries().find(|known| known.contains(address)) {
        return Some(known).filter(|known| known.is_real);
    }
    let (extent, module) = module_at(address)?;
    is_real(extent, &module).then(|| registered(extent, module, true))
}

/// The library that has a function of libhdf5's at an address: one itself, or one that stands between. It stays loaded.
pub fn library_at(address: usize) -> Option<&'static Libhdf5> {
    if let Some(known) = known_libraries().find(|known| known.contains(address)) {
        return Some(known);
    }
    let (extent, module) = module_at(address)?;
    let is_real = is_real(extent, &module);
    Some(registered(extent, module, is_real))
}

fn is_real(extent: (usize, usize), module: &Module) -> bool {
    module.symbol(c"H5Iget_type").is_some_and(|address| (extent.0..extent.1).contains(&(address as usize)))
}

/// The entry of a library in the list of all.
fn registered(extent: (usize, usize), module: Module, is_real: bool) -> &'static Libhdf5 {
    let library = AtomicPtr::default();
    let new = Box::new(Libhdf5 { extent, order: 0, is_real, library, module, next: ptr::null() });
    let new = Box::into_raw(new);
    loop {
        let first = LIBRARIES.load(Ordering::Acquire);
        if let Some(known) = known_libraries().find(|known| known.extent == extent) {
            // SAFETY: nobody else has it. Its module stays loaded, as the known one has a handle too.
            drop(unsafe { Box::from_raw(new) });
            return known;
        }
        // SAFETY: entries are never freed, and nobody else has the new one yet.
        unsafe {
            (*new).order = first.as_ref().map_or(1, |first| first.order + 1);
            (*new).next = first;
        }
        if LIBRARIES.compare_exchange(first, new, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            // SAFETY: it was just made, and is never freed.
            return unsafe { &*new };
        }
    }
}

/// The module that an address is in, and where its memory is.
pub fn module_at(address: usize) -> Option<((usize, usize), Module)> {
    let mut found: Option<((usize, usize), CString)> = None;
    objects::each(|object| {
        if object.contains(address) {
            found = Some(((object.start, object.end), object.path().to_owned()));
        }
    });
    let (extent, path) = found?;
    Some((extent, Module::loaded(&path)?))
}

/// `dlsym` of libc.
pub type LookUp = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The versions that it has, the newest first.
const LOOK_UPS: [&CStr; 3] = [c"GLIBC_2.34", c"GLIBC_2.17", c"GLIBC_2.2.5"];

static LOOK_UP: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// libc's own `dlsym`: this library has another one.
pub fn look_up() -> Option<LookUp> {
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

impl Module {
    /// The address of what has this name in libc's own answer, unless it is ours.
    pub fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        symbol(self.handle(), name)
    }
}

fn symbol(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the handle is valid, and the name ends with a zero.
    let address = unsafe {
        let address = look_up()?(handle, name.as_ptr());
        libc::dlerror();
        address
    };
    Some(address).filter(|address| !address.is_null() && !is_own(*address as usize))
}

/// The address that the linker finds first for a symbol, behind ours.
pub fn next_symbol(name: &CStr, version: Option<&CStr>) -> Option<*mut c_void> {
    let versioned = version.and_then(|version| {
        // SAFETY: both end with a zero.
        let address = unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()) };
        // SAFETY: the call has no effect but this.
        unsafe { libc::dlerror() };
        Some(address).filter(|address| !address.is_null())
    });
    versioned.or_else(|| symbol(libc::RTLD_NEXT, name))
}
