//! The functions that the dynamic linker finds here in place of libhdf5's and libc's.
//!
//! Each of libhdf5's begins with a few instructions that keep all six arguments and add a seventh: the address that the
//! call returns to, which tells who calls. Rust has no other way to find it.

#![allow(unsafe_code, non_snake_case)]

use std::ffi::{CStr, c_int};
use std::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::callers::{Hook, Site, site};
use crate::counts::{self, Count};
use crate::fallback::pass_on;
use crate::libhdf5::{Id, Real};
use crate::reason::Reason;
use crate::recording::{self, Asked, Operation, Part};
use crate::request::Call;
use crate::serving::{Outcome, opened, serve};
use crate::settings::is_serving;
use crate::several::{Lists, Rest};
use crate::{callers, files, known, prefetching, settings};

/// What libhdf5's functions return if they fail.
const FAILURE: usize = usize::MAX;
/// `H5F_ACC_RDWR`.
const WRITABLE: usize = 1;

macro_rules! hooks {
    ($($name:ident $inner:ident $link:literal;)*) => {
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
                core::arch::naked_asm!(concat!("mov ", $link, ", x30"), "b {inner}", inner = sym $inner)
            }
        )*

        /// The functions that we replace by their names.
        pub(crate) static REPLACED: &[(&CStr, unsafe extern "C" fn())] =
            &[$((c_name(concat!(stringify!($name), "\0")), $name)),*];
    };
}

// The register is the one in which ARM64 passes the address that a call returns to: after the last argument.
hooks! {
    H5Dread read "x6";
    H5Dread_multi read_multi "x7";
    H5Dread_chunk read_chunk "x6";
    H5Dread_chunk1 read_chunk1 "x6";
    H5Dread_chunk2 read_chunk2 "x6";
    H5Dwrite write "x6";
    H5Dwrite_multi write_multi "x7";
    H5Dwrite_chunk write_chunk "x6";
    H5Dset_extent set_extent "x6";
    H5Dextend extend "x6";
    H5Drefresh refresh "x6";
    H5close close_library "x6";
    H5Fopen open "x6";
    H5Fcreate create "x6";
    H5Fclose close "x6";
}

/// A name that ends with a zero, as the macro above makes it.
const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

type Arguments = (usize, usize, usize, usize, usize, usize);

