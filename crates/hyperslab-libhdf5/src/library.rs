//! A libhdf5: its functions, and the identifiers that it has for everyone.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::mem::transmute_copy;

use crate::Id;
use crate::kinds::CLASSES;
use crate::kinds::Kind;
use crate::table::{Driving, Functions, ObjectInfo, PlainDriver, TransferMode, Version, Writing};

/// A function to call in place of the program, with the arguments that the program gave.
pub type Real = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize) -> usize;

/// Whether a function that returns a `herr_t` has failed.
#[allow(clippy::cast_possible_truncation)] // which has 32 bits
pub fn has_failed(result: usize) -> bool {
    (result as u32).cast_signed() < 0
}

/// A libhdf5 that is loaded for good.
pub struct Library {
    pub(crate) call: Functions,
    /// What only newer ones have; `None` if it is older than HDF5 1.10.4, or lacks functions.
    pub(crate) writing: Option<Writing>,
    /// Tells whether a transfer is collective; `None` in builds without MPI.
    pub(crate) transfer_mode: Option<TransferMode>,
    pub(crate) info: ObjectInfo,
    pub(crate) version: [c_uint; 3],
    /// What a file driver of ours needs; `None` if the library lacks some of it.
    pub(crate) driving: Option<Driving>,
    plain_driver: PlainDriver,
    transfer_defaults: *const Id,
    /// The identifiers of the processor's own numbers, in the order of `NUMBERS`.
    numbers: [*const Id; NUMBER_COUNT],
    /// The identifiers of classes of property lists, in the order of `CLASSES`.
    classes: [*const Id; CLASSES.len()],
}

/// `H5F_OBJ_ALL` in place of a file, and `H5F_OBJ_DATASET`.
const ALL_FILES: Id = 0x1f;
const ARRAYS: c_uint = 2;

/// How many numbers the processor has.
pub const NUMBER_COUNT: usize = 10;

/// Where libhdf5 keeps the identifiers of types.
const NUMBERS: [&CStr; NUMBER_COUNT] = [
    c"H5T_NATIVE_SCHAR_g",
    c"H5T_NATIVE_UCHAR_g",
    c"H5T_NATIVE_SHORT_g",
    c"H5T_NATIVE_USHORT_g",
    c"H5T_NATIVE_INT_g",
    c"H5T_NATIVE_UINT_g",
    c"H5T_NATIVE_LLONG_g",
    c"H5T_NATIVE_ULLONG_g",
    c"H5T_NATIVE_FLOAT_g",
    c"H5T_NATIVE_DOUBLE_g",
];

// SAFETY: the pointers are those of functions and variables of a library that is never unloaded.
unsafe impl Send for Library {}
// SAFETY: as above; libhdf5 sets the variables once, before the first array is open.
unsafe impl Sync for Library {}

impl Library {
    /// `None` if it is older than HDF5 1.10, or lacks functions.
    ///
    /// # Safety
    /// `find` must return the addresses of functions of one libhdf5 that is never unloaded, and `variable` those of the
    /// variables that it uses. While a method of the library or of what it lends runs, no other thread may call that
    /// libhdf5, unless it is one that threads may share.
    pub unsafe fn find(
        find: impl Fn(&CStr) -> *mut c_void,
        variable: impl Fn(&CStr) -> *mut c_void,
    ) -> Option<Self> {
        // SAFETY: as the caller promises.
        unsafe {
            let version = version(&find)?;
            if version < [1, 10, 0] {
                return None;
            }
            let call = Functions::find(&find)?;
            let writing = if version >= [1, 10, 4] { Writing::find(&find) } else { None };
            let transfer_mode =
                transmute_copy::<*mut c_void, Option<TransferMode>>(&find(c"H5Pget_dxpl_mpio"));
            let info = ObjectInfo::find(&find)?;
            let plain_driver = PlainDriver::find(&find, &variable)?;
            let driving = Driving::find(&find, &variable);
            let present = |name| Some(variable(name)).filter(|address| !address.is_null());
            let transfer_defaults = present(c"H5P_LST_DATASET_XFER_ID_g")?.cast_const().cast();
            let numbers = NUMBERS.map(|name| variable(name).cast_const().cast());
            let classes = CLASSES.map(|(_, name)| variable(name).cast_const().cast());
            Some(Self {
                call,
                writing,
                transfer_mode,
                info,
                version,
                driving,
                plain_driver,
                transfer_defaults,
                numbers,
                classes,
            })
        }
    }

    /// The identifier of the plain driver, which reads files by position.
    pub(crate) fn plain_driver(&self) -> Id {
        // SAFETY: the function and the variable are libhdf5's.
        unsafe {
            match self.plain_driver {
                PlainDriver::Variable(address) => *address,
                PlainDriver::Function(call) => call(),
            }
        }
    }

    /// The identifier of the default transfer properties.
    pub(crate) fn transfer_defaults(&self) -> Id {
        // SAFETY: the variable is libhdf5's.
        unsafe { *self.transfer_defaults }
    }

    /// The identifier of one of the processor's own numbers.
    pub(crate) fn number(&self, place: usize) -> Option<Id> {
        known(*self.numbers.get(place)?)
    }

    /// The identifier of a class of property lists.
    pub(crate) fn class(&self, kind: Kind) -> Option<Id> {
        let place = CLASSES.iter().position(|(one, _)| *one == kind)?;
        known(*self.classes.get(place)?)
    }

    /// Identifiers of arrays that are open, in any file: as many as there is room for. Returns how many.
    pub fn open_arrays(&self, room: &mut [Id]) -> usize {
        // SAFETY: the function writes no more than there is room for.
        let count = unsafe { (self.call.file_objects)(ALL_FILES, ARRAYS, room.len(), room.as_mut_ptr()) };
        usize::try_from(count).unwrap_or(0).min(room.len())
    }

    /// Whether the library has a filter that decodes. To ask in this way loads no plugin.
    pub fn decodes(&self, filter: c_int) -> bool {
        /// `H5Z_FILTER_CONFIG_DECODE_ENABLED`.
        const DECODES: u32 = 2;
        let mut config = 0;
        // SAFETY: the function takes any number, and the pointer is valid for writes.
        let done = unsafe { (self.call.filter_info)(filter, &raw mut config) };
        done >= 0 && config & DECODES != 0
    }
}

/// What a variable has; `None` if it is missing, or not set.
fn known(variable: *const Id) -> Option<Id> {
    // SAFETY: the variable is one of a library that is never unloaded; it may be missing.
    unsafe { variable.as_ref() }.copied().filter(|id| *id > 0)
}

/// # Safety
/// As for `Library::find`.
unsafe fn version(find: impl Fn(&CStr) -> *mut c_void) -> Option<[c_uint; 3]> {
    let address = find(c"H5get_libversion");
    let mut numbers: [c_uint; 3] = [0; 3];
    let [major, minor, release] = &mut numbers;
    // SAFETY: the function of this name has this signature, and writes three numbers.
    let done = unsafe { transmute_copy::<*mut c_void, Option<Version>>(&address)?(major, minor, release) };
    (done >= 0).then_some(numbers)
}
