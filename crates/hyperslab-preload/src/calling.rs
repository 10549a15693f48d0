//! Modules of the program that call libraries which may have gates: which functions they mean, as the linker decided. The addresses
//! are in the module's own table. Where the linker has not decided yet, or has taken an entry of ours, we search as it would, by
//! versions too.

use std::ffi::{CStr, CString, c_void};

use hyperslab_libhdf5::Module;
use hyperslab_libhdf5::libraries::{Libhdf5, libhdf5_at, next_symbol};
use hyperslab_libhdf5::objects::{self, Object, Slot, is_own};

use crate::gates::{gate_at, is_gated};
use crate::stand_ins::{HOOK_COUNT, entry, entry_name, entry_number};

/// How many addresses of functions tell which library a module means. Some may be in libraries on top of libhdf5.
const MOST_BOUND: usize = 64;

/// A module that calls functions which may have gates.
pub(crate) struct Calling {
    pub path: CString,
    pub extent: (usize, usize),
    /// The functions that it calls, as far as their slots may be changed.
    pub slots: Vec<Place>,
    /// Addresses of functions that seem to be libhdf5's.
    bound: Vec<usize>,
}

/// Where a module has the address of a function that it calls.
pub(crate) struct Place {
    pub address: usize,
    pub name: CString,
    pub version: Option<CString>,
    /// The function that the linker has put there; `None` if it has not, or has taken our entry.
    pub found: Option<usize>,
    /// The number of our entry for such functions.
    pub number: Option<usize>,
    /// Whether a call by it arrives at this entry, where we do not know which library it means.
    pub is_open: bool,
    pub is_sealed: bool,
    /// Whether it may be the address of a variable.
    pub may_be_variable: bool,
}

impl Calling {
    /// `None` for modules that do not call what may have gates.
    pub fn of(object: &Object) -> Option<Self> {
        let (mut slots, mut bound) = (Vec::new(), Vec::new());
        for slot in object.slots().filter(|slot| is_gated(slot.name)) {
            let value = slot.value();
            let is_elsewhere = value != 0 && !is_own(value) && !object.contains(value);
            let real = gate_at(value).map(|gate| gate.real).or(Some(value).filter(|_| is_elsewhere));
            if bound.len() < MOST_BOUND {
                bound.extend(real.filter(|_| slot.name.to_bytes().starts_with(b"H5")));
            }
            if gate_at(value).is_none() {
                slots.extend(Place::of(object, &slot, real));
            }
        }
        let (path, extent) = (object.path().to_owned(), (object.start, object.end));
        (!slots.is_empty() || !bound.is_empty()).then_some(Self { path, extent, slots, bound })
    }

    /// The libhdf5 that it means.
    fn library(&self) -> Option<&'static Libhdf5> {
        let bound = self.bound.iter().find_map(|address| libhdf5_at(*address));
        bound.or_else(|| libhdf5_at(self.extent.0)).or_else(|| {
            let version =
                self.slots.iter().find(|slot| slot.number.is_some_and(|number| number < HOOK_COUNT));
            let slot = version.or_else(|| self.slots.iter().find(|slot| slot.is_of_hdf5()))?;
            libhdf5_at(self.searched(&slot.name, slot.version.as_deref())?)
        })
    }

    /// The function that it means by a name.
    pub fn meant(&self, name: &CStr, version: Option<&CStr>) -> Option<usize> {
        let is_hook = entry_number(name).is_some_and(|number| number < HOOK_COUNT);
        let own = self.library().filter(|_| is_hook).and_then(|library| library.function(name));
        own.map(|function| function as usize).or_else(|| self.searched(name, version))
    }

    /// The same, as the linker searches: first in the scope of the whole process, then in what the module depends on.
    fn searched(&self, name: &CStr, version: Option<&CStr>) -> Option<usize> {
        let found = next_symbol(name, version).or_else(|| Module::loaded(&self.path)?.symbol(name));
        found.map(|address| address as usize)
    }
}

impl Place {
    /// `None` for slots that stay as they are.
    fn of(object: &Object, slot: &Slot<'_>, found: Option<usize>) -> Option<Self> {
        let number = entry_number(slot.name);
        // A library that calls itself does so within a call that has passed a gate.
        if slot.is_defined && number.is_none() {
            return None;
        }
        // Programs give this function to libhdf5, which must recognize it.
        if !slot.may_wait && slot.name.to_bytes().starts_with(b"H5Eprint") {
            return None;
        }
        let value = slot.value();
        let is_open = number.is_some_and(|number| entry(number) as usize == value);
        // The linker has put the address of its own code there, until the first call.
        let waits = slot.may_wait && object.contains(value);
        (is_open || waits || found.is_some()).then(|| Self {
            address: slot.place,
            name: slot.name.to_owned(),
            version: object.version(slot).map(CStr::to_owned),
            found,
            number,
            is_open,
            is_sealed: object.is_sealed(slot.place),
            may_be_variable: !slot.may_wait && number.is_none(),
        })
    }

    fn is_of_hdf5(&self) -> bool {
        self.name.to_bytes().starts_with(b"H5")
    }
}

/// The libhdf5 that the module with this extent calls.
pub(crate) fn libhdf5_below(extent: (usize, usize)) -> Option<&'static Libhdf5> {
    let mut found = None;
    objects::each(|object| {
        if object.start == extent.0 {
            found = Calling::of(object);
        }
    });
    found?.library()
}

/// A function that another library has put between programs and libhdf5's, as we do.
pub(crate) fn between(number: usize) -> Option<*mut c_void> {
    next_symbol(entry_name(number), None).filter(|address| libhdf5_at(*address as usize).is_none())
}

/// Finds all that have a function, and returns the one that was loaded first.
pub(crate) fn of_any(name: &CStr) -> Option<&'static Libhdf5> {
    let found = each_with(name).filter_map(|address| libhdf5_at(address as usize));
    found.fold(None, |first, one| first.or(Some(one)))
}

/// The function of this name of the module that was loaded first.
pub(crate) fn in_any(name: &CStr) -> Option<*mut c_void> {
    each_with(name).next()
}

/// Functions of this name that modules have, or those that they depend on.
fn each_with(name: &CStr) -> impl Iterator<Item = *mut c_void> {
    let mut paths = Vec::new();
    objects::each(|object| paths.push(object.path().to_owned()));
    let named = paths.into_iter().filter(|path| !path.is_empty());
    named.filter_map(move |path| Module::loaded(&path)?.symbol(name))
}
