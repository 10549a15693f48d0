//! The functions of libhdf5 that we call: their names and signatures, said once.
//!
//! Signatures are the same in HDF5 1.10 to 2.2, except those of `ObjectInfo`. Before 1.10 identifiers had 32 bits, and none
//! of this may be called.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute_copy;

use crate::Id;

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
                        $($field: transmute_copy::<
                            *mut c_void, unsafe extern "C" fn($($argument),*) -> $result,
                        >(&$field),)*
                    })
                }
            }
        }
    };
}

functions! {
    /// What every libhdf5 since 1.10 has.
    Functions:
    id_type c"H5Iget_type" (Id) -> c_int;
    id_file c"H5Iget_file_id" (Id) -> Id;
    id_name c"H5Iget_name" (Id, *mut c_char, usize) -> isize;
    id_keep c"H5Iinc_ref" (Id) -> c_int;
    id_release c"H5Idec_ref" (Id) -> c_int;
    id_references c"H5Iget_ref" (Id) -> c_int;
    errors_are_new c"H5Eauto_is_v2" (Id, *mut c_uint) -> c_int;
    errors_get c"H5Eget_auto2" (Id, *mut *mut c_void, *mut *mut c_void) -> c_int;
    errors_set c"H5Eset_auto2" (Id, *mut c_void, *mut c_void) -> c_int;
    errors_take c"H5Eget_current_stack" () -> Id;
    errors_put_back c"H5Eset_current_stack" (Id) -> c_int;
    errors_clear c"H5Eclear2" (Id) -> c_int;
    file_intent c"H5Fget_intent" (Id, *mut c_uint) -> c_int;
    file_name c"H5Fget_name" (Id, *mut c_char, usize) -> isize;
    file_properties c"H5Fget_access_plist" (Id) -> Id;
    file_objects c"H5Fget_obj_ids" (Id, c_uint, usize, *mut Id) -> isize;
    file_handle c"H5Fget_vfd_handle" (Id, Id, *mut *mut c_void) -> c_int;
    array_space c"H5Dget_space" (Id) -> Id;
    array_type c"H5Dget_type" (Id) -> Id;
    array_properties c"H5Dget_create_plist" (Id) -> Id;
    array_access c"H5Dget_access_plist" (Id) -> Id;
    array_allocation c"H5Dget_space_status" (Id, *mut c_int) -> c_int;
    array_stored_nbytes c"H5Dget_storage_size" (Id) -> u64;
    properties_create c"H5Pcreate" (Id) -> Id;
    properties_driver c"H5Pget_driver" (Id) -> Id;
    properties_are_of c"H5Pisa_class" (Id, Id) -> c_int;
    properties_equal c"H5Pequal" (Id, Id) -> c_int;
    properties_copy c"H5Pcopy" (Id) -> Id;
    properties_copy_one c"H5Pcopy_prop" (Id, Id, *const c_char) -> c_int;
    properties_layout c"H5Pget_layout" (Id) -> c_int;
    properties_external c"H5Pget_external_count" (Id) -> c_int;
    properties_chunk c"H5Pget_chunk" (Id, c_int, *mut u64) -> c_int;
    properties_filters c"H5Pget_nfilters" (Id) -> c_int;
    properties_filter c"H5Pget_filter2"
        (Id, c_uint, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint) -> c_int;
    properties_fill_time c"H5Pget_fill_time" (Id, *mut c_int) -> c_int;
    properties_fill_value c"H5Pfill_value_defined" (Id, *mut c_int) -> c_int;
    properties_cache c"H5Pget_chunk_cache" (Id, *mut usize, *mut usize, *mut f64) -> c_int;
    filter_is_here c"H5Zfilter_avail" (c_int) -> c_int;
    filter_info c"H5Zget_filter_info" (c_int, *mut c_uint) -> c_int;
    type_class c"H5Tget_class" (Id) -> c_int;
    type_order c"H5Tget_order" (Id) -> c_int;
    type_set_order c"H5Tset_order" (Id, c_int) -> c_int;
    type_sign c"H5Tget_sign" (Id) -> c_int;
    type_nbytes c"H5Tget_size" (Id) -> usize;
    type_copy c"H5Tcopy" (Id) -> Id;
    type_super c"H5Tget_super" (Id) -> Id;
    type_equal c"H5Tequal" (Id, Id) -> c_int;
    type_find c"H5Tfind" (Id, Id, *mut *mut c_void) -> usize;
    type_is_hard c"H5Tcompiler_conv" (Id, Id) -> c_int;
    type_is_text c"H5Tis_variable_str" (Id) -> c_int;
    member_count c"H5Tget_nmembers" (Id) -> c_int;
    member_name c"H5Tget_member_name" (Id, c_uint) -> *mut c_char;
    member_type c"H5Tget_member_type" (Id, c_uint) -> Id;
    array_ndim c"H5Tget_array_ndims" (Id) -> c_int;
    array_shape c"H5Tget_array_dims2" (Id, *mut u64) -> c_int;
    free c"H5free_memory" (*mut c_void) -> c_int;
    space_create c"H5Screate_simple" (c_int, *const u64, *const u64) -> Id;
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
    points c"H5Sget_select_elem_pointlist" (Id, u64, u64, *mut u64) -> c_int;
    select_hyperslab c"H5Sselect_hyperslab" (Id, c_int, *const u64, *const u64, *const u64, *const u64) -> c_int;
}

