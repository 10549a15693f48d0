//! Which libhdf5 a call is meant for.
//!
//! Python's wheels bring a libhdf5 each, under a name with a hash, and load it so that only their own modules see it. The
//! library that the dynamic linker would have chosen for a call depends on who calls: `binding` finds that out.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use hyperslab_libhdf5::libraries::{Libhdf5, known_libraries, libhdf5_at, library_at, next_symbol};
use hyperslab_libhdf5::{Id, Kind, Real, objects};

use crate::binding::bind_caller;
use crate::calling::{between, in_any, of_any};
use crate::gates::are_complete;
use crate::instructions::{Called, LIBRARY_SHIFT};
use crate::lock::Lock;
use crate::owners::lock_at;
use crate::stand_ins::{HOOK_COUNT, entry_name};

/// A function that we replace, for one caller.
pub(crate) struct Site {
    /// The address that the call returns to, and the number of the entry's library.
    caller: usize,
    hook: Hook,
    /// The library that calls, for the recorder.
    pub label: &'static str,
    /// The function that we stand for.
    pub real: Real,
    /// The library that it belongs to.
    pub libhdf5: &'static Libhdf5,
    /// What its calls have to wait for.
    lock: Option<&'static Lock>,
    /// Whether other libraries stand between, so that not all calls come here.
    has_others: bool,
    /// Whether nobody knows which library is meant: then each call's identifier has to tell.
    is_guess: bool,
}

impl Site {
    /// The lock of the library, if all calls of the library come here.
    pub fn whole_lock(&self) -> Option<&'static Lock> {
        self.lock.filter(|_| !self.has_others && are_complete())
    }
}

/// The functions that we replace, in the order of `entries`.
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
    CloseArray,
    CloseObject,
    Release,
}

impl Hook {
    /// All of them.
    const ALL: [Self; HOOK_COUNT] = [
        Self::Read,
        Self::ReadMulti,
        Self::ReadChunk,
        Self::ReadChunk1,
        Self::ReadChunk2,
        Self::Write,
        Self::WriteMulti,
        Self::WriteChunk,
        Self::SetExtent,
        Self::Extend,
        Self::Refresh,
        Self::CloseLibrary,
        Self::Open,
        Self::Create,
        Self::Close,
        Self::CloseArray,
        Self::CloseObject,
        Self::Release,
    ];

    /// The kind of identifier that the first argument is.
    fn kind(self) -> Option<Kind> {
        match self {
            Self::ReadMulti | Self::WriteMulti | Self::CloseLibrary | Self::Open | Self::Create => None,
            Self::Close => Some(Kind::File),
            _ => Some(Kind::Array),
        }
    }
}

/// More than any program has calls of these functions in its code.
const SITE_COUNT: usize = 1 << 10;
static SITES: [AtomicPtr<Site>; SITE_COUNT] = [const { AtomicPtr::new(ptr::null_mut()) }; SITE_COUNT];

/// The function that a call means which arrived at the entry of this number, and what it has to wait for; `None` if there
/// is none. From then on, the call itself says which library it means.
pub(crate) fn meant(number: usize, called: &mut Called) -> Option<(usize, Option<&'static Lock>)> {
    if let Some(hook) = Hook::ALL.get(number) {
        let site = site(*hook, called)?;
        called.caller |= site.libhdf5.order << LIBRARY_SHIFT;
        return Some((site.real as usize, site.lock));
    }
    let name = entry_name(number);
    let first = || next_symbol(name, None).or_else(|| in_any(name));
    let real = bind_caller(number, called.caller)
        .map(|(found, _)| found)
        .or_else(|| first().map(|found| found as usize))?;
    Some((real, lock_at(name, real)))
}

/// The function that a call means; `None` if there is none.
#[inline]
pub(crate) fn site(hook: Hook, called: &Called) -> Option<&'static Site> {
    let site = known_site(hook, called.caller)?;
    if site.is_guess { owner(site, called) } else { Some(site) }
}

