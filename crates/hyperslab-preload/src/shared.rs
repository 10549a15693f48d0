//! State of the process behind a lock that nobody waits for, and that a forked child can do without.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard};

use hyperslab_engine::lock_briefly;

/// State that is made on first use, and never freed: a forked child may have it locked by a thread that does not exist.
pub(crate) struct Shared<T>(AtomicPtr<Mutex<T>>);

impl<T: Default> Shared<T> {
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Whether nobody has used it yet.
    pub fn is_unused(&self) -> bool {
        self.0.load(Ordering::Acquire).is_null()
    }

    /// Begins anew in a forked child, where a thread that does not exist may hold the lock.
    pub fn forget(&self) {
        abandon(self.0.swap(ptr::null_mut(), Ordering::AcqRel).cast());
    }

    /// The state; `None` if it stays locked.
    pub fn lock(&self) -> Option<MutexGuard<'static, T>> {
        let mut current = self.0.load(Ordering::Acquire);
        if current.is_null() {
            let new = Box::into_raw(Box::<Mutex<T>>::default());
            current = match self.0.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => new,
                Err(other) => other,
            };
        }
        // SAFETY: it is never freed.
        lock_briefly(unsafe { &*current })
    }
}

/// Memory that nobody uses any more, and that cannot be freed: tools that look for lost memory must find it here.
struct Abandoned {
    _memory: *mut c_void,
    _before: *mut Abandoned,
}

static ABANDONED: AtomicPtr<Abandoned> = AtomicPtr::new(ptr::null_mut());

/// Keeps memory that another thread may have been using when the process forked.
pub(crate) fn abandon(memory: *mut c_void) {
    if memory.is_null() {
        return;
    }
    let kept = Abandoned { _memory: memory, _before: ABANDONED.load(Ordering::Acquire) };
    ABANDONED.store(Box::into_raw(Box::new(kept)), Ordering::Release); // a forked child has one thread
}

/// The lock of some state while a thread forks: then the child has the state as it is, and not half changed. One for each
/// thread.
pub(crate) struct OverFork<T: 'static>(Cell<Option<ManuallyDrop<MutexGuard<'static, T>>>>);

impl<T: Default> OverFork<T> {
    pub const fn new() -> Self {
        Self(Cell::new(None))
    }

    /// The thread is about to fork.
    pub fn hold(&self, state: &Shared<T>) {
        if !state.is_unused() {
            self.0.set(state.lock().map(ManuallyDrop::new));
        }
    }

    /// It has forked: the lock that it held, in the parent as in the child.
    pub fn take(&self) -> Option<MutexGuard<'static, T>> {
        self.0.take().map(ManuallyDrop::into_inner)
    }
}
