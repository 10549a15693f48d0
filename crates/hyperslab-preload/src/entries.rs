//! Where calls of some functions arrive by the names of these, so that the linker takes our entries for them. All others have
//! stubs without names, which `binding` gives to the modules of the program.

#![allow(unsafe_code, non_snake_case)]

use std::ffi::{CStr, c_void};

use crate::hooks;
use crate::instructions::{Called, Next, arrive};

#[cfg(target_arch = "x86_64")]
macro_rules! arrive_as {
    ($number:expr) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "mov r11d, {number}",
            "jmp {arrive}",
            ".cfi_endproc",
            number = const $number,
            arrive = sym arrive,
        )
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! arrive_as {
    ($number:expr) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "mov x17, #{number}",
            "b {arrive}",
            ".cfi_endproc",
            number = const $number,
            arrive = sym arrive,
        )
    };
}

/// Defines entries by the names of functions, and what is done with calls that arrive there. Nothing is done with those
/// that only have to be caught because programs begin by them.
macro_rules! entries {
    ($($name:ident $($act:path)?;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Number {
            $($name,)*
        }

        $(
            #[doc = concat!("Replaces `", stringify!($name), "` for whoever calls it.")]
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                arrive_as!(Number::$name as usize)
            }
        )*

        /// All entries: their names, where they are, and what is done there.
        static ENTRIES: &[(&CStr, unsafe extern "C" fn(), Option<Act>)] = &[
            $((c_name(concat!(stringify!($name), "\0")), $name, act!($($act)?)),)*
        ];
    };
}

macro_rules! act {
    () => {
        None
    };
    ($act:path) => {
        Some($act)
    };
}

/// What is done with a call.
pub(crate) type Act = unsafe extern "C-unwind" fn(&Called) -> Next;

entries! {
    H5Dread hooks::read;
    H5Dread_multi hooks::read_multi;
    H5Dread_chunk hooks::read_chunk;
    H5Dread_chunk1 hooks::read_chunk1;
    H5Dread_chunk2 hooks::read_chunk2;
    H5Dwrite hooks::write;
    H5Dwrite_multi hooks::write_multi;
    H5Dwrite_chunk hooks::write_chunk;
    H5Dset_extent hooks::set_extent;
    H5Dextend hooks::extend;
    H5Drefresh hooks::refresh;
    H5close hooks::close_library;
    H5Fopen hooks::open;
    H5Fcreate hooks::create;
    H5Fclose hooks::close;
    H5Dclose hooks::close_array;
    H5Oclose hooks::close_object;
    H5Idec_ref hooks::release;
    nc_open;
    nc__open;
    nc_open_mem;
    nc_open_par;
    nc_create;
    nc__create;
    nc_create_mem;
    nc_create_par;
    dlsym hooks::look_up;
    setuid hooks::set_user;
    seteuid hooks::set_effective_user;
    setreuid hooks::set_both_users;
    setresuid hooks::set_all_users;
}

/// How many entries stand for functions of libhdf5, in the order of `Hook`; behind them, how many for netCDF-C's.
pub(crate) const HOOK_COUNT: usize = Number::H5Idec_ref as usize + 1;
pub(crate) const REPLACED_COUNT: usize = Number::nc_create_par as usize + 1;

/// A name that ends with a zero, as the macro above makes it.
const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

/// The number of the entry for a function of libhdf5's or netCDF-C's, if it has one: below `HOOK_COUNT`, that of a `Hook`.
pub(crate) fn entry_number(name: &CStr) -> Option<usize> {
    ENTRIES[..REPLACED_COUNT].iter().position(|(replaced, ..)| *replaced == name)
}

/// The name of a function that has an entry.
pub(crate) fn entry_name(number: usize) -> &'static CStr {
    ENTRIES[number].0
}

/// Where calls of a function arrive whoever means it.
pub(crate) fn entry(number: usize) -> *mut c_void {
    ENTRIES[number].1 as *mut c_void
}

/// What is done with calls of a function; `None` if nothing is.
#[inline]
pub(crate) fn act(number: usize) -> Option<Act> {
    ENTRIES.get(number)?.2
}
