//! Where calls arrive and go on. Some do by the names of functions, so that the linker takes our entries for them. All others have
//! stubs without names, which `binding` gives to the modules of the program.
//!
//! A call that is passed on is a jump to the real function, with everything as the program left it: it takes nothing of the
//! program's stack. If something must be done after it, `call` makes it again. The tables for unwinding are right at each
//! instruction, so exceptions and the end of a thread pass through.

#![allow(unsafe_code, non_snake_case)]

use std::ffi::CStr;

use crate::gates::gate_at;
use crate::instructions::{Act, Called, Frame, MOST_WORDS, Next, call};
use crate::lock::Lock;
use crate::settling::Settling;
use crate::stand_ins::{self, Entry, HOOK_COUNT, STUB_COUNT, STUB_NBYTES, StandIns, entry_name};
use crate::{callers, far, hooks, stack, write_queue, writing};

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
        static ENTRIES: &[Entry] = &[
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
    nc_open far::netcdf::open;
    nc__open far::netcdf::open_with_hint;
    nc_close far::netcdf::close;
    nc_abort far::netcdf::close;
    nc_inq_path far::netcdf::path;
    nc_strerror far::netcdf::error_text;
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

const _: () = assert!(Number::H5Idec_ref as usize + 1 == HOOK_COUNT);
/// How many entries stand for functions of libhdf5 and netCDF-C; behind them are libc's.
const REPLACED_COUNT: usize = Number::nc_create_par as usize + 1;

/// A name that ends with a zero, as the macro above makes it.
const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

/// Tells where the entries and the stubs are: before anything is bound, and before a call is looked at.
#[inline]
pub(crate) fn tell() {
    stand_ins::tell(|| StandIns {
        entries: &ENTRIES[..REPLACED_COUNT],
        // The first stub begins at the next multiple of its size.
        first_stub: (stubs as *const () as usize).next_multiple_of(STUB_NBYTES),
    });
}

/// Keeps all arguments of a call in a `Frame`, and asks where it goes on: by a jump, or back with a result.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn arrive() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, 208",
        "mov [rbp - 8], rdi",
        "mov [rbp - 16], rsi",
        "mov [rbp - 24], rdx",
        "mov [rbp - 32], rcx",
        "mov [rbp - 40], r8",
        "mov [rbp - 48], r9",
        "mov [rbp - 72], rax",
        "mov [rbp - 80], r11",
        "mov r11, [rbp + 8]",
        "mov [rbp - 56], r11",
        "movaps [rbp - 208], xmm0",
        "movaps [rbp - 192], xmm1",
        "movaps [rbp - 176], xmm2",
        "movaps [rbp - 160], xmm3",
        "movaps [rbp - 144], xmm4",
        "movaps [rbp - 128], xmm5",
        "movaps [rbp - 112], xmm6",
        "movaps [rbp - 96], xmm7",
        "mov rdi, rsp",
        "call {arrived}",
        "movaps xmm0, [rbp - 208]",
        "movaps xmm1, [rbp - 192]",
        "test rax, rax",
        "jne 2f",
        "mov rax, [rbp - 72]",
        "mov rdx, [rbp - 64]",
        "leave",
        ".cfi_remember_state",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_restore_state",
        "2:",
        "mov r11, rax",
        "movaps xmm2, [rbp - 176]",
        "movaps xmm3, [rbp - 160]",
        "movaps xmm4, [rbp - 144]",
        "movaps xmm5, [rbp - 128]",
        "movaps xmm6, [rbp - 112]",
        "movaps xmm7, [rbp - 96]",
        "mov rax, [rbp - 72]",
        "mov r9, [rbp - 48]",
        "mov r8, [rbp - 40]",
        "mov rcx, [rbp - 32]",
        "mov rdx, [rbp - 24]",
        "mov rsi, [rbp - 16]",
        "mov rdi, [rbp - 8]",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "jmp r11",
        ".cfi_endproc",
        arrived = sym arrived,
    )
}

/// Keeps all arguments of a call in a `Frame`, and asks where it goes on: by a jump, or back with a result.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn arrive() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset x29, -16",
        ".cfi_offset x30, -8",
        "mov x29, sp",
        ".cfi_def_cfa x29, 16",
        "sub sp, sp, #224",
        "stp q0, q1, [sp]",
        "stp q2, q3, [sp, #32]",
        "stp q4, q5, [sp, #64]",
        "stp q6, q7, [sp, #96]",
        "stp x17, x8, [sp, #128]",
        "stp x30, x7, [sp, #152]",
        "stp x6, x5, [sp, #168]",
        "stp x4, x3, [sp, #184]",
        "stp x2, x1, [sp, #200]",
        "str x0, [sp, #216]",
        "mov x0, sp",
        "bl {arrived}",
        "ldp q0, q1, [sp]",
        "ldp q2, q3, [sp, #32]",
        "cbnz x0, 2f",
        "ldp x0, x1, [sp, #136]",
        "mov sp, x29",
        "ldp x29, x30, [sp], #16",
        ".cfi_remember_state",
        ".cfi_restore x29",
        ".cfi_restore x30",
        ".cfi_def_cfa sp, 0",
        "ret",
        ".cfi_restore_state",
        "2:",
        "mov x16, x0",
        "ldp q4, q5, [sp, #64]",
        "ldp q6, q7, [sp, #96]",
        "ldr x8, [sp, #136]",
        "ldr x7, [sp, #160]",
        "ldp x6, x5, [sp, #168]",
        "ldp x4, x3, [sp, #184]",
        "ldp x2, x1, [sp, #200]",
        "ldr x0, [sp, #216]",
        "mov sp, x29",
        "ldp x29, x30, [sp], #16",
        ".cfi_restore x29",
        ".cfi_restore x30",
        ".cfi_def_cfa sp, 0",
        "br x16",
        ".cfi_endproc",
        arrived = sym arrived,
    )
}

