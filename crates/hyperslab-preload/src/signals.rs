//! Keeps signals away from our threads: the program's handlers expect the program's own threads.

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyperslab_archive::{CallerError, InterruptCheck};

use crate::python;

thread_local! {
    /// The signals that this thread did not take before we blocked all others.
    static BEFORE: Cell<Option<Box<libc::sigset_t>>> = const { Cell::new(None) };
    /// Whether to end the read that this thread does ahead.
    static IS_OVER: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// The calling thread is one of ours, and ends its read as soon as this becomes true.
pub(crate) fn end_when(is_over: Arc<AtomicBool>) {
    IS_OVER.set(Some(is_over));
}

/// What the system sends to a thread because of what this thread does, such as writing to memory that a handler of the
/// program makes writable first. If they were blocked, the system would end the program.
const OF_THE_THREAD: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// While it lives, the calling thread and the threads that it starts take no signals from outside.
pub(crate) struct Blocked {
    before: libc::sigset_t,
}

impl Blocked {
    /// Blocks all signals that come from outside.
    pub fn new() -> Self {
        let mut all = MaybeUninit::uninit();
        // SAFETY: the set is valid for writes, and `sigfillset` initializes it; the signals exist.
        let all = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            for signal in OF_THE_THREAD {
                libc::sigdelset(all.as_mut_ptr(), signal);
            }
            all.assume_init()
        };
        let before = exchange(&all);
        BEFORE.set(Some(Box::new(before)));
        Self { before }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        BEFORE.set(None);
        exchange(&self.before);
    }
}

/// Lets waiting signals through several times a second, on the program's own thread. Ends reads ahead.
pub(crate) struct LetThrough;

impl InterruptCheck for LetThrough {
    fn check(&self) -> Result<(), CallerError> {
        if let Some(before) = BEFORE.take() {
            let all = exchange(&before); // signals that wait are delivered before it returns
            exchange(&all);
            BEFORE.set(Some(before));
        }
        let is_over =
            IS_OVER.with_borrow(|over| over.as_ref().is_some_and(|over| over.load(Ordering::Relaxed)));
        if is_over { Err("nobody wants it any more".into()) } else { Ok(()) }
    }
}

/// The same, and ends what waits for the network by Ctrl-C.
pub(crate) struct OrInterrupted;

impl InterruptCheck for OrInterrupted {
    fn check(&self) -> Result<(), CallerError> {
        if is_interrupted() { Err("it was interrupted".into()) } else { Ok(()) }
    }
}

/// Whether the user wants to end a wait for the network by Ctrl-C. Lets waiting signals through.
pub(crate) fn is_interrupted() -> bool {
    let mut waiting = MaybeUninit::zeroed();
    // SAFETY: the set is valid for writes. A set of zeros is an empty one, should the call fail.
    let is_asked = unsafe {
        libc::sigpending(waiting.as_mut_ptr());
        libc::sigismember(waiting.as_ptr(), libc::SIGINT) == 1
    };
    LetThrough.check().is_err() || is_asked || python::is_interrupted()
}

/// Blocks these signals and no others. Returns those that were blocked.
fn exchange(blocked: &libc::sigset_t) -> libc::sigset_t {
    let mut before = MaybeUninit::zeroed();
    // SAFETY: both sets are valid. A set of zeros is an empty one, should the call fail.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, ptr::from_ref(blocked), before.as_mut_ptr());
        before.assume_init()
    }
}
