//! The functions of libhdf5 that tell what an array is. Their signatures are the same in HDF5 1.10 to 2.2.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::libhdf5::{Id, functions};

functions! {
    /// What the recorder calls besides the functions that serving needs.
    Describing:
    file_name c"H5Fget_name" (Id, *mut c_char, usize) -> isize;
    id_name c"H5Iget_name" (Id, *mut c_char, usize) -> isize;
    stored_nbytes c"H5Dget_storage_size" (Id) -> u64;
    filter c"H5Pget_filter2"
        (Id, c_uint, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint) -> c_int;
    type_sign c"H5Tget_sign" (Id) -> c_int;
    type_super c"H5Tget_super" (Id) -> Id;
    type_is_text c"H5Tis_variable_str" (Id) -> c_int;
    member_count c"H5Tget_nmembers" (Id) -> c_int;
    member_name c"H5Tget_member_name" (Id, c_uint) -> *mut c_char;
    member_type c"H5Tget_member_type" (Id, c_uint) -> Id;
    array_ndim c"H5Tget_array_ndims" (Id) -> c_int;
    array_shape c"H5Tget_array_dims2" (Id, *mut u64) -> c_int;
    free c"H5free_memory" (*mut c_void) -> c_int;
    errors_take c"H5Eget_current_stack" () -> Id;
    errors_put_back c"H5Eset_current_stack" (Id) -> c_int;
}

/// The text that a function writes into a buffer whose length it is told.
pub(crate) fn text(write: impl Fn(*mut c_char, usize) -> isize) -> Option<String> {
    let length = usize::try_from(write(std::ptr::null_mut(), 0)).ok().filter(|&length| length > 0)?;
    let mut bytes = vec![0_u8; length.checked_add(1)?];
    write(bytes.as_mut_ptr().cast(), bytes.len());
    Some(CStr::from_bytes_until_nul(&bytes).ok()?.to_string_lossy().into_owned())
}
