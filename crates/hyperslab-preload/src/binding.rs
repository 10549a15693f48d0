//! Which libhdf5 each module means, as the linker decided: told by the functions that we do not replace, since their
//! addresses are in the module's own table. Where the linker has not decided yet, we search as it would, by versions too.
//!
//! Then the module's calls of the functions that we replace arrive at entries of that library alone. Who calls, and from
//! where, does not matter any more: a function may end by jumping to libhdf5's, or be called by a pointer.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, Ordering};

use hyperslab_libhdf5::Module;
use hyperslab_libhdf5::libraries::{Libhdf5, libhdf5_at, next_symbol};
use hyperslab_libhdf5::objects::{self, Object, is_own};

use crate::entries::{entry, hook_name, hook_number};
use crate::patching::replace;

/// How many addresses of functions tell which library a module means. Some may be in libraries on top of libhdf5.
const MOST_BOUND: usize = 64;

/// A module that calls functions which we replace.
struct Calling {
    path: CString,
    extent: (usize, usize),
    /// The functions that it calls, as far as their slots are to be changed.
    slots: Vec<Place>,
    /// Addresses of functions that seem to be libhdf5's.
    bound: Vec<usize>,
    /// A function that it calls, and the version that it needs.
    wanted: (usize, Option<CString>),
}

struct Place {
    address: usize,
    hook: usize,
    is_sealed: bool,
    /// Whether a call by it arrives where we do not know which library it means.
    is_open: bool,
}

/// Only one thread changes slots at a time. The others go on without.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// A forked child may have it from a thread that it does not have.
pub(crate) fn forget() {
    IS_BUSY.store(false, Ordering::Release);
}

/// Before the program begins: its modules and those that it starts with.
pub(crate) fn start() {
    if next_symbol(c"H5Dread", None).is_some() {
        bind_all(false, |_, _| ());
    }
}

/// Gives modules that are loaded by now entries of their libraries, also where they call these directly.
pub(crate) fn bind_loaded() {
    bind_all(true, |_, _| ());
}

/// The library that a call means which arrived where everybody's do, and whether that is sure. Later calls of the same
/// module arrive elsewhere.
pub(crate) fn bind_caller(hook: usize, caller: usize) -> Option<(&'static Libhdf5, bool)> {
    // Whoever has been here before has entries of its own by now, so the caller is among the others. That is one module,
    // or several that mean the same library; if not, the address that the call returns to has to tell.
    let (mut open, mut by_address) = (Vec::new(), None);
    bind_all(false, |calling, library| {
        if calling.slots.iter().any(|slot| slot.hook == hook && slot.is_open) {
            open.push(library);
        }
        if (calling.extent.0..calling.extent.1).contains(&caller) {
            by_address = Some(library);
        }
    });
    let by_address = by_address.map(|library| (library, !open.is_empty()));
    let Some((first, others)) = open.split_first() else { return by_address };
    let is_same = |library: &&'static Libhdf5| library.number() == first.number();
    if others.iter().all(is_same) { Some((first, true)) } else { by_address }
}

fn bind_all(also_bound: bool, mut tell: impl FnMut(&Calling, &'static Libhdf5)) {
    let mut all = Vec::new();
    objects::each(|object| all.extend(Calling::of(object, also_bound)));
    let is_first = !IS_BUSY.swap(true, Ordering::AcqRel);
    for calling in &all {
        let Some(library) = calling.library() else { continue };
        if is_first {
            calling.bind(library);
        }
        tell(calling, library);
    }
    if is_first {
        IS_BUSY.store(false, Ordering::Release);
    }
}

impl Calling {
    /// `None` for modules that do not call what we replace. `also_bound` asks for those too that call libhdf5 directly.
    fn of(object: &Object, also_bound: bool) -> Option<Self> {
        let (mut slots, mut bound, mut wanted) = (Vec::new(), Vec::new(), None);
        for slot in object.slots().filter(|slot| slot.name.to_bytes().starts_with(b"H5")) {
            let value = slot.value();
            let is_elsewhere = value != 0 && !is_own(value) && !object.contains(value);
            if let Some(hook) = hook_number(slot.name) {
                let version = || object.version(&slot).map(CStr::to_owned);
                wanted.get_or_insert_with(|| (hook, version()));
                let is_open = is_own(value) && entry(0, hook).is_some_and(|entry| entry as usize == value);
                // The linker has put the address of its own code there, until the first call.
                let waits = slot.may_wait && object.contains(value);
                if is_open || waits || (also_bound && is_elsewhere) {
                    let is_sealed = object.is_sealed(slot.place);
                    slots.push(Place { address: slot.place, hook, is_sealed, is_open });
                }
            }
            // Names that end so are variables, which may be anywhere.
            if is_elsewhere && bound.len() < MOST_BOUND && !slot.name.to_bytes().ends_with(b"_g") {
                bound.push(value);
            }
        }
        let (path, extent) = (object.path().to_owned(), (object.start, object.end));
        Some(Self { path, extent, slots, bound, wanted: wanted? })
    }

    /// The library that it means.
    fn library(&self) -> Option<&'static Libhdf5> {
        let bound = self.bound.iter().find_map(|address| libhdf5_at(*address));
        bound.or_else(|| libhdf5_at(self.extent.0)).or_else(|| self.searched())
    }

    /// The same, as the linker searches: first in the scope of the whole process, then in what the module depends on.
    fn searched(&self) -> Option<&'static Libhdf5> {
        let (hook, version) = &self.wanted;
        let name = hook_name(*hook);
        if let Some(address) = next_symbol(name, version.as_deref()) {
            return libhdf5_at(address as usize);
        }
        let module = Module::loaded(&self.path)?;
        module.symbol(name).and_then(|address| libhdf5_at(address as usize))
    }

    /// Lets its calls arrive at the entries of that library.
    fn bind(&self, library: &Libhdf5) {
        let Some(_module) = Module::loaded(&self.path) else { return }; // it is not loaded any more
        for slot in &self.slots {
            if let Some(entry) = entry(library.order, slot.hook).filter(|_| between(slot.hook).is_none()) {
                replace(slot.address, entry as usize, slot.is_sealed);
            }
        }
    }
}

/// A function that another library has put between programs and libhdf5's, as we do.
pub(crate) fn between(hook: usize) -> Option<*mut std::ffi::c_void> {
    next_symbol(hook_name(hook), None).filter(|address| libhdf5_at(*address as usize).is_none())
}
