//! Which libhdf5 a call is meant for.
//!
//! Python's wheels bring a libhdf5 each, under a name with a hash, and load it so that only their own modules see it. The
//! library that the dynamic linker would have chosen for a call depends on who calls. We look it up as the linker does:
//! first in the scope of the whole process, then in what the caller depends on.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::libhdf5::{Library, Real};

/// A function that we replace, for one caller.
pub(crate) struct Site {
    /// The address that the call returns to.
    caller: usize,
    hook: Hook,
    /// The library that calls, for the recorder.
    pub label: &'static str,
    /// The function that we stand for.
    pub real: Real,
    /// The library that it belongs to.
    pub libhdf5: &'static Libhdf5,
}

/// A libhdf5 that the process has loaded.
pub(crate) struct Libhdf5 {
    /// Where it is in memory.
    base: usize,
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

impl Libhdf5 {
    /// Its functions.
    pub fn library(&self) -> Option<&Library> {
        let find = |name: &CStr| {
            // SAFETY: the handle is that of a library that stays loaded.
            unsafe { libc::dlsym(self.handle.0, name.as_ptr()) }
        };
        // SAFETY: what was found is never freed. All is looked up in the library that has the function which the program
        // called.
        unsafe {
            if let Some(known) = self.library.load(Ordering::Acquire).as_ref() {
                return known.as_ref();
            }
            // Two threads may both look it up: a lock could be held forever in a child that forks.
            let found =
                if base(find(c"H5Dread") as usize) == Some(self.base) { Library::find(find) } else { None };
            let found: &'static Option<Library> = Box::leak(Box::new(found));
            self.library.store(ptr::from_ref(found).cast_mut(), Ordering::Release);
            found.as_ref()
        }
    }

    /// Tells it from others.
    pub fn number(&self) -> usize {
        self.base
    }
}

/// The functions that we replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    Read,
    ReadMulti,
    ReadChunk,
    ReadChunk1,
    ReadChunk2,
    Write,
    WriteMulti,
    WriteChunk,
    SetExtent,
    Extend,
    Refresh,
    CloseLibrary,
    Open,
    Create,
    Close,
}

impl Hook {
    fn name(self) -> &'static CStr {
        match self {
            Self::Read => c"H5Dread",
            Self::ReadMulti => c"H5Dread_multi",
            Self::ReadChunk => c"H5Dread_chunk",
            Self::ReadChunk1 => c"H5Dread_chunk1",
            Self::ReadChunk2 => c"H5Dread_chunk2",
            Self::Write => c"H5Dwrite",
            Self::WriteMulti => c"H5Dwrite_multi",
            Self::WriteChunk => c"H5Dwrite_chunk",
            Self::SetExtent => c"H5Dset_extent",
            Self::Extend => c"H5Dextend",
            Self::Refresh => c"H5Drefresh",
            Self::CloseLibrary => c"H5close",
            Self::Open => c"H5Fopen",
            Self::Create => c"H5Fcreate",
            Self::Close => c"H5Fclose",
        }
    }
}

/// More than any program has calls of these functions in its code.
const SITE_COUNT: usize = 1 << 10;
static SITES: [AtomicPtr<Site>; SITE_COUNT] = [const { AtomicPtr::new(ptr::null_mut()) }; SITE_COUNT];
static LIBRARIES: AtomicPtr<Libhdf5> = AtomicPtr::new(ptr::null_mut());

/// The function that a caller means; `None` if there is none.
#[inline]
pub(crate) fn site(hook: Hook, caller: usize) -> Option<&'static Site> {
    let first = (caller >> 2) ^ (caller >> 11) ^ hook as usize;
    for step in 0..SITE_COUNT {
        let place = &SITES[(first + step) % SITE_COUNT];
        // SAFETY: sites are never freed.
        match unsafe { place.load(Ordering::Acquire).as_ref() } {
            Some(site) if site.caller == caller && site.hook == hook => return Some(site),
            Some(_) => {}
            None => {
                let site = Box::into_raw(Box::new(find(hook, caller)?));
                // If another thread took the place, the site is only used this once and its memory is lost.
                let _ = place.compare_exchange(ptr::null_mut(), site, Ordering::AcqRel, Ordering::Acquire);
                // SAFETY: it was just made, and is never freed.
                return unsafe { site.as_ref() };
            }
        }
    }
    find(hook, caller).map(|site| &*Box::leak(Box::new(site)))
}