functions! {
    /// What is needed besides to write: since 1.10.4 it is there, and does what we need.
    Writing:
    write_chunk c"H5Dwrite_chunk" (Id, Id, u32, *const u64, usize, *const c_void) -> c_int;
    chunk_nbytes c"H5Dget_chunk_storage_size" (Id, *const u64, *mut u64) -> c_int;
    fill_value c"H5Pget_fill_value" (Id, Id, *mut c_void) -> c_int;
    chunk_options c"H5Pget_chunk_opts" (Id, *mut c_uint) -> c_int;
    check_bounds c"H5Pset_libver_bounds" (Id, c_int, c_int) -> c_int;
    set_virtual c"H5Pset_virtual" (Id, Id, *const c_char, *const c_char, Id) -> c_int;
    set_evict_on_close c"H5Pset_evict_on_close" (Id, bool) -> c_int;
    set_index_width c"H5Pset_istore_k" (Id, c_uint) -> c_int;
    set_heap_nbytes c"H5Pset_local_heap_size_hint" (Id, usize) -> c_int;
    set_bounds c"H5Fset_libver_bounds" (Id, c_int, c_int) -> c_int;
    comment c"H5Oget_comment" (Id, *mut c_char, usize) -> isize;
    plugins c"H5PLget_loading_state" (*mut c_uint) -> c_int;
    set_plugins c"H5PLset_loading_state" (c_uint) -> c_int;
}

/// What is needed besides for a file driver of ours.
pub(crate) struct Driving {
    pub register: unsafe extern "C" fn(*const c_void) -> Id,
    pub set_driver: unsafe extern "C" fn(Id, Id, *const c_void) -> c_int,
    pub driver_information: unsafe extern "C" fn(Id) -> *const c_void,
    /// Its last arguments are a text with codes, and what stands for these.
    pub push: unsafe extern "C" fn(
        Id,
        *const c_char,
        *const c_char,
        c_uint,
        Id,
        Id,
        Id,
        *const c_char,
        ...
    ) -> c_int,
    /// What errors are said to be.
    pub error_class: *const Id,
    pub of_drivers: *const Id,
    pub open_failed: *const Id,
    pub read_failed: *const Id,
}

impl Driving {
    /// # Safety
    /// As for `PlainDriver::find`.
    pub unsafe fn find(
        find: impl Fn(&CStr) -> *mut c_void,
        variable: impl Fn(&CStr) -> *mut c_void,
    ) -> Option<Self> {
        let here = |address: *mut c_void| Some(address).filter(|address| !address.is_null());
        let number = |name| Some(here(variable(name))?.cast_const().cast::<Id>());
        // SAFETY: the functions of these names have these signatures.
        unsafe {
            Some(Self {
                register: transmute_copy(&here(find(c"H5FDregister"))?),
                set_driver: transmute_copy(&here(find(c"H5Pset_driver"))?),
                driver_information: transmute_copy(&here(find(c"H5Pget_driver_info"))?),
                push: transmute_copy(&here(find(c"H5Epush2"))?),
                error_class: number(c"H5E_ERR_CLS_g")?,
                of_drivers: number(c"H5E_VFL_g")?,
                open_failed: number(c"H5E_CANTOPENFILE_g")?,
                read_failed: number(c"H5E_READERROR_g")?,
            })
        }
    }
}

/// `H5get_libversion`, which all versions have.
pub(crate) type Version = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint) -> c_int;

/// `H5Pget_dxpl_mpio`, which only parallel builds have.
pub(crate) type TransferMode = unsafe extern "C" fn(Id, *mut c_int) -> c_int;

/// Where an object is: its signature is another one in HDF5 before 1.10.3.
pub(crate) enum ObjectInfo {
    /// `H5Oget_info3`, or `H5Oget_info2`: it is told which fields to fill in.
    Fields(unsafe extern "C" fn(Id, *mut c_void, c_uint) -> c_int),
    /// `H5Oget_info`, which fills in all.
    Whole(unsafe extern "C" fn(Id, *mut c_void) -> c_int),
}

impl ObjectInfo {
    /// # Safety
    /// As for `Functions::find`.
    pub unsafe fn find(find: impl Fn(&CStr) -> *mut c_void) -> Option<Self> {
        let present = |name| Some(find(name)).filter(|address| !address.is_null());
        // SAFETY: the functions of these names have these signatures.
        unsafe {
            match present(c"H5Oget_info3").or_else(|| present(c"H5Oget_info2")) {
                Some(address) => Some(Self::Fields(transmute_copy(&address))),
                None => Some(Self::Whole(transmute_copy(&present(c"H5Oget_info")?))),
            }
        }
    }
}

/// The identifier of the plain driver: a variable, and in newer versions what a function returns.
pub(crate) enum PlainDriver {
    Variable(*const Id),
    Function(unsafe extern "C" fn() -> Id),
}

impl PlainDriver {
    /// # Safety
    /// As for `Functions::find`; `variable` must return the addresses of variables of the same library.
    pub unsafe fn find(
        find: impl Fn(&CStr) -> *mut c_void,
        variable: impl Fn(&CStr) -> *mut c_void,
    ) -> Option<Self> {
        let function = find(c"H5FD_sec2_init");
        if !function.is_null() {
            // SAFETY: the function of this name has this signature.
            return Some(Self::Function(unsafe { transmute_copy(&function) }));
        }
        let address = variable(c"H5FD_SEC2_id_g");
        (!address.is_null()).then(|| Self::Variable(address.cast_const().cast()))
    }
}
