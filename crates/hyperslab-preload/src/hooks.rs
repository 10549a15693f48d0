//! The functions that the dynamic linker finds here in place of libhdf5's and libc's.
//!
//! Each of libhdf5's begins with a few instructions that keep all six arguments and add a seventh: the address that the
//! call returns to, which tells who calls. Rust has no other way to find it.

#![allow(unsafe_code, non_snake_case)]

use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::callers::{Hook, Site, site};
use crate::counts::{self, Count};
use crate::reason::Reason;
use crate::request::Call;
use crate::serving::{Outcome, serve};
use crate::settings::is_serving;
use crate::{callers, known, prefetching, settings};

/// What libhdf5's functions return if they fail.
const FAILURE: usize = usize::MAX;
/// `H5F_ACC_RDWR`.
const WRITABLE: usize = 1;

macro_rules! hooks {
    ($($name:ident $inner:ident;)*) => {
        $(
            #[doc = concat!("Replaces `", stringify!($name), "`.")]
            #[cfg(target_arch = "x86_64")]
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                core::arch::naked_asm!(
                    ".cfi_startproc",
                    "push qword ptr [rsp]",
                    ".cfi_adjust_cfa_offset 8",
                    "call {inner}",
                    "add rsp, 8",
                    ".cfi_adjust_cfa_offset -8",
                    "ret",
                    ".cfi_endproc",
                    inner = sym $inner,
                )
            }

            #[doc = concat!("Replaces `", stringify!($name), "`.")]
            #[cfg(target_arch = "aarch64")]
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                core::arch::naked_asm!("mov x6, x30", "b {inner}", inner = sym $inner)
            }
        )*
    };
}

hooks! {
    H5Dread read;
    H5Fopen open;
    H5Fcreate create;
    H5Fclose close;
}

/// The functions that we replace by their names.
pub(crate) static REPLACED: [(&CStr, unsafe extern "C" fn()); 4] =
    [(c"H5Dread", H5Dread), (c"H5Fopen", H5Fopen), (c"H5Fcreate", H5Fcreate), (c"H5Fclose", H5Fclose)];

type Arguments = (usize, usize, usize, usize, usize, usize);

/// Calls what the program meant to call.
fn pass(site: &Site, arguments: Arguments) -> usize {
    let (first, second, third, fourth, fifth, sixth) = arguments;
    // SAFETY: these are the program's own arguments.
    unsafe { (site.real)(first, second, third, fourth, fifth, sixth) }
}

unsafe extern "C" fn read(
    array: usize,
    memory_type: usize,
    memory_space: usize,
    file_space: usize,
    properties: usize,
    out: usize,
    caller: usize,
) -> usize {
    let arguments = (array, memory_type, memory_space, file_space, properties, out);
    let Some(site) = site(Hook::Read, caller) else { return FAILURE };
    if !is_serving() {
        return pass(site, arguments);
    }
    let id = usize::cast_signed;
    let call = Call {
        array: id(array) as i64,
        memory_type: id(memory_type) as i64,
        memory_space: id(memory_space) as i64,
        file_space: id(file_space) as i64,
        properties: id(properties) as i64,
        out: out as *mut u8,
    };
    // A panic would be our fault, and libhdf5 can still do the read.
    let outcome = catch_unwind(AssertUnwindSafe(|| serve(site, &call)));
    match outcome.unwrap_or(Outcome::Passed { reason: Reason::Failed, nbytes: 0 }) {
        Outcome::Served => 0,
        Outcome::Passed { reason: reason @ (Reason::Small | Reason::Invalid), nbytes } => {
            counts::add_passed(reason, nbytes);
            pass(site, arguments)
        }
        Outcome::Passed { reason, nbytes } => {
            counts::add_passed(reason, nbytes);
            let begun = Instant::now();
            let result = pass(site, arguments);
            counts::add(Count::PassedNanoseconds, counts::nanoseconds(begun.elapsed()));
            counts::write_sometimes();
            result
        }
    }
}

/// A file that is opened for writing is never ours, nor is it if another libhdf5 opens it.
unsafe extern "C" fn open(
    name: usize,
    flags: usize,
    properties: usize,
    fourth: usize,
    fifth: usize,
    sixth: usize,
    caller: usize,
) -> usize {
    let Some(site) = site(Hook::Open, caller) else { return FAILURE };
    if flags & WRITABLE != 0 {
        known::writers_changed();
    }
    pass(site, (name, flags, properties, fourth, fifth, sixth))
}

unsafe extern "C" fn create(
    name: usize,
    flags: usize,
    properties: usize,
    access: usize,
    fifth: usize,
    sixth: usize,
    caller: usize,
) -> usize {
    let Some(site) = site(Hook::Create, caller) else { return FAILURE };
    known::writers_changed();
    pass(site, (name, flags, properties, access, fifth, sixth))
}

unsafe extern "C" fn close(
    file: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
    sixth: usize,
    caller: usize,
) -> usize {
    let Some(site) = site(Hook::Close, caller) else { return FAILURE };
    let result = pass(site, (file, second, third, fourth, fifth, sixth));
    known::closed();
    result
}

/// Replaces libc's function, which runs nothing at the end of a process.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    end(status)
}

/// The same by its other name.
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    end(status)
}

fn end(status: c_int) -> ! {
    counts::write();
    loop {
        // SAFETY: the system call ends the process.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// The linker calls it when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = {
    extern "C" fn start() {
        settings::settings();
        callers::start();
        std::panic::set_hook(Box::new(|_| {})); // a panic of ours is no message of the program
        counts::start();
        // SAFETY: the function does only what may be done after a fork.
        unsafe {
            libc::pthread_atfork(Some(prefetching::before_fork), Some(prefetching::after_fork), Some(forked));
        }
    }
    start
};

/// The linker calls it when the process ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = {
    extern "C" fn end() {
        prefetching::end();
        counts::write();
    }
    end
};

/// A child that was forked begins anew: locks may be held by threads that it does not have.
extern "C" fn forked() {
    known::forget();
    prefetching::forget();
    counts::start();
}
