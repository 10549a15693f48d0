//! Where calls of the functions that we replace arrive: a few instructions that keep the arguments, and go on with what
//! `hooks` decides.
//!
//! A call that is passed on is a jump to the real function, with everything as the program left it: it takes nothing of
//! the program's stack. Rust has no other way to do that, nor to find the address that the call returns to.

#![allow(unsafe_code, non_snake_case)]

use std::ffi::{CStr, c_void};

use hyperslab_libhdf5::Real;

use crate::hooks;

/// A call, as these instructions put it on the stack.
#[repr(C)]
pub(crate) struct Called {
    /// The address that the call returns to; in the uppermost byte, the number of the entry's library.
    pub caller: usize,
    sixth: usize,
    fifth: usize,
    fourth: usize,
    third: usize,
    /// The second argument.
    pub second: usize,
    /// The first argument.
    pub first: usize,
    returns_to: usize,
    /// The seventh argument, of functions that have so many.
    pub seventh: usize,
}

/// The first six arguments.
pub(crate) type Arguments = (usize, usize, usize, usize, usize, usize);

impl Called {
    /// The first six arguments.
    pub fn arguments(&self) -> Arguments {
        (self.first, self.second, self.third, self.fourth, self.fifth, self.sixth)
    }
}

/// How a call goes on.
#[repr(C)]
pub(crate) struct Next {
    /// Where to jump; 0 if the call is done.
    jump: usize,
    /// What it returns then.
    result: usize,
}

impl Next {
    /// The function does the call as if nobody had been here.
    pub fn jump(function: Real) -> Self {
        Self { jump: function as usize, result: 0 }
    }

    /// The call is done.
    pub fn done(result: usize) -> Self {
        Self { jump: 0, result }
    }
}

/// How many libraries have entries of their own.
pub(crate) const LIBRARY_COUNT: usize = 7;
/// Where the number of the entry's library is in `Called::caller`.
pub(crate) const LIBRARY_SHIFT: u32 = 56;

#[cfg(target_arch = "x86_64")]
macro_rules! instructions {
    ($library:expr, $inner:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "push rdi",
            ".cfi_adjust_cfa_offset 8",
            "push rsi",
            ".cfi_adjust_cfa_offset 8",
            "push rdx",
            ".cfi_adjust_cfa_offset 8",
            "push rcx",
            ".cfi_adjust_cfa_offset 8",
            "push r8",
            ".cfi_adjust_cfa_offset 8",
            "push r9",
            ".cfi_adjust_cfa_offset 8",
            "push qword ptr [rsp + 48]",
            ".cfi_adjust_cfa_offset 8",
            "mov byte ptr [rsp + 7], {library}",
            "mov rdi, rsp",
            "call {inner}",
            "test rax, rax",
            "jne 2f",
            "mov rax, rdx",
            "add rsp, 56",
            ".cfi_remember_state",
            ".cfi_adjust_cfa_offset -56",
            "ret",
            ".cfi_restore_state",
            "2:",
            "mov r11, rax",
            "add rsp, 8",
            ".cfi_adjust_cfa_offset -8",
            "pop r9",
            ".cfi_adjust_cfa_offset -8",
            "pop r8",
            ".cfi_adjust_cfa_offset -8",
            "pop rcx",
            ".cfi_adjust_cfa_offset -8",
            "pop rdx",
            ".cfi_adjust_cfa_offset -8",
            "pop rsi",
            ".cfi_adjust_cfa_offset -8",
            "pop rdi",
            ".cfi_adjust_cfa_offset -8",
            "jmp r11",
            ".cfi_endproc",
            library = const $library,
            inner = sym $inner,
        )
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! instructions {
    ($library:expr, $inner:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "sub sp, sp, #80",
            ".cfi_adjust_cfa_offset 80",
            "str x30, [sp, #56]",
            ".cfi_rel_offset x30, 56",
            "mov x9, x30",
            "movk x9, #({library} << 8), lsl #48",
            "stp x9, x5, [sp]",
            "stp x4, x3, [sp, #16]",
            "stp x2, x1, [sp, #32]",
            "str x0, [sp, #48]",
            "str x6, [sp, #64]",
            "mov x0, sp",
            "bl {inner}",
            "ldr x30, [sp, #56]",
            "cbnz x0, 2f",
            "mov x0, x1",
            "add sp, sp, #80",
            ".cfi_remember_state",
            ".cfi_restore x30",
            ".cfi_adjust_cfa_offset -80",
            "ret",
            ".cfi_restore_state",
            "2:",
            "mov x16, x0",
            "ldp x9, x5, [sp]",
            "ldp x4, x3, [sp, #16]",
            "ldp x2, x1, [sp, #32]",
            "ldr x0, [sp, #48]",
            "ldr x6, [sp, #64]",
            "add sp, sp, #80",
            ".cfi_restore x30",
            ".cfi_adjust_cfa_offset -80",
            "br x16",
            ".cfi_endproc",
            library = const $library,
            inner = sym $inner,
        )
    };
}

