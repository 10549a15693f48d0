//! What is done with a call that arrives at an entry or a stub: which function it means, and what comes before and after it.
//!
//! A stub stands for one function of one library, for all modules that call it. Its gate takes the library's lock, if it
//! needs one, and keeps it until the function returns: also if that is done by an exception, or by the end of the thread.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::callers;
use crate::entries::{self, Act, REPLACED_COUNT};
use crate::instructions::{Called, Frame, MOST_WORDS, Next, STUB_COUNT, call, stub, stub_number};
use crate::lock::Lock;
use crate::stack;

/// What a stub stands for.
#[derive(Clone, Copy)]
pub(crate) struct Gate {
    /// Where the function is.
    pub real: usize,
    /// What is done with calls of it; `None` if they are only passed on.
    pub act: Option<Act>,
    /// The number of its library, as `Called::caller` has it.
    pub library: usize,
    /// What its calls have to wait for.
    pub lock: Option<&'static Lock>,
}

/// What each stub stands for, by its number.
static GATES: [AtomicPtr<Gate>; STUB_COUNT] = [const { AtomicPtr::new(ptr::null_mut()) }; STUB_COUNT];

/// Whether a function of this name may need a gate. All functions of libhdf5, of its companions and of libnetcdf are so called;
/// names that end with `_g` are those of variables.
pub(crate) fn is_gated(name: &CStr) -> bool {
    let name = name.to_bytes();
    matches!(name.get(..2), Some(b"H5" | b"nc" | b"NC")) && !name.ends_with(b"_g")
}

/// The address of the stub for a function; `None` if there are too many.
pub(crate) fn stand_in(gate: Gate) -> Option<usize> {
    let first = gate.real / 16 + gate.real / 65_536;
    let mut new: *mut Gate = ptr::null_mut();
    for step in 0..STUB_COUNT {
        let number = (first + step) % STUB_COUNT;
        let mut place = GATES[number].load(Ordering::Acquire);
        if place.is_null() {
            if new.is_null() {
                new = Box::into_raw(Box::new(gate));
            }
            match GATES[number].compare_exchange(place, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(stub(number)),
                Err(other) => place = other,
            }
        }
        // SAFETY: gates are never freed.
        if unsafe { (*place).stands_for(&gate) } {
            if !new.is_null() {
                // SAFETY: nobody else has it.
                drop(unsafe { Box::from_raw(new) });
            }
            return Some(stub(number));
        }
    }
    None
}

/// The gate of a stub.
pub(crate) fn gate_at(address: usize) -> Option<&'static Gate> {
    // SAFETY: gates are never freed.
    stub_number(address).and_then(|number| unsafe { GATES[number].load(Ordering::Acquire).as_ref() })
}

impl Gate {
    fn stands_for(&self, other: &Self) -> bool {
        let address = |act: Option<Act>| act.map_or(0, |act| act as usize);
        self.real == other.real && address(self.act) == address(other.act)
    }
}

/// A call has arrived. Returns where it goes on; 0 if it is done, and the frame has its result.
pub(crate) unsafe extern "C-unwind" fn arrived(frame: *mut Frame) -> usize {
    // SAFETY: the instructions that call this have put the frame on the stack.
    let (entry, called) = unsafe { ((*frame).entry, &mut (*frame).called) };
    if let Some(gate) = gate_at(entry) {
        called.caller |= gate.library;
        return pass_through(frame, gate.real, gate.act, gate.lock);
    }
    let act = entries::act(entry);
    if entry >= REPLACED_COUNT {
        return pass_through(frame, 0, act, None); // libc's
    }
    match callers::meant(entry, called) {
        Some((real, lock)) => pass_through(frame, real, act, lock),
        None => pass_through(frame, 0, Some(failed), None),
    }
}

/// Nobody has the function. libhdf5's and netCDF-C's return negative numbers if they fail.
unsafe extern "C-unwind" fn failed(_: &Called) -> Next {
    Next::done(usize::MAX)
}

#[inline]
fn pass_through(frame: *mut Frame, real: usize, act: Option<Act>, lock: Option<&'static Lock>) -> usize {
    // The lock is held until the end of this function, however that comes.
    let held = lock.map(|lock| lock.hold(frame as usize));
    if let Some(act) = act {
        // SAFETY: the frame is a call of the function that this is done with.
        let next = unsafe { act(&(*frame).called) };
        if next.jump == 0 {
            // SAFETY: nobody else has the frame.
            unsafe { (*frame).result = next.result };
            return 0;
        }
        return go_on(frame, next.jump, held.is_some());
    }
    go_on(frame, real, held.is_some())
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
