//! The functions of one libhdf5 that the process has loaded. A process may have several.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::mem::transmute_copy;

/// An identifier, as of HDF5 1.10. In 1.8 it had 32 bits.
pub(crate) type Id = i64;

/// A function to call in place of the program, with the arguments that the program gave.
pub(crate) type Real = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> usize;

/// Whether a function that returns a `herr_t` has failed.
#[allow(clippy::cast_possible_truncation)] // which has 32 bits
pub(crate) fn has_failed(result: usize) -> bool {
    (result as u32).cast_signed() < 0
}

macro_rules! functions {
    ($(#[doc = $said:literal])* $functions:ident: $($field:ident $name:literal ($($argument:ty),*) -> $result:ty;)*) => {
        $(#[doc = $said])*
        pub(crate) struct $functions {
            $(pub $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl $functions {
            /// `None` if one of them is missing.
            ///
            /// # Safety
            /// `find` must return the addresses of libhdf5's functions.
            pub unsafe fn find(find: impl Fn(&CStr) -> *mut c_void) -> Option<Self> {
                $(
                    let $field = find($name);
                    if $field.is_null() {
                        return None;
                    }
                )*
                // SAFETY: the functions of these names have these signatures.
                unsafe {
                    Some(Self {
                        $($field: std::mem::transmute_copy::<
                            *mut c_void, unsafe extern "C" fn($($argument),*) -> $result,
                        >(&$field),)*
                    })
                }
            }
        }
    };
}

functions! {
    /// The functions that we call ourselves. Their signatures are the same in HDF5 1.10 to 2.2.
    Functions:
    id_type c"H5Iget_type" (Id) -> c_int;
    id_file c"H5Iget_file_id" (Id) -> Id;
    id_release c"H5Idec_ref" (Id) -> c_int;
    errors_are_new c"H5Eauto_is_v2" (Id, *mut c_uint) -> c_int;
    errors_get c"H5Eget_auto2" (Id, *mut *mut c_void, *mut *mut c_void) -> c_int;
    errors_set c"H5Eset_auto2" (Id, *mut c_void, *mut c_void) -> c_int;
    errors_take c"H5Eget_current_stack" () -> Id;
    errors_put_back c"H5Eset_current_stack" (Id) -> c_int;
    errors_clear c"H5Eclear2" (Id) -> c_int;
    file_intent c"H5Fget_intent" (Id, *mut c_uint) -> c_int;
    file_properties c"H5Fget_access_plist" (Id) -> Id;
    file_handle c"H5Fget_vfd_handle" (Id, Id, *mut *mut c_void) -> c_int;
    array_space c"H5Dget_space" (Id) -> Id;
    array_type c"H5Dget_type" (Id) -> Id;
    array_properties c"H5Dget_create_plist" (Id) -> Id;
    array_allocation c"H5Dget_space_status" (Id, *mut c_int) -> c_int;
    properties_driver c"H5Pget_driver" (Id) -> Id;
    properties_equal c"H5Pequal" (Id, Id) -> c_int;
    properties_copy c"H5Pcopy" (Id) -> Id;
    properties_copy_one c"H5Pcopy_prop" (Id, Id, *const c_char) -> c_int;
    properties_layout c"H5Pget_layout" (Id) -> c_int;
    properties_chunk c"H5Pget_chunk" (Id, c_int, *mut u64) -> c_int;
    properties_filters c"H5Pget_nfilters" (Id) -> c_int;
    properties_filter c"H5Pget_filter2"
        (Id, c_uint, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint) -> c_int;
    filter_is_here c"H5Zfilter_avail" (c_int) -> c_int;
    properties_fill_time c"H5Pget_fill_time" (Id, *mut c_int) -> c_int;
    properties_fill_value c"H5Pfill_value_defined" (Id, *mut c_int) -> c_int;
    array_access c"H5Dget_access_plist" (Id) -> Id;
    access_cache c"H5Pget_chunk_cache" (Id, *mut usize, *mut usize, *mut f64) -> c_int;
    type_class c"H5Tget_class" (Id) -> c_int;
    type_order c"H5Tget_order" (Id) -> c_int;
    type_set_order c"H5Tset_order" (Id, c_int) -> c_int;
    type_copy c"H5Tcopy" (Id) -> Id;
    type_find c"H5Tfind" (Id, Id, *mut *mut c_void) -> usize;
    type_is_hard c"H5Tcompiler_conv" (Id, Id) -> c_int;
    type_equal c"H5Tequal" (Id, Id) -> c_int;
    type_nbytes c"H5Tget_size" (Id) -> usize;
    space_kind c"H5Sget_simple_extent_type" (Id) -> c_int;
    space_ndim c"H5Sget_simple_extent_ndims" (Id) -> c_int;
    space_shape c"H5Sget_simple_extent_dims" (Id, *mut u64, *mut u64) -> c_int;
    selection_kind c"H5Sget_select_type" (Id) -> c_int;
    selection_count c"H5Sget_select_npoints" (Id) -> i64;
    selection_bounds c"H5Sget_select_bounds" (Id, *mut u64, *mut u64) -> c_int;
    is_regular c"H5Sis_regular_hyperslab" (Id) -> c_int;
    regular c"H5Sget_regular_hyperslab" (Id, *mut u64, *mut u64, *mut u64, *mut u64) -> c_int;
    block_count c"H5Sget_select_hyper_nblocks" (Id) -> i64;
    blocks c"H5Sget_select_hyper_blocklist" (Id, u64, u64, *mut u64) -> c_int;
    point_count c"H5Sget_select_elem_npoints" (Id) -> i64;
    create_space c"H5Screate_simple" (c_int, *const u64, *const u64) -> Id;
    select_hyperslab c"H5Sselect_hyperslab" (Id, c_int, *const u64, *const u64, *const u64, *const u64) -> c_int;
    points c"H5Sget_select_elem_pointlist" (Id, u64, u64, *mut u64) -> c_int;
}

functions! {
    /// What the recorder calls besides: it tells what an array is.
    Describing:
    file_name c"H5Fget_name" (Id, *mut c_char, usize) -> isize;
    id_name c"H5Iget_name" (Id, *mut c_char, usize) -> isize;
    stored_nbytes c"H5Dget_storage_size" (Id) -> u64;
    filter_info c"H5Zget_filter_info" (c_int, *mut c_uint) -> c_int;
    type_sign c"H5Tget_sign" (Id) -> c_int;
    type_super c"H5Tget_super" (Id) -> Id;
    type_is_text c"H5Tis_variable_str" (Id) -> c_int;
    member_count c"H5Tget_nmembers" (Id) -> c_int;
    member_name c"H5Tget_member_name" (Id, c_uint) -> *mut c_char;
    member_type c"H5Tget_member_type" (Id, c_uint) -> Id;
    array_ndim c"H5Tget_array_ndims" (Id) -> c_int;
    array_shape c"H5Tget_array_dims2" (Id, *mut u64) -> c_int;
    free c"H5free_memory" (*mut c_void) -> c_int;
}

/// `H5Pget_dxpl_mpio`, which only parallel builds have.
pub(crate) type TransferMode = unsafe extern "C" fn(Id, *mut c_int) -> c_int;

/// Where an object is: the number of its open file, and the address of its header.
type Info3 = unsafe extern "C" fn(Id, *mut c_void, c_uint) -> c_int;
type Info1 = unsafe extern "C" fn(Id, *mut c_void) -> c_int;

enum Info {
    /// `H5Oget_info3`, or `H5Oget_info2`.
    Fields(Info3),
    /// `H5Oget_info`, as before HDF5 1.10.3.
    Whole(Info1),
}

/// Where an array is among all that its library has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// The number that the library gave to the file when it was opened. It never gives it again.
    pub file_number: c_ulong,
    /// The address of the array's header, counted from the file's base address.
    pub address: u64,
}

/// Tells arrays of all libraries apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayKey {
    /// The library's number.
    pub library: usize,
    /// Where it has the array.
    pub place: Place,
}

/// What only a libhdf5 has with which we can serve reads.
pub(crate) struct Library {
    pub call: Functions,
    /// What only the recorder calls; `None` if functions are missing.
    pub describing: Option<Describing>,
    /// Tells whether a transfer is collective; `None` in builds without MPI.
    pub transfer_mode: Option<TransferMode>,
    info: Info,
    /// The identifier of the plain driver, of the default transfer properties.
    plain_driver: PlainDriver,
    transfer_defaults: *const Id,
    /// The identifiers of the processor's own numbers, in the order of `NUMBERS`.
    numbers: [*const Id; NUMBERS.len()],
}

/// Transfer properties in which libhdf5 reports what it did in the last read. They ask for nothing.
const REPORTS: [&CStr; 6] = [
    c"actual_selection_io_mode",
    c"no_selection_io_cause",
    c"actual_io_mode",
    c"actual_chunk_opt_mode",
    c"local_no_collective_cause",
    c"global_no_collective_cause",
];

/// Where libhdf5 keeps the identifiers of types.
const NUMBERS: [&CStr; 10] = [
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

enum PlainDriver {
    Variable(*const Id),
    Function(unsafe extern "C" fn() -> Id),
}

// SAFETY: the pointers are those of functions and variables of a library that is never unloaded.
unsafe impl Send for Library {}
// SAFETY: as above; libhdf5 sets the variables once, before the first array is open.
unsafe impl Sync for Library {}

/// `H5S_MAX_RANK`.
pub(crate) const MOST_NDIM: usize = 32;
/// `H5I_FILE` and so on.
pub(crate) const FILE_ID: c_int = 1;
pub(crate) const DATATYPE_ID: c_int = 3;
pub(crate) const SPACE_ID: c_int = 4;
pub(crate) const ARRAY_ID: c_int = 5;
/// `H5O_INFO_BASIC`.
const BASIC: c_uint = 1;
/// More than any version of `H5O_info_t` has.
const INFO_WORDS: usize = 64;

/// The start, stride, count and block of a regular hyperslab, along each axis.
pub(crate) type Regular = [[u64; MOST_NDIM]; 4];

impl Library {
    /// The regular hyperslab that is selected; `None` if what is selected is none.
    #[inline]
    pub fn regular(&self, space: Id) -> Option<Regular> {
        let mut found = [[0_u64; MOST_NDIM]; 4];
        let [start, stride, count, block] = found.each_mut().map(|numbers| numbers.as_mut_ptr());
        // SAFETY: there is room for as many axes as libhdf5 allows.
        let done = unsafe { (self.call.regular)(space, start, stride, count, block) };
        (done >= 0).then_some(found)
    }

    /// `None` if it is older than HDF5 1.10, or lacks functions.
    ///
    /// # Safety
    /// `find` must return the addresses of functions of one libhdf5 that is never unloaded, and `variable` those of the
    /// variables that it uses.
    pub unsafe fn find(
        find: impl Fn(&CStr) -> *mut c_void,
        variable: impl Fn(&CStr) -> *mut c_void,
    ) -> Option<Self> {
        let found = |name| Some(find(name)).filter(|address| !address.is_null());
        // SAFETY: as the caller promises; the types are those of libhdf5's headers.
        unsafe {
            let version = found(c"H5get_libversion")?;
            let version: unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint) -> c_int =
                transmute_copy(&version);
            let mut numbers: [c_uint; 3] = [0; 3];
            let [major, minor, release] = &mut numbers;
            if version(major, minor, release) < 0 || (*major, *minor) < (1, 10) {
                return None;
            }
            let call = Functions::find(&find)?;
            let describing = Describing::find(&find);
            let transfer_mode =
                transmute_copy::<*mut c_void, Option<TransferMode>>(&find(c"H5Pget_dxpl_mpio"));
            let fields = found(c"H5Oget_info3").or_else(|| found(c"H5Oget_info2"));
            let info = match fields {
                Some(address) => Info::Fields(transmute_copy(&address)),
                None => Info::Whole(transmute_copy(&found(c"H5Oget_info")?)),
            };
            let set = |name| Some(variable(name)).filter(|address| !address.is_null());
            let driver = || set(c"H5FD_SEC2_id_g").map(|address| PlainDriver::Variable(address.cast()));
            let function =
                || found(c"H5FD_sec2_init").map(|address| PlainDriver::Function(transmute_copy(&address)));
            let plain_driver = function().or_else(driver)?;
            let transfer_defaults = set(c"H5P_LST_DATASET_XFER_ID_g")?.cast_const().cast();
            let numbers = NUMBERS.map(|name| variable(name).cast_const().cast());
            Some(Self { call, describing, transfer_mode, info, plain_driver, transfer_defaults, numbers })
        }
    }

    /// The numbers of the filters in an array's properties.
    pub fn filters(&self, properties: Id) -> Vec<c_int> {
        let none: *mut c_uint = std::ptr::null_mut();
        // SAFETY: the functions take any identifier; null stands for what is not asked.
        let count = unsafe { (self.call.properties_filters)(properties) };
        let filter = |place| {
            let (mut flags, mut value_count, mut config) = (0, 0, 0);
            let (flags, values, config) = (&raw mut flags, &raw mut value_count, &raw mut config);
            let filter = self.call.properties_filter;
            // SAFETY: as above.
            unsafe { filter(properties, place, flags, values, none, 0, std::ptr::null_mut(), config) }
        };
        (0..u32::try_from(count).unwrap_or(0)).map(filter).collect()
    }

    /// The first filter in an array's properties that the library neither has nor finds where it looks for plugins.
    pub fn lacked_filter(&self, properties: Id) -> Option<u32> {
        let numbers = self.filters(properties).into_iter();
        // SAFETY: the function takes any number.
        let mut lacked = numbers.filter(|&number| unsafe { (self.call.filter_is_here)(number) } <= 0);
        lacked.next().and_then(|number| u32::try_from(number).ok())
    }

    /// Where an array is; `None` if the library does not say.
    pub fn place(&self, array: Id) -> Option<Place> {
        let mut info = [0_u64; INFO_WORDS];
        let into = info.as_mut_ptr().cast::<c_void>();
        // SAFETY: the buffer is larger than the structure of any version.
        let done = unsafe {
            match self.info {
                Info::Fields(call) => call(array, into, BASIC),
                Info::Whole(call) => call(array, into),
            }
        };
        // All versions begin with the file's number and the address; since 1.12 the latter is the first half of a token.
        let [file_number, address, ..] = info;
        (done >= 0).then_some(Place { file_number, address })
    }

    /// What kind of thing an identifier stands for. Asking reports no error, whatever the number.
    pub fn kind(&self, id: Id) -> c_int {
        // SAFETY: the function takes any number.
        unsafe { (self.call.id_type)(id) }
    }

    /// The identifier of the plain driver, which reads files by position.
    pub fn plain_driver(&self) -> Id {
        // SAFETY: the function and the variable are libhdf5's.
        unsafe {
            match self.plain_driver {
                PlainDriver::Variable(address) => *address,
                PlainDriver::Function(call) => call(),
            }
        }
    }

    /// The identifier of one of the processor's own numbers.
    pub fn number(&self, place: usize) -> Option<Id> {
        let variable = *self.numbers.get(place)?;
        // SAFETY: the variable is one that libhdf5 uses, and set by now; it may be missing.
        unsafe { variable.as_ref() }.copied().filter(|id| *id > 0)
    }

    /// The identifier of the processor's own number that a type is equal to.
    pub fn own_number(&self, kind: Id) -> Option<Id> {
        // SAFETY: the function takes any identifiers.
        let is_it = |id: &Id| unsafe { (self.call.type_equal)(kind, *id) } > 0;
        (0..NUMBERS.len()).filter_map(|place| self.number(place)).find(is_it)
    }

    /// Whether transfer properties are the defaults.
    pub fn is_default_transfer(&self, properties: Id) -> bool {
        // SAFETY: the variable is libhdf5's; the functions take any identifiers; the names end with a zero.
        unsafe {
            let defaults = *self.transfer_defaults;
            if properties == 0 || (self.call.properties_equal)(properties, defaults) > 0 {
                return true;
            }
            let Some(copy) = Held::new(self, (self.call.properties_copy)(properties)) else { return false };
            for name in REPORTS {
                (self.call.properties_copy_one)(copy.id, defaults, name.as_ptr());
            }
            (self.call.properties_equal)(copy.id, defaults) > 0
        }
    }
}

/// While it lives, libhdf5 prints no errors. Afterwards it has none on its stack.
pub(crate) struct Quiet<'a> {
    library: &'a Library,
    function: *mut c_void,
    data: *mut c_void,
}

impl<'a> Quiet<'a> {
    /// `None` if libhdf5 refuses.
    pub fn new(library: &'a Library) -> Option<Self> {
        let (mut function, mut data) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut are_new: c_uint = 0;
        // SAFETY: all pointers are valid for writes; 0 is the current stack.
        let done = unsafe {
            (library.call.errors_are_new)(0, &raw mut are_new) >= 0
                && are_new != 0
                && (library.call.errors_get)(0, &raw mut function, &raw mut data) >= 0
                && (library.call.errors_set)(0, std::ptr::null_mut(), std::ptr::null_mut()) >= 0
        };
        done.then_some(Self { library, function, data })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // SAFETY: these are what the library returned.
        unsafe {
            (self.library.call.errors_set)(0, self.function, self.data);
            (self.library.call.errors_clear)(0);
        }
    }
}

/// The errors of a call that failed. They are on libhdf5's stack again when this is dropped, although we called it meanwhile.
pub(crate) struct SetAside<'a> {
    library: &'a Library,
    errors: Id,
}

impl<'a> SetAside<'a> {
    /// Takes the errors.
    pub fn new(library: &'a Library) -> Self {
        // SAFETY: the function takes nothing.
        Self { library, errors: unsafe { (library.call.errors_take)() } }
    }

    /// Drops the errors: the call has succeeded after all.
    pub fn forget(mut self) {
        let errors = std::mem::take(&mut self.errors);
        drop(Held::new(self.library, errors));
    }
}

impl Drop for SetAside<'_> {
    fn drop(&mut self) {
        if self.errors > 0 {
            // SAFETY: the stack is the one that we took.
            unsafe { (self.library.call.errors_put_back)(self.errors) };
        }
    }
}

/// An identifier that we release.
pub(crate) struct Held<'a> {
    library: &'a Library,
    pub id: Id,
}

impl<'a> Held<'a> {
    /// `None` for the identifier of a failed call.
    pub fn new(library: &'a Library, id: Id) -> Option<Self> {
        (id > 0).then_some(Self { library, id })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: the identifier is ours.
        unsafe { (self.library.call.id_release)(self.id) };
    }
}