fn find(hook: Hook, caller: usize) -> Option<Site> {
    let name = hook.name();
    // SAFETY: the name ends with a zero.
    let global = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    let address = Some(global)
        .filter(|address| !address.is_null())
        .or_else(|| of_caller(name, caller))
        .or_else(|| of_any(name))?;
    let (base, handle) = loaded(address as usize)?;
    // SAFETY: the address is that of a function with at most six arguments, all of them integers or pointers.
    let real = unsafe { transmute::<*mut c_void, Real>(address) };
    Some(Site {
        caller,
        hook,
        label: module(caller).map_or("HDF5", label),
        real,
        libhdf5: registered(base, handle),
    })
}

/// The function in the caller's own dependencies.
fn of_caller(name: &CStr, caller: usize) -> Option<*mut c_void> {
    let (_, handle) = loaded(caller)?;
    // SAFETY: the handle is valid, and the name ends with a zero.
    let address = unsafe { libc::dlsym(handle.0, name.as_ptr()) };
    Some(address).filter(|address| !address.is_null() && !is_own(*address as usize))
}

/// Names of libraries that call libhdf5 for the program, by parts of their paths.
const LABELS: [(&str, &str); 3] = [("/h5py/", "h5py"), ("/libnetcdf", "netCDF"), ("/tables/", "PyTables")];

/// The name for the module at a path.
fn label(path: &CStr) -> &'static str {
    let path = path.to_string_lossy();
    LABELS.iter().find(|(part, _)| path.contains(part)).map_or("HDF5", |(_, label)| label)
}

/// The path of the object that an address belongs to.
fn module(address: usize) -> Option<&'static CStr> {
    // SAFETY: zeros are a valid structure, which the call may fill. Its name lives as long as the object.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let done = libc::dladdr(address as *const c_void, &raw mut info);
        (done != 0 && !info.dli_fname.is_null()).then(|| CStr::from_ptr(info.dli_fname))
    }
}

/// The object that an address belongs to: where it begins, and a handle that keeps it loaded.
fn loaded(address: usize) -> Option<(usize, Handle)> {
    let mut info = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: the structure is valid for writes. The name is the one that the linker knows the object by.
    unsafe {
        if libc::dladdr(address as *const c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        let mut handle = libc::dlopen(info.dli_fname, flags);
        if handle.is_null() {
            handle = libc::dlopen(ptr::null(), flags); // the program itself
        }
        libc::dlerror(); // so that the program does not find our errors
        Some((info.dli_fbase as usize, Handle(handle))).filter(|_| !handle.is_null())
    }
}

/// The function of the first object that has it. Only needed if the caller does not depend on it, as when a function
/// ends by calling it: then we only know who called that function.
fn of_any(name: &CStr) -> Option<*mut c_void> {
    struct Search<'n> {
        name: &'n CStr,
        found: *mut c_void,
    }
    unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the linker passes a valid object, and what we gave it.
        unsafe {
            let (search, name) = (&mut *data.cast::<Search<'_>>(), (*object).dlpi_name);
            if name.is_null() || *name == 0 {
                return 0;
            }
            let handle = libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if handle.is_null() {
                return 0;
            }
            search.found = libc::dlsym(handle, search.name.as_ptr());
            if is_own(search.found as usize) {
                search.found = ptr::null_mut();
            }
            c_int::from(!search.found.is_null())
        }
    }
    let mut search = Search { name, found: ptr::null_mut() };
    // SAFETY: the function gets what it expects.
    unsafe {
        libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast());
        libc::dlerror();
    }
    Some(search.found).filter(|address| !address.is_null())
}

static OWN: OnceLock<Option<usize>> = OnceLock::new();

/// Finds out where this library is. Called when it is loaded.
pub(crate) fn start() {
    OWN.get_or_init(|| base(SITES.as_ptr() as usize));
}

/// Whether an address is in this library.
pub(crate) fn is_own(address: usize) -> bool {
    OWN.get().is_some_and(|own| own.is_some() && base(address) == *own)
}

fn base(address: usize) -> Option<usize> {
    loaded(address).map(|(base, _)| base)
}

/// The entry of a library in the list of all.
fn registered(base: usize, handle: Handle) -> &'static Libhdf5 {
    let mut new: *mut Libhdf5 = ptr::null_mut();
    loop {
        let first = LIBRARIES.load(Ordering::Acquire);
        let mut entry: *const Libhdf5 = first;
        // SAFETY: entries are never freed.
        while let Some(known) = unsafe { entry.as_ref() } {
            if known.base == base {
                return known;
            }
            entry = known.next;
        }
        if new.is_null() {
            new = Box::into_raw(Box::new(Libhdf5 {
                base,
                library: AtomicPtr::default(),
                handle,
                next: ptr::null(),
            }));
        }
        // SAFETY: nobody else has it yet.
        unsafe { (*new).next = first };
        if LIBRARIES.compare_exchange(first, new, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            // SAFETY: it was just made, and is never freed.
            return unsafe { &*new };
        }
    }
}
