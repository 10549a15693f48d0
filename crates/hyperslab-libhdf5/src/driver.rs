//! A file driver of ours for a libhdf5: it reads what the caller has for a file, and writes nothing.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::Id;
use crate::driven::{Asked, LIBRARIES, MOST_LIBRARIES, Opening};
use crate::driver_class::register;
use crate::file::File;
use crate::kinds::Kind;
use crate::library::Library;
use crate::owned::Owned;
use crate::properties::Properties;

/// The driver of a library.
#[derive(Clone, Copy)]
pub struct Driver {
    library: &'static Library,
    id: Id,
}

/// The identifiers of our driver in the libraries that have it; 0 if it has to be registered again.
static DRIVERS: [AtomicI64; MOST_LIBRARIES] = [const { AtomicI64::new(0) }; MOST_LIBRARIES];

/// `H5I_VFL`.
const DRIVER: c_int = 8;

impl Library {
    /// Our driver of this library; `None` if it is too new or too old for it.
    pub fn driver(&'static self) -> Option<Driver> {
        let place = self.driver_place()?;
        let known = DRIVERS[place].load(Ordering::Acquire);
        // SAFETY: the function looks up any identifier.
        if known > 0 && unsafe { (self.call.id_type)(known) } == DRIVER {
            return Some(Driver { library: self, id: known });
        }
        let id = register(place, self.version, self.driving.as_ref()?.register)?;
        DRIVERS[place].store(id, Ordering::Release);
        Some(Driver { library: self, id })
    }

    /// The place of this library among those with our driver.
    fn driver_place(&'static self) -> Option<usize> {
        let own = ptr::from_ref(self).cast_mut();
        (0..MOST_LIBRARIES).find(|&place| {
            let found = &LIBRARIES[place];
            let taken = found.compare_exchange(ptr::null_mut(), own, Ordering::AcqRel, Ordering::Acquire);
            taken.is_ok() || taken == Err(own)
        })
    }
}

/// Libraries were closed: their numbers may mean other drivers from now on.
pub fn forget_drivers() {
    for driver in &DRIVERS {
        driver.store(0, Ordering::Release);
    }
}

impl Driver {
    /// Whether properties (0 for the defaults) name the plain driver.
    pub fn may_replace(&self, given: Id) -> bool {
        // SAFETY: the function looks up any identifier.
        given == 0 || unsafe { (self.library.call.properties_driver)(given) } == self.library.plain_driver()
    }

    /// Properties like those that are given (0 for the defaults), by which a file is opened with our driver. `None` if libhdf5
    /// refuses.
    pub fn properties(&self, given: Id, opening: Opening) -> Option<Owned<Properties<'static>>> {
        let call = &self.library.call;
        let class = self.library.class(Kind::AccessToFile)?;
        // SAFETY: the functions look up any identifier.
        let made = unsafe {
            if given == 0 { (call.properties_create)(class) } else { (call.properties_copy)(given) }
        };
        let made = Owned::returned(self.library.properties(made))?;
        let asked = Asked { opening, is_itself: true };
        let set = self.library.driving.as_ref()?.set_driver;
        // SAFETY: as above; libhdf5 copies what it gets by our own function.
        let done = unsafe { set(made.id(), self.id, ptr::from_ref(&asked).cast()) >= 0 };
        done.then_some(made)
    }
}

impl File<'_> {
    /// The number of the file that our driver reads; `None` if another driver reads it.
    pub fn driven(self) -> Option<u64> {
        let call = &self.library.call;
        let place = LIBRARIES
            .iter()
            .position(|found| ptr::eq(found.load(Ordering::Acquire), ptr::from_ref(self.library)))?;
        let own = DRIVERS[place].load(Ordering::Acquire);
        if own <= 0 {
            return None;
        }
        // SAFETY: the function looks up any identifier.
        let properties =
            Owned::returned(self.library.properties(unsafe { (call.file_properties)(self.id) }))?;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer is valid for writes. What our driver gives for a handle is a number.
        unsafe {
            let is_ours = (call.properties_driver)(properties.id()) == own;
            let is_done = is_ours && (call.file_handle)(self.id, 0, &raw mut handle) >= 0;
            handle.cast::<u64>().as_ref().filter(|_| is_done).copied()
        }
    }
}