/// All stubs, one after the other. Each leaves its own address in a register that functions need not keep.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn stubs() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        ".rept {count}",
        ".balign 16",
        "lea r11, [rip - 7]",
        "jmp {arrive}",
        ".endr",
        ".cfi_endproc",
        count = const STUB_COUNT,
        arrive = sym arrive,
    )
}

/// All stubs, one after the other. Each leaves its own address in a register that functions need not keep.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn stubs() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        ".balign 8",
        ".rept {count}",
        "adr x17, .",
        "b {arrive}",
        ".endr",
        ".cfi_endproc",
        count = const STUB_COUNT,
        arrive = sym arrive,
    )
}

/// A call has arrived. Returns where it goes on; 0 if it is done, and the frame has its result.
unsafe extern "C-unwind" fn arrived(frame: *mut Frame) -> usize {
    // SAFETY: the instructions that call this have put the frame on the stack.
    let (entry, called) = unsafe { ((*frame).entry, &mut (*frame).called) };
    if let Some(gate) = gate_at(entry) {
        called.caller |= gate.library;
        return pass_through(frame, gate.real, gate.act, gate.lock, || gate.settling);
    }
    tell();
    let act = ENTRIES.get(entry).and_then(|(_, _, act)| *act);
    if entry >= REPLACED_COUNT {
        return pass_through(frame, 0, act, None, || Settling::Never); // libc's
    }
    match callers::meant(entry, called) {
        Some((real, lock)) => pass_through(frame, real, act, lock, || Settling::of(entry_name(entry))),
        None => pass_through(frame, 0, Some(failed), None, || Settling::Never),
    }
}

/// Nobody has the function. libhdf5's and netCDF-C's return negative numbers if they fail.
unsafe extern "C-unwind" fn failed(_: &Called, _: usize) -> Next {
    Next::done(usize::MAX)
}

#[inline]
fn pass_through(
    frame: *mut Frame,
    real: usize,
    act: Option<Act>,
    lock: Option<&'static Lock>,
    settling: impl FnOnce() -> Settling,
) -> usize {
    // The lock is held until the end of this function, however that comes.
    let held = lock.map(|lock| lock.hold(frame as usize));
    if write_queue::is_waiting()
        && let Some(lock) = lock
    {
        // SAFETY: the frame is a call of the function that this is asked of.
        if let Some(failure) = unsafe { settled(settling(), &(*frame).called, real, lock) } {
            // SAFETY: nobody else has the frame.
            unsafe { (*frame).result = failure };
            return 0;
        }
    }
    if let Some(act) = act {
        // SAFETY: the frame is a call of the function that this is done with.
        let next = unsafe { act(&(*frame).called, real) };
        if next.jump == 0 {
            // SAFETY: nobody else has the frame.
            unsafe { (*frame).result = next.result };
            return 0;
        }
        return go_on(frame, next.jump, held.is_some());
    }
    go_on(frame, real, held.is_some())
}

/// Stores writes that wait if a call could see that they do. Returns the call's result if that fails.
#[cold]
fn settled(settling: Settling, called: &Called, real: usize, lock: &'static Lock) -> Option<usize> {
    const FAILURE: usize = usize::MAX;
    let (is_due, failure) = match settling {
        Settling::Never => (false, FAILURE),
        Settling::Before => (true, FAILURE),
        Settling::BeforeNbytes => (true, 0),
        Settling::BeforeShrinking => (!writing::only_grows(real, called), FAILURE),
        Settling::BeforeRelease => {
            (writing::is_a_file(real, called) || writing::is_closed(real, called), FAILURE)
        }
        Settling::IfClosed => (writing::is_closed(real, called), FAILURE),
    };
    (is_due && !write_queue::settle(lock)).then_some(failure)
}

#[inline]
fn go_on(frame: *mut Frame, function: usize, comes_back: bool) -> usize {
    if !comes_back {
        return function;
    }
    // SAFETY: the frame is a call of this function.
    unsafe { call(frame, function, word_count((*frame).called.stack())) };
    0
}

/// How many words of the caller's stack can be passed on: what is behind its end has no arguments.
#[inline]
fn word_count(start: usize) -> usize {
    const LEAST_PAGE: usize = 4096;
    let last = start + size_of::<usize>() * MOST_WORDS - 1;
    if start / LEAST_PAGE == last / LEAST_PAGE || is_readable(last) {
        return MOST_WORDS;
    }
    (last / LEAST_PAGE * LEAST_PAGE - start) / size_of::<usize>()
}

/// Whether an address is in memory that can be read. Stacks that programs made themselves may end anywhere.
#[cold]
fn is_readable(address: usize) -> bool {
    const NO_WAY: libc::c_int = -1;
    if stack::contains(address) {
        return true;
    }
    let start = address & !7;
    // SAFETY: the system reads a set of signals there, and then refuses to do with it what it is told. `errno` is the program's.
    unsafe {
        let error = *libc::__errno_location();
        libc::syscall(libc::SYS_rt_sigprocmask, NO_WAY, start, 0_usize, 8_usize);
        let is_readable = *libc::__errno_location() != libc::EFAULT;
        *libc::__errno_location() = error;
        is_readable
    }
}