/// Defines functions that stand for some with seven arguments. x86-64 passes the seventh on the stack, above the address
/// that the call returns to; ARM64 in a register.
macro_rules! with_seven_arguments {
    ($(#[doc = $said:literal] fn $name:ident $inner:ident;)*) => {
        $(
            #[doc = $said]
            #[cfg(target_arch = "x86_64")]
            #[allow(clippy::too_many_arguments)]
            unsafe extern "C" fn $name(
                first: usize, second: usize, third: usize, fourth: usize, fifth: usize, sixth: usize,
                caller: usize, _returns_to: usize, seventh: usize,
            ) -> usize {
                $inner(caller, (first, second, third, fourth, fifth, sixth), seventh)
            }

            #[doc = $said]
            #[cfg(not(target_arch = "x86_64"))]
            #[allow(clippy::too_many_arguments)]
            unsafe extern "C" fn $name(
                first: usize, second: usize, third: usize, fourth: usize, fifth: usize, sixth: usize,
                seventh: usize, caller: usize,
            ) -> usize {
                $inner(caller, (first, second, third, fourth, fifth, sixth), seventh)
            }
        )*
    };
}

with_seven_arguments! {
    /// Several arrays at once.
    fn read_multi several_read;
    /// Several arrays at once.
    fn write_multi several_written;
}

/// Defines functions that stand for some with at most six arguments, which pass through and are recorded. The function at
/// the end tells from the arguments what the call asks for.
macro_rules! recorded {
    ($($name:ident $hook:ident $asked:ident;)*) => {
        $(
            unsafe extern "C" fn $name(
                first: usize, second: usize, third: usize, fourth: usize, fifth: usize, sixth: usize, caller: usize,
            ) -> usize {
                let Some(site) = site(Hook::$hook, caller) else { return FAILURE };
                let arguments = (first, second, third, fourth, fifth, sixth);
                let begun = recording::begin(site);
                let result = pass(site, arguments);
                recording::note(begun, site, &$asked(arguments), result);
                result
            }
        )*
    };
}

recorded! {
    read_chunk ReadChunk read_of_chunk;
    read_chunk1 ReadChunk1 read_of_chunk;
    read_chunk2 ReadChunk2 read_of_chunk;
    write Write written;
    write_chunk WriteChunk write_of_chunk;
}

fn shapes_changed() {
    recording::shapes_changed();
}

/// libhdf5 begins anew to number the files and objects that it opens.
fn library_closed() {
    known::library_closed();
    recording::identifiers_changed();
}

/// Defines functions that stand for some after which we have to ask again.
macro_rules! changing {
    ($($name:ident $hook:ident $changed:ident;)*) => {
        $(
            unsafe extern "C" fn $name(
                first: usize, second: usize, third: usize, fourth: usize, fifth: usize, sixth: usize, caller: usize,
            ) -> usize {
                let Some(site) = site(Hook::$hook, caller) else { return FAILURE };
                let result = pass(site, (first, second, third, fourth, fifth, sixth));
                $changed();
                result
            }
        )*
    };
}

changing! {
    set_extent SetExtent shapes_changed;
    extend Extend shapes_changed;
    refresh Refresh shapes_changed;
    close_library CloseLibrary library_closed;
}

/// An identifier among the arguments.
fn id(argument: usize) -> Id {
    argument.cast_signed() as Id
}

/// `H5Dwrite`; `H5Dread` has the same arguments.
fn written((array, memory_type, _, space, properties, _): Arguments) -> Asked {
    let part = Part::Space(id(space));
    let (memory_type, properties) = (id(memory_type), id(properties));
    Asked { operation: Operation::Write, array: id(array), memory_type, properties, part }
}

/// `H5Dread_chunk`, in all its versions.
fn read_of_chunk((array, properties, offset, ..): Arguments) -> Asked {
    let part = Part::Chunk(offset as *const u64);
    Asked { operation: Operation::Read, array: id(array), memory_type: 0, properties: id(properties), part }
}

fn write_of_chunk((array, properties, _, offset, ..): Arguments) -> Asked {
    let operation = Operation::Write;
    Asked { operation, ..read_of_chunk((array, properties, offset, 0, 0, 0)) }
}

fn several_read(caller: usize, arguments: Arguments, memory: usize) -> usize {
    let Some(site) = site(Hook::ReadMulti, caller) else { return FAILURE };
    several(site, Operation::Read, arguments, memory)
}

fn several_written(caller: usize, arguments: Arguments, memory: usize) -> usize {
    let Some(site) = site(Hook::WriteMulti, caller) else { return FAILURE };
    several(site, Operation::Write, arguments, memory)
}

fn several(site: &Site, operation: Operation, arguments: Arguments, memory: usize) -> usize {
    let begun = recording::begin(site);
    let is_ours = operation == Operation::Read && is_serving();
    let result =
        if is_ours { serve_several(site, arguments, memory) } else { pass_seven(site, arguments, memory) };
    let (count, arrays, kinds, _, spaces, properties) = arguments;
    let lists = (count, arrays as *const Id, kinds as *const Id, spaces as *const Id);
    // SAFETY: the program says that its lists have so many entries.
    unsafe { recording::note_several(begun, site, operation, lists, id(properties), result) };
    result
}

/// Serves the arrays that are ours, and passes the others on in one call.
fn serve_several(site: &Site, arguments: Arguments, memory: usize) -> usize {
    let (count, arrays, types, spaces, selections, properties) = arguments;
    let lists = Lists {
        count,
        arrays: arrays as *const Id,
        memory_types: types as *const Id,
        memory_spaces: spaces as *const Id,
        file_spaces: selections as *const Id,
        memories: memory as *const *mut u8,
    };
    // SAFETY: the program says that its lists have so many entries.
    let Some(calls) = (unsafe { lists.calls(id(properties)) }) else {
        return pass_seven(site, arguments, memory);
    };
    let rest = Rest::of(&calls, |call| served(site, call).is_none());
    let lists = rest.lists();
    if lists.count == 0 && count > 0 {
        return 0;
    }
    if lists.count == count {
        return pass_seven(site, arguments, memory);
    }
    let (arrays, types) = (lists.arrays as usize, lists.memory_types as usize);
    let (spaces, selections) = (lists.memory_spaces as usize, lists.file_spaces as usize);
    let arguments = (lists.count, arrays, types, spaces, selections, properties);
    pass_seven(site, arguments, lists.memories as usize)
}

/// Calls what the program meant to call.
fn pass(site: &Site, arguments: Arguments) -> usize {
    let (first, second, third, fourth, fifth, sixth) = arguments;
    // SAFETY: these are the program's own arguments.
    unsafe { (site.real)(first, second, third, fourth, fifth, sixth) }
}

/// The same with seven arguments.
fn pass_seven(site: &Site, arguments: Arguments, seventh: usize) -> usize {
    type Real7 = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> usize;
    let (first, second, third, fourth, fifth, sixth) = arguments;
    // SAFETY: as above; the site is that of a function with seven arguments.
    unsafe { transmute::<Real, Real7>(site.real)(first, second, third, fourth, fifth, sixth, seventh) }
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
    let begun = recording::begin(site);
    let result = if is_serving() { serve_or_pass(site, arguments) } else { pass(site, arguments) };
    let asked = Asked { operation: Operation::Read, ..written(arguments) };
    recording::note(begun, site, &asked, result);
    result
}

fn serve_or_pass(site: &Site, arguments: Arguments) -> usize {
    let (array, memory_type, memory_space, file_space, properties, out) = arguments;
    let call = Call {
        array: id(array),
        memory_type: id(memory_type),
        memory_space: id(memory_space),
        file_space: id(file_space),
        properties: id(properties),
        out: out as *mut u8,
    };
    match served(site, &call) {
        None => 0,
        Some(reason @ (Reason::Small | Reason::Invalid)) => {
            pass_on(site, &call, reason, || pass(site, arguments))
        }
        Some(reason) => {
            let begun = Instant::now();
            let result = pass_on(site, &call, reason, || pass(site, arguments));
            counts::add(Count::PassedNanoseconds, counts::nanoseconds(begun.elapsed()));
            counts::write_sometimes();
            result
        }
    }
}

/// Serves a read and counts it: `None` if it was served, or why libhdf5 has to do it.
fn served(site: &Site, call: &Call) -> Option<Reason> {
    // A panic would be our fault, and libhdf5 can still do the read.
    let outcome = catch_unwind(AssertUnwindSafe(|| serve(site, call)));
    match outcome.unwrap_or(Outcome::Passed { reason: Reason::Failed, nbytes: 0 }) {
        Outcome::Served => None,
        Outcome::Passed { reason, nbytes } => {
            counts::add_passed(reason, nbytes);
            Some(reason)
        }
    }
}

/// Opens a file for writing. Other threads may examine the same file meanwhile, and not see yet that it is open.
fn opening_for_writing(open: impl FnOnce() -> usize) -> usize {
    files::writers_changed();
    let result = open();
    files::writers_changed();
    result
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
    let pass = || pass(site, (name, flags, properties, fourth, fifth, sixth));
    if flags & WRITABLE != 0 {
        return opening_for_writing(pass);
    }
    let result = pass();
    if id(result) > 0 && is_serving() {
        opened(site.libhdf5, id(result));
    }
    result
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
    opening_for_writing(|| pass(site, (name, flags, properties, access, fifth, sixth)))
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
    recording::end();
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
        recording::start();
        // SAFETY: the function does only what may be done after a fork.
        unsafe {
            libc::pthread_atfork(Some(forking), Some(has_forked), Some(forked));
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
        recording::end();
    }
    end
};

extern "C" fn forking() {
    prefetching::before_fork();
    known::before_fork();
}

extern "C" fn has_forked() {
    known::after_fork();
    prefetching::after_fork();
}

/// A child that was forked begins anew: locks may be held by threads that it does not have.
extern "C" fn forked() {
    known::forked();
    prefetching::forget();
    counts::start();
    recording::forked();
}