#[inline]
fn known_site(hook: Hook, caller: usize) -> Option<&'static Site> {
    let first = (caller >> 2) ^ (caller >> 11) ^ (caller >> LIBRARY_SHIFT) ^ hook as usize;
    for step in 0..SITE_COUNT {
        let place = &SITES[(first + step) % SITE_COUNT];
        // SAFETY: sites are never freed.
        match unsafe { place.load(Ordering::Acquire).as_ref() } {
            Some(site) if site.caller == caller && site.hook == hook => return Some(site),
            Some(_) => {}
            None => return kept(place, hook, caller),
        }
    }
    find(hook, caller).map(|site| &*Box::leak(Box::new(site)))
}

#[cold]
#[inline(never)]
fn kept(place: &AtomicPtr<Site>, hook: Hook, caller: usize) -> Option<&'static Site> {
    let site = Box::into_raw(Box::new(find(hook, caller)?));
    // If another thread took the place, the site is only used this once and its memory is lost.
    let _ = place.compare_exchange(ptr::null_mut(), site, Ordering::AcqRel, Ordering::Acquire);
    // SAFETY: it was just made, and is never freed.
    unsafe { site.as_ref() }
}

/// The same for the library that has given the identifier in the call, if only one has.
#[cold]
#[inline(never)]
fn owner(site: &'static Site, called: &Called) -> Option<&'static Site> {
    let id = called.first.cast_signed() as Id;
    let Some(kind) = site.hook.kind() else { return Some(site) };
    let is_owner = |library: &&Libhdf5| {
        let _held = lock_at(c"H5Iget_type", library.number()).map(|lock| lock.hold(called.stack()));
        library.library().is_some_and(|known| known.is(kind, id))
    };
    if is_owner(&site.libhdf5) {
        return Some(site);
    }
    let Some(library) = known_libraries().find(is_owner) else { return Some(site) };
    known_site(site.hook, site.caller | library.order << LIBRARY_SHIFT)
}

fn find(hook: Hook, caller: usize) -> Option<Site> {
    let (number, address) = (caller >> LIBRARY_SHIFT, caller & ((1 << LIBRARY_SHIFT) - 1));
    let name = entry_name(hook as usize);
    let label = label(&path_of(address));
    let site = |libhdf5: &'static Libhdf5, is_guess| {
        let real = libhdf5.function(name)?;
        let lock = lock_at(name, real as usize);
        let has_others = between(hook as usize).is_some();
        Some(Site { caller, hook, label, real, libhdf5, lock, has_others, is_guess })
    };
    if number > 0 {
        return site(known_libraries().find(|library| library.order == number)?, false);
    }
    if let Some(found) = between(hook as usize) {
        return site(library_at(found as usize)?, false);
    }
    let bound =
        bind_caller(hook as usize, address).and_then(|(real, is_sure)| Some((libhdf5_at(real)?, is_sure)));
    if let Some((library, true)) = bound {
        return site(library, false);
    }
    let first = of_any(name); // all of them are known from now on
    let global = next_symbol(name, None).and_then(|found| libhdf5_at(found as usize));
    site(bound.map(|(library, _)| library).or(global).or(first)?, true)
}

/// Names of libraries that call libhdf5 for the program, by parts of their paths.
const LABELS: [(&str, &str); 3] = [("/h5py/", "h5py"), ("/libnetcdf", "netCDF"), ("/tables/", "PyTables")];

/// The name for the module at a path.
fn label(path: &CStr) -> &'static str {
    let path = path.to_string_lossy();
    LABELS.iter().find(|(part, _)| path.contains(part)).map_or("HDF5", |(_, label)| label)
}

/// The path of the module that an address is in.
fn path_of(address: usize) -> CString {
    let mut found = CString::default();
    objects::each(|object| {
        if object.contains(address) {
            object.path().clone_into(&mut found);
        }
    });
    found
}