macro_rules! entries {
    ($($name:ident $inner:ident;)*) => {
        $(
            #[doc = concat!("Replaces `", stringify!($name), "` for whoever calls it.")]
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                instructions!(0, hooks::$inner)
            }
        )*

        /// Entries for the libraries by their numbers: who comes here means that library's function.
        mod own {
            use super::hooks;

            $(
                #[unsafe(naked)]
                pub(super) unsafe extern "C" fn $inner<const LIBRARY: u8>() {
                    instructions!(LIBRARY, hooks::$inner)
                }
            )*
        }

        /// The names of all functions that we replace, in the order of `Hook`.
        const NAMES: &[&CStr] = &[$(c_name(concat!(stringify!($name), "\0"))),*];

        /// The entries: first those for whoever calls, then each library's.
        static ENTRIES: [&[unsafe extern "C" fn()]; LIBRARY_COUNT + 1] = [
            &[$($name),*],
            &[$(own::$inner::<1>),*],
            &[$(own::$inner::<2>),*],
            &[$(own::$inner::<3>),*],
            &[$(own::$inner::<4>),*],
            &[$(own::$inner::<5>),*],
            &[$(own::$inner::<6>),*],
            &[$(own::$inner::<7>),*],
        ];
    };
}

entries! {
    H5Dread read;
    H5Dread_multi read_multi;
    H5Dread_chunk read_chunk;
    H5Dread_chunk1 read_chunk1;
    H5Dread_chunk2 read_chunk2;
    H5Dwrite write;
    H5Dwrite_multi write_multi;
    H5Dwrite_chunk write_chunk;
    H5Dset_extent set_extent;
    H5Dextend extend;
    H5Drefresh refresh;
    H5close close_library;
    H5Fopen open;
    H5Fcreate create;
    H5Fclose close;
    H5Dclose close_array;
    H5Oclose close_object;
    H5Idec_ref release;
}

/// Defines entries for functions of libc.
macro_rules! entries_of_libc {
    ($($(#[doc = $said:literal])* $name:ident $inner:ident;)*) => {
        $(
            $(#[doc = $said])*
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                instructions!(0, hooks::$inner)
            }
        )*
    };
}

entries_of_libc! {
    /// Programs look up functions of libhdf5 by it.
    dlsym look_up;
    /// The process becomes another user, by this one or one of the next three.
    setuid set_user;
    /// As above.
    seteuid set_effective_user;
    /// As above.
    setreuid set_both_users;
    /// As above.
    setresuid set_all_users;
}

/// A name that ends with a zero, as the macro above makes it.
const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

/// The number of a function that we replace, in the order of `Hook`.
pub(crate) fn hook_number(name: &CStr) -> Option<usize> {
    NAMES.iter().position(|replaced| *replaced == name)
}

/// The name of a function that we replace.
pub(crate) fn hook_name(number: usize) -> &'static CStr {
    NAMES[number]
}

/// Where calls of a function arrive whoever means it (0), or that mean a library, by its number; `None` if there are no
/// entries for so many.
pub(crate) fn entry(library: usize, hook: usize) -> Option<*mut c_void> {
    Some(ENTRIES.get(library)?[hook] as *mut c_void)
}
