//! How much of the calling thread's stack is left.
//!
//! libhdf5 needs some 10 KiB, and we need them besides: calls of threads that have little are passed on. So are those on
//! stacks that a program made itself, as for coroutines: nobody knows where these end.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::mem::MaybeUninit;

/// Many times what we were seen to use, and libhdf5 when we ask it something.
const ENOUGH: usize = 128 << 10;

thread_local! {
    /// Where the stack begins and ends; zeros if that is not known yet.
    static EXTENT: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Whether there is enough for our own work.
#[inline]
pub(crate) fn is_enough() -> bool {
    let here = 0_u8;
    let here = (&raw const here) as usize;
    let (start, end) = extent();
    (start.saturating_add(ENOUGH)..end).contains(&here)
}

/// Whether an address is on the stack that the thread was started with.
pub(crate) fn contains(address: usize) -> bool {
    let (start, end) = extent();
    (start..end).contains(&address)
}

#[inline]
fn extent() -> (usize, usize) {
    EXTENT.with(|extent| {
        if extent.get().1 == 0 {
            extent.set(found());
        }
        extent.get()
    })
}

/// The stack of the calling thread, as its library of threads knows it; an impossible one if it does not.
#[cold]
#[inline(never)]
fn found() -> (usize, usize) {
    let unknown = (usize::MAX, usize::MAX);
    let mut attributes = MaybeUninit::uninit();
    let (mut start, mut nbytes) = (std::ptr::null_mut(), 0);
    // SAFETY: all pointers are valid for writes; the attributes are destroyed if they were made. `errno` is the program's.
    unsafe {
        let error = *libc::__errno_location();
        let is_known = libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) == 0
            && libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut nbytes) == 0;
        if is_known {
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
        }
        *libc::__errno_location() = error;
        if is_known { (start as usize, (start as usize).saturating_add(nbytes)) } else { unknown }
    }
}
